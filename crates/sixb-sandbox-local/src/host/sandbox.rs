//! One local sandbox, as its owner sees it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use sixb_sandbox::{
    BackgroundId, BackgroundProcesses, ByteRange, CancellationToken, Capabilities, Command,
    CommandOutput, DirEntry, FileSource, FileStat, FileWrite, LinePosition, ListOptions, OutputId,
    Result, Sandbox, SandboxError, SandboxPath, SandboxStatus, SeekLine, Snapshot, SnapshotOptions,
    spool::Spool,
};

use super::{
    cgroup::Cgroup,
    lease::{Lease, PROVIDER},
    link::Link,
    run,
    spawn::InitProcess,
};
use crate::{files::Files, relay::Relay};

/// Every sandbox and every folder in the state directory is named so.
pub(super) const ID_PREFIX: &str = "sixb-local-";

/// The environment of a sandbox. Its values may be secrets: `Debug` shows the names.
pub(super) struct Env(pub(super) BTreeMap<String, String>);

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What all parts of one sandbox share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) id: String,
    pub(super) working_directory: String,
    pub(super) env: Env,
    pub(super) default_timeout: Duration,
    pub(super) memory_limited: bool,
    pub(super) capabilities: Capabilities,
    pub(super) link: Arc<Link>,
    pub(super) init: InitProcess,
    /// After `init`: a cgroup can be removed once its processes are gone.
    pub(super) cgroup: Option<Cgroup>,
    pub(super) spool: Spool,
    pub(super) files: Arc<Files>,
    /// The way to the listed origins, where there is a list.
    pub(super) relay: Option<Relay>,
    pub(super) lease: Lease,
    pub(super) stopped: AtomicBool,
}

impl Inner {
    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn status(&self) -> SandboxStatus {
        if self.stopped() {
            SandboxStatus::Stopped
        } else if self.link.gone().is_cancelled() {
            SandboxStatus::Failed
        } else {
            SandboxStatus::Running
        }
    }

    pub(super) fn check_running(&self) -> Result<()> {
        match self.status() {
            SandboxStatus::Running => Ok(()),
            status => Err(SandboxError::NotRunning {
                id: self.id.clone(),
                status,
            }),
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // `destroy` did this already, or nobody called it. Files may be many: not on this thread.
        self.init.kill();
        let folder = self.lease.take_folder();
        if let Some(folder) = folder {
            std::thread::spawn(move || folder.remove());
        }
    }
}

/// A sandbox of Linux namespaces. Made by [`LocalSandboxFactory`](crate::LocalSandboxFactory).
#[derive(Debug)]
pub(super) struct LocalSandbox {
    inner: Arc<Inner>,
    background: BackgroundProcesses,
}

impl LocalSandbox {
    pub(super) fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
            background: BackgroundProcesses::default(),
        }
    }

    fn lost(&self, id: &BackgroundId) -> SandboxError {
        SandboxError::Lost {
            id: id.to_string(),
            reason: format!("its sandbox {} is {}", self.inner.id, self.inner.status()),
        }
    }

    /// Runs a file call where it may block.
    async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Files) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.inner.check_running()?;
        let files = self.inner.files.clone();
        tokio::task::spawn_blocking(move || call(&files))
            .await
            .unwrap_or_else(|error| Err(SandboxError::provider("a file call", error, None)))
    }

    /// Opens what a source names and works on it.
    async fn with_source<T: Send + 'static>(
        &self,
        source: &FileSource,
        call: impl FnOnce(std::fs::File) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let source = source.clone();
        let spool = self.inner.spool.clone();
        self.blocking(move |files| match source {
            FileSource::Path(path) => {
                let file = files.open_regular(&path)?;
                call(file).map_err(|error| SandboxError::io("read a file", error))
            }
            FileSource::Output(id, stream) => {
                let file = spool.open(&id, stream)?;
                call(file).map_err(|error| SandboxError::io("read a spooled output", error))
            }
            _ => Err(unknown_source()),
        })
        .await
    }
}

fn unknown_source() -> SandboxError {
    SandboxError::provider(
        "a file call",
        "this kind of source is not known to the local sandbox",
        None,
    )
}

