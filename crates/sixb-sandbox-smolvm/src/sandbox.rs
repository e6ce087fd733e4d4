//! One microVM, as its owner sees it.

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

use crate::{
    PROVIDER,
    engine::Smolvm,
    files,
    lease::{Lease, Leavings},
    link::Link,
    run,
};

/// What all parts of one sandbox share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) id: String,
    pub(crate) working_directory: String,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) default_timeout: Duration,
    pub(crate) capabilities: Capabilities,
    pub(crate) engine: Arc<dyn Smolvm>,
    pub(crate) link: Link,
    /// Fires when the machine is gone, by us or by itself.
    pub(crate) gone: CancellationToken,
    /// Ends the tasks that serve the machine.
    pub(crate) serving: CancellationToken,
    pub(crate) spool: Spool,
    pub(crate) lease: Lease,
    pub(crate) stopped: AtomicBool,
    pub(crate) ended: tokio::sync::Mutex<bool>,
}

impl Inner {
    pub(crate) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn status(&self) -> SandboxStatus {
        if self.stopped() {
            SandboxStatus::Stopped
        } else if self.gone.is_cancelled() {
            SandboxStatus::Failed
        } else {
            SandboxStatus::Running
        }
    }

    pub(crate) fn check_running(&self) -> Result<()> {
        match self.status() {
            SandboxStatus::Running => Ok(()),
            status => Err(SandboxError::NotRunning {
                id: self.id.clone(),
                status,
            }),
        }
    }

    /// Ends a machine that does not keep its promises.
    pub(crate) fn end_in_background(&self) {
        self.gone.cancel();
        let (engine, id) = (self.engine.clone(), self.id.clone());
        tokio::spawn(async move {
            if let Err(error) = engine.delete(&id).await {
                tracing::warn!(%error, sandbox = id, "a machine that broke the protocol was not removed");
            }
        });
    }

    /// Ends the machine. It has no state worth a slow goodbye, so it is removed at once.
    async fn end(&self) -> Result<()> {
        let mut ended = self.ended.lock().await;
        if *ended {
            return Ok(());
        }
        self.gone.cancel();
        self.serving.cancel();
        self.engine.delete(&self.id).await?;
        *ended = true;
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gone.cancel();
        self.serving.cancel();
        let folder = self.lease.take_folder();
        if *self.ended.get_mut() {
            remove(folder);
            return;
        }
        let (engine, id) = (self.engine.clone(), self.id.clone());
        // A thread with a runtime of its own: the caller's may be about to end.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime
                && let Err(error) = runtime.block_on(engine.delete(&id))
            {
                // The lease goes free with this process: the next sweep tries again.
                tracing::warn!(%error, sandbox = id, "a dropped sandbox was not removed");
                return;
            }
            remove(folder);
        });
    }
}

fn remove(folder: Option<Leavings>) {
    if let Some(folder) = folder
        && let Err(error) = folder.remove()
    {
        tracing::warn!(%error, "the folder of a sandbox was not removed");
    }
}

/// A microVM. Made by [`SmolvmSandboxFactory`](crate::SmolvmSandboxFactory).
#[derive(Debug)]
pub(crate) struct SmolvmSandbox {
    inner: Arc<Inner>,
    background: BackgroundProcesses,
}

impl SmolvmSandbox {
    pub(crate) fn new(inner: Inner) -> Self {
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

    /// A call to the guest that ends with the machine.
    async fn call<T>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        self.inner.check_running()?;
        let result = tokio::select! {
            result = work => result,
            () = self.inner.gone.cancelled() => Err(SandboxError::provider("a file call", "the machine is gone", None)),
        };
        // A connection that broke since the machine ended says so.
        match result {
            Err(SandboxError::Provider { .. } | SandboxError::Timeout { .. })
                if self.inner.check_running().is_err() =>
            {
                self.inner.check_running().and(Err(self.not_running()))
            }
            result => result,
        }
    }

