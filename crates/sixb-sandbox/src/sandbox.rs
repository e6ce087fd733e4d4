//! The two seams: a factory that knows a provider, and one isolated environment.

use std::{
    collections::BTreeMap,
    fmt::{Debug, Display},
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::{
    BackgroundId, ByteRange, Capabilities, Command, CommandOutput, CreateOptions, DirEntry,
    FileSource, FileStat, FileWrite, LinePosition, ListOptions, Result, SandboxPath, SeekLine,
    Snapshot, SnapshotOptions,
};

/// Whether a sandbox can still be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SandboxStatus {
    /// Commands and file calls work.
    Running,
    /// It was stopped or destroyed by its owner.
    Stopped,
    /// It ended by itself: its supervisor died or broke the protocol.
    Failed,
}

impl Display for SandboxStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        })
    }
}

/// One isolated environment that lives for one run.
///
/// # Semantics every backend keeps
/// - **One file system.** Commands, background processes and file calls see the same files, at once.
/// - **Concurrency.** All methods may be called at the same time; a long command blocks no other call.
/// - **Background processes.** A process that a command leaves behind lives on until `stop` or `destroy`.
/// - **End.** `stop` and `destroy` are idempotent and end every command in flight (those resolve as cancelled).
///   After either, every other call fails with [`SandboxError::NotRunning`](crate::SandboxError::NotRunning).
/// - **Dropping** the last reference ends the sandbox too, in the background; call `destroy` to see failures.
/// - **Cancellation.** Dropping the future of a call stops the work it started; no half-written file becomes visible.
///
/// Conveniences live in [`SandboxExt`](crate::SandboxExt), which nobody implements.
#[async_trait]
pub trait Sandbox: Display + Debug + Send + Sync + 'static {
    /// Unique name of this sandbox on this machine.
    fn id(&self) -> &str;

    /// The backend: `local`, `smolvm`, …. For people to read: code asks [`capabilities`](Self::capabilities).
    fn provider(&self) -> &'static str;

    /// Whether it can still be used.
    fn status(&self) -> SandboxStatus;

    /// The absolute guest path below which all [`SandboxPath`]s lie.
    fn working_directory(&self) -> &str;

    /// What this sandbox really enforces.
    fn capabilities(&self) -> &Capabilities;

    /// Runs a command until its own process ends.
    ///
    /// A non-zero exit, a signal, a deadline and a cancellation by [`Command::cancel`] are all `Ok`: the output so far
    /// is kept. A missing program is exit code 127 with a message on stderr; a missing working directory is
    /// `NotFound`. When the deadline passes or the command is cancelled, all its descendants are killed.
    async fn run(&self, command: Command) -> Result<CommandOutput>;

    /// Starts a command and returns at once; its output is spooled and readable while it runs.
    async fn start(&self, command: Command) -> Result<BackgroundId>;

    /// Waits for a process begun by [`start`](Self::start). May be called many times, also after it ended.
    ///
    /// Fails with `Lost`, at once, when the sandbox is gone; with `Cancelled` when `cancel` fires (the process goes on).
    async fn wait(&self, id: &BackgroundId, cancel: &CancellationToken) -> Result<CommandOutput>;

    /// Ends a process begun by [`start`](Self::start) and all its descendants. Idempotent.
    async fn kill(&self, id: &BackgroundId) -> Result<()>;

    /// Writes files, in order. Each file appears whole or not at all; missing parents are made.
    async fn write_files(&self, files: Vec<FileWrite>) -> Result<()>;

    /// Reads at most `range.len` bytes; fewer only at the end of the file.
    async fn read_range(&self, source: &FileSource, range: ByteRange) -> Result<Bytes>;

    /// Describes a file. Symbolic links that stay inside are followed.
    async fn stat(&self, source: &FileSource) -> Result<FileStat>;

    /// The entries below a directory, sorted by path. Links are listed, not followed.
    async fn list(&self, path: &SandboxPath, options: ListOptions) -> Result<Vec<DirEntry>>;

    /// Removes a file, a link or a whole directory. What does not exist is not an error.
    async fn remove(&self, path: &SandboxPath) -> Result<()>;

    /// Finds where a line starts, without the file leaving the sandbox.
    async fn seek_line(&self, source: &FileSource, seek: SeekLine) -> Result<LinePosition>;

    /// Path, size and change time of every file in the working directory.
    async fn snapshot(&self, options: SnapshotOptions) -> Result<Snapshot>;

    /// Ends all processes. The working directory is kept until `destroy`.
    async fn stop(&self) -> Result<()>;

    /// Ends all processes and removes everything the sandbox made on the host.
    async fn destroy(&self) -> Result<()>;
}

/// A provider and its defaults: makes sandboxes.
#[async_trait]
pub trait SandboxFactory: Display + Debug + Send + Sync + 'static {
    /// The backend: `local`, `smolvm`, ….
    fn provider(&self) -> &'static str;

    /// Makes a sandbox. Options of the call win over the factory's; env maps merge per key.
    ///
    /// Transactional: on failure, cancellation or when the future is dropped, nothing is left behind.
    async fn create(&self, options: CreateOptions) -> Result<Arc<dyn Sandbox>>;

    /// Makes and removes a real trial sandbox: what this machine can enforce, or why it cannot.
    async fn probe(&self) -> Result<Capabilities>;

    /// All sandboxes of this provider and state directory, also those whose owner died.
    async fn list(&self) -> Result<Vec<SandboxRecord>>;

    /// Ends and removes what dead owners left. Returns the ids. Never touches a sandbox whose owner lives.
    async fn sweep(&self) -> Result<Vec<String>>;
}

/// One line of [`SandboxFactory::list`].
#[derive(Debug, Clone, serde::Serialize)]
#[non_exhaustive]
pub struct SandboxRecord {
    /// The sandbox.
    pub id: String,
    /// The backend.
    pub provider: &'static str,
    /// Process id of the owner.
    pub owner_pid: u32,
    /// Whether the owner still lives; if not, `sweep` removes this sandbox.
    pub owner_alive: bool,
    /// Whether processes of the sandbox run.
    pub running: bool,
    /// Seconds since the Unix epoch.
    pub created_at: u64,
    /// [`CreateOptions::labels`].
    pub labels: BTreeMap<String, String>,
}

impl SandboxRecord {
    /// A record, for backends to fill.
    pub fn new(
        id: String,
        provider: &'static str,
        owner_pid: u32,
        owner_alive: bool,
        running: bool,
        created_at: u64,
    ) -> Self {
        Self {
            id,
            provider,
            owner_pid,
            owner_alive,
            running,
            created_at,
            labels: BTreeMap::new(),
        }
    }

    /// Sets the labels.
    pub fn labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.labels = labels;
        self
    }
}
