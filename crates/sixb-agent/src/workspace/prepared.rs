//! A sandbox with the run's files in place: adds the run's variables to each command, and cleans up when it is destroyed.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use sixb_sandbox::FileKind;
use sixb_sandbox::{
    BackgroundId, ByteRange, CancellationToken, Capabilities, Command, CommandOutput, DirEntry,
    FileSource, FileStat, FileWrite, LinePosition, ListOptions, Result, Sandbox, SandboxError,
    SandboxPath, SandboxStatus, SeekLine, Snapshot, SnapshotOptions,
};

use super::{
    brought::PlacedFiles,
    claim::Claim,
    layout::{self, Identity},
};

/// Output files that were there before the run, by version: those of a run that was killed, or of another that goes on.
/// While they are unchanged they are none of this run's.
pub(crate) type ForeignOutputs = HashMap<SandboxPath, u64>;

/// What was in the workspace before the run.
#[derive(Debug, Default)]
struct Before {
    missing: Vec<SandboxPath>,
    outputs: ForeignOutputs,
}

#[derive(Debug)]
pub(super) struct PreparedSandbox {
    inner: Arc<dyn Sandbox>,
    env: BTreeMap<String, String>,
    before: Before,
    cleans_up: bool,
    /// `destroy` may be called again.
    cleaned: AtomicBool,
}

impl PreparedSandbox {
    /// Looks at what is there, then writes the run's files. On failure what was written is removed.
    pub(super) async fn prepare(
        inner: Arc<dyn Sandbox>,
        identity: &Identity,
        plan: super::boot::Plan,
        brought: &PlacedFiles,
        claim: Option<&Claim>,
    ) -> Result<Self> {
        let root = inner.working_directory().to_owned();
        let mut prepared = Self {
            env: layout::environment(identity, &root, plan.writes_files),
            inner,
            before: Before::default(),
            cleans_up: plan.cleans_up,
            cleaned: AtomicBool::new(false),
        };
        if plan.writes_files {
            if plan.cleans_up {
                prepared.before = look(&*prepared.inner, brought.folders(&root)).await?;
                if let Some(claim) = claim {
                    claim
                        .note(&prepared.before.missing)
                        .map_err(|error| SandboxError::io("note what the run adds", error))?;
                }
            }
            let files = layout::files(identity, &root);
            let written = brought.write(&*prepared.inner, files).await;
            if let Err(error) = written {
                prepared.clean_up().await;
                return Err(error);
            }
        }
        Ok(prepared)
    }

    pub(super) fn foreign_outputs(&self) -> &ForeignOutputs {
        &self.before.outputs
    }

    /// Removes what this run added to a workspace that outlives it. Errors are for the log: the run is over.
    pub(super) async fn clean_up(&self) {
        if !self.cleans_up || self.cleaned.swap(true, Ordering::Relaxed) {
            return;
        }
        for path in layout::to_remove(&self.before.missing) {
            match self.inner.remove(&path).await {
                Ok(()) => {}
                Err(error) => tracing::warn!("{path} of the run is left in the workspace: {error}"),
            }
        }
    }
}

async fn look(sandbox: &dyn Sandbox, folders: Vec<SandboxPath>) -> Result<Before> {
    let mut before = Before::default();
    for path in layout::made().chain(folders) {
        // Below a missing directory everything is missing: an empty workspace costs one call.
        let parent_missing = path
            .parent()
            .is_some_and(|parent| before.missing.contains(&parent));
        if parent_missing || is_missing(sandbox, &path).await? {
            before.missing.push(path);
        }
    }
    let outputs = layout::path(layout::OUTPUTS);
    if !before.missing.contains(&outputs) {
        let entries = sandbox
            .list(&outputs, ListOptions::default().recursive())
            .await?;
        let files = entries
            .into_iter()
            .filter(|entry| entry.stat.kind == FileKind::File);
        before.outputs = files
            .map(|entry| (entry.path, entry.stat.version))
            .collect();
    }
    Ok(before)
}

async fn is_missing(sandbox: &dyn Sandbox, path: &SandboxPath) -> Result<bool> {
    match sandbox.stat(&FileSource::Path(path.clone())).await {
        Ok(_) => Ok(false),
        Err(SandboxError::NotFound { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

impl PreparedSandbox {
    fn with_env(&self, mut command: Command) -> Command {
        for (key, value) in &self.env {
            command
                .env
                .entry(key.clone())
                .or_insert_with(|| value.clone());
        }
        command
    }
}

impl fmt::Display for PreparedSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl Sandbox for PreparedSandbox {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn provider(&self) -> &'static str {
        self.inner.provider()
    }

    fn status(&self) -> SandboxStatus {
        self.inner.status()
    }

    fn working_directory(&self) -> &str {
        self.inner.working_directory()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn run(&self, command: Command) -> Result<CommandOutput> {
        self.inner.run(self.with_env(command)).await
    }

    async fn start(&self, command: Command) -> Result<BackgroundId> {
        self.inner.start(self.with_env(command)).await
    }

    async fn wait(&self, id: &BackgroundId, cancel: &CancellationToken) -> Result<CommandOutput> {
        self.inner.wait(id, cancel).await
    }

    async fn kill(&self, id: &BackgroundId) -> Result<()> {
        self.inner.kill(id).await
    }

    async fn write_files(&self, files: Vec<FileWrite>) -> Result<()> {
        self.inner.write_files(files).await
    }

    async fn read_range(&self, source: &FileSource, range: ByteRange) -> Result<Bytes> {
        self.inner.read_range(source, range).await
    }

    async fn stat(&self, source: &FileSource) -> Result<FileStat> {
        self.inner.stat(source).await
    }

    async fn list(&self, path: &SandboxPath, options: ListOptions) -> Result<Vec<DirEntry>> {
        self.inner.list(path, options).await
    }

    async fn remove(&self, path: &SandboxPath) -> Result<()> {
        self.inner.remove(path).await
    }

    async fn seek_line(&self, source: &FileSource, seek: SeekLine) -> Result<LinePosition> {
        self.inner.seek_line(source, seek).await
    }

    async fn snapshot(&self, options: SnapshotOptions) -> Result<Snapshot> {
        self.inner.snapshot(options).await
    }

    async fn stop(&self) -> Result<()> {
        self.inner.stop().await
    }

    async fn destroy(&self) -> Result<()> {
        self.clean_up().await;
        self.inner.destroy().await
    }
}