    fn not_running(&self) -> SandboxError {
        SandboxError::NotRunning {
            id: self.inner.id.clone(),
            status: self.inner.status(),
        }
    }

    async fn with_output<T: Send + 'static>(
        &self,
        id: &OutputId,
        stream: sixb_sandbox::OutputStream,
        call: impl FnOnce(std::fs::File) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.inner.check_running()?;
        let (spool, id) = (self.inner.spool.clone(), id.clone());
        tokio::task::spawn_blocking(move || {
            let file = spool.open(&id, stream)?;
            call(file).map_err(|error| SandboxError::io("read a spooled output", error))
        })
        .await
        .unwrap_or_else(|error| Err(SandboxError::provider("read a spooled output", error, None)))
    }
}

fn unknown_source() -> SandboxError {
    SandboxError::provider(
        "a file call",
        "this kind of source is not known to the smolvm sandbox",
        None,
    )
}

impl fmt::Display for SmolvmSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "smolvm sandbox {}", self.inner.id)
    }
}

#[async_trait]
impl Sandbox for SmolvmSandbox {
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
        let gone = &self.inner.gone;
        let lost = || self.lost(id);
        self.background.wait(id, cancel, gone, lost).await
    }

    async fn kill(&self, id: &BackgroundId) -> Result<()> {
        self.inner.check_running()?;
        self.background.kill(id)
    }

    async fn write_files(&self, files: Vec<FileWrite>) -> Result<()> {
        for file in files {
            self.call(files::write(&self.inner.link, file)).await?;
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
        match source {
            FileSource::Path(path) => {
                self.call(files::read_range(&self.inner.link, path, range))
                    .await
            }
            FileSource::Output(id, stream) => {
                self.with_output(id, *stream, move |file| {
                    let size = file.metadata()?.len().saturating_sub(range.offset);
                    let mut bytes =
                        vec![0; usize::try_from(size).unwrap_or(usize::MAX).min(range.len)];
                    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, range.offset)?;
                    Ok(bytes.into())
                })
                .await
            }
            _ => Err(unknown_source()),
        }
    }

    async fn stat(&self, source: &FileSource) -> Result<FileStat> {
        match source {
            FileSource::Path(path) => self.call(files::stat(&self.inner.link, path)).await,
            FileSource::Output(id, stream) => {
                self.with_output(id, *stream, |file| {
                    let found = file.metadata()?;
                    let modified = found
                        .modified()?
                        .duration_since(std::time::UNIX_EPOCH)
                        .unwrap_or_default();
                    let version = found.len()
                        ^ u64::try_from(modified.as_nanos())
                            .unwrap_or(u64::MAX)
                            .rotate_left(17);
                    Ok(FileStat::new(
                        sixb_sandbox::FileKind::File,
                        found.len(),
                        0o600,
                        modified,
                        version,
                    ))
                })
                .await
            }
            _ => Err(unknown_source()),
        }
    }

    async fn list(&self, path: &SandboxPath, options: ListOptions) -> Result<Vec<DirEntry>> {
        self.call(files::list(&self.inner.link, path, options))
            .await
    }

    async fn remove(&self, path: &SandboxPath) -> Result<()> {
        self.call(files::remove(&self.inner.link, path)).await
    }

    async fn seek_line(&self, source: &FileSource, seek: SeekLine) -> Result<LinePosition> {
        match source {
            FileSource::Path(path) => {
                self.call(files::seek_line(&self.inner.link, path, seek))
                    .await
            }
            FileSource::Output(id, stream) => {
                self.with_output(id, *stream, move |mut file| {
                    sixb_sandbox::lines::seek_line(&mut file, seek)
                })
                .await
            }
            _ => Err(unknown_source()),
        }
    }

    async fn snapshot(&self, options: SnapshotOptions) -> Result<Snapshot> {
        self.call(files::snapshot(&self.inner.link, &options)).await
    }

    async fn stop(&self) -> Result<()> {
        self.inner.stopped.store(true, Ordering::Release);
        self.inner.end().await
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