impl fmt::Display for LocalSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "local sandbox {}", self.inner.id)
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    fn id(&self) -> &str {
        &self.inner.id
    }

    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn status(&self) -> SandboxStatus {
        self.inner.status()
    }

    fn working_directory(&self) -> &str {
        &self.inner.working_directory
    }

    fn capabilities(&self) -> &Capabilities {
        &self.inner.capabilities
    }

    async fn run(&self, command: Command) -> Result<CommandOutput> {
        self.inner.check_running()?;
        let deadline = command.timeout.unwrap_or(self.inner.default_timeout);
        run::run(&self.inner, command, Some(deadline), None).await
    }

    async fn start(&self, command: Command) -> Result<BackgroundId> {
        self.inner.check_running()?;
        let name = || OutputId::for_call(&format!("bg-{}", ulid::Ulid::new()));
        let inner = self.inner.clone();
        let run = |command: Command, started| async move {
            let deadline = command.timeout;
            run::run(&inner, command, deadline, Some(started)).await
        };
        self.background.start(command, name, run).await
    }

    async fn wait(&self, id: &BackgroundId, cancel: &CancellationToken) -> Result<CommandOutput> {
        if self.inner.check_running().is_err() {
            return Err(self.lost(id));
        }
        let gone = self.inner.link.gone();
        let lost = || self.lost(id);
        self.background.wait(id, cancel, gone, lost).await
    }

    async fn kill(&self, id: &BackgroundId) -> Result<()> {
        self.inner.check_running()?;
        self.background.kill(id)
    }

    async fn write_files(&self, files: Vec<FileWrite>) -> Result<()> {
        for file in files {
            crate::files::write(self.inner.files.clone(), file, || {
                self.inner.check_running()
            })
            .await?;
        }
        Ok(())
    }

    async fn read_range(&self, source: &FileSource, range: ByteRange) -> Result<Bytes> {
        if range.len > ByteRange::MAX_LEN {
            return Err(SandboxError::LimitExceeded {
                what: "length of one read (bytes)".into(),
                limit: ByteRange::MAX_LEN as u64,
                actual: Some(range.len as u64),
            });
        }
        self.with_source(source, move |file| crate::files::read_range(&file, range))
            .await
    }

    async fn stat(&self, source: &FileSource) -> Result<FileStat> {
        match source {
            FileSource::Path(path) => {
                let path = path.clone();
                self.blocking(move |files| files.stat(&path)).await
            }
            source => {
                self.with_source(source, |file| crate::files::stat_of(&file))
                    .await
            }
        }
    }

    async fn list(&self, path: &SandboxPath, options: ListOptions) -> Result<Vec<DirEntry>> {
        let path = path.clone();
        self.blocking(move |files| files.list(&path, options)).await
    }

    async fn remove(&self, path: &SandboxPath) -> Result<()> {
        let path = path.clone();
        self.blocking(move |files| files.remove(&path)).await
    }

    async fn seek_line(&self, source: &FileSource, seek: SeekLine) -> Result<LinePosition> {
        self.with_source(source, move |mut file| {
            sixb_sandbox::lines::seek_line(&mut file, seek)
        })
        .await
    }

    async fn snapshot(&self, options: SnapshotOptions) -> Result<Snapshot> {
        self.blocking(move |files| files.snapshot(&options)).await
    }

    async fn stop(&self) -> Result<()> {
        self.inner.stopped.store(true, Ordering::Release);
        self.inner.init.kill();
        let inner = self.inner.clone();
        let reaped = tokio::task::spawn_blocking(move || inner.init.reap()).await;
        reaped
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(|error| SandboxError::io("stop the sandbox", error))?;
        // Nothing can come any more: commands in flight resolve, also when the runtime that read for them is gone.
        self.inner.link.end();
        if let Some(relay) = &self.inner.relay {
            relay.stop().await;
        }
        Ok(())
    }

    async fn destroy(&self) -> Result<()> {
        self.stop().await?;
        let Some(folder) = self.inner.lease.take_folder() else {
            return Ok(());
        };
        tokio::task::spawn_blocking(move || folder.remove())
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(|error| SandboxError::io("remove the sandbox's folder", error))
    }
}
