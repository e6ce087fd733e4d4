//! What to run and what came of it.

use std::{collections::BTreeMap, fmt, time::Duration};

use bytes::Bytes;
use futures::stream::BoxStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{CapturedStream, OutputId};

/// What to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Program {
    /// A program, looked up in `PATH`, and its arguments. Never empty.
    Argv(Vec<String>),
    /// A script for `bash -lc`.
    Script(String),
}

/// What the command reads.
#[derive(Default)]
#[non_exhaustive]
pub enum Stdin {
    /// At its end from the start: nothing that reads can hang.
    #[default]
    Empty,
    /// These bytes, then the end.
    Bytes(Bytes),
    /// Chunks as they come, then the end. An `Err` ends the input; the command sees the end of its stdin.
    Stream(BoxStream<'static, std::io::Result<Bytes>>),
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({} B)", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

/// How much of each output stream is kept in memory, and from where on it is spooled. In bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputLimits {
    /// Kept from the start of the stream.
    pub head: usize,
    /// Kept from the end of the stream. A stream of up to `head + tail` bytes is kept whole.
    pub tail: usize,
    /// A spool, where one is asked for, begins once a stream is longer than this; it then holds the stream from its
    /// first byte. At most `head`. 0 = from the first byte.
    pub spool_after: usize,
    /// The spool keeps this much of a stream and drops the rest.
    pub spool_cap: u64,
}

impl Default for OutputLimits {
    /// 4 MiB head, 4 MiB tail; spool after 16 KiB, up to 64 MiB.
    fn default() -> Self {
        Self {
            head: 4 << 20,
            tail: 4 << 20,
            spool_after: 16 << 10,
            spool_cap: 64 << 20,
        }
    }
}

impl OutputLimits {
    /// Keeps `head` bytes from the start and `tail` from the end.
    pub fn head_tail(head: usize, tail: usize) -> Self {
        Self {
            head,
            tail,
            spool_after: Self::default().spool_after.min(head),
            ..Self::default()
        }
    }

    /// Sets from which length on, and up to which, a stream is spooled.
    pub fn spool(mut self, after: usize, cap: u64) -> Self {
        self.spool_after = after.min(self.head);
        self.spool_cap = cap;
        self
    }
}

/// Which of a command's two output streams.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// `stdout` or `stderr`: also the name of the spool file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// A piece of live output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk {
    /// Where it was written.
    pub stream: OutputStream,
    /// What was written; cut anywhere.
    pub bytes: Bytes,
}

impl Chunk {
    /// A piece of output, for backends.
    pub fn new(stream: OutputStream, bytes: Bytes) -> Self {
        Self { stream, bytes }
    }
}

/// A command and how to run it. Built with [`Command::argv`] or [`Command::script`] and the methods below.
///
/// ```
/// use std::time::Duration;
/// use sixb_sandbox::Command;
///
/// let command = Command::script("sort | uniq -c")
///     .stdin_bytes("b\na\nb\n")
///     .cwd("data")
///     .env("LC_ALL", "C")
///     .timeout(Duration::from_secs(5));
/// # let _ = command;
/// ```
#[non_exhaustive]
pub struct Command {
    /// What to execute.
    pub program: Program,
    /// Where: relative to the working directory, or an absolute guest path. Default: the working directory.
    pub cwd: Option<String>,
    /// Merged over the sandbox's environment, per key.
    pub env: BTreeMap<String, String>,
    /// What it reads. Default: nothing, at the end at once.
    pub stdin: Stdin,
    /// After this time all its processes are killed and the output so far is returned. Default: the sandbox's.
    pub timeout: Option<Duration>,
    /// Bounds of the captured output.
    pub limits: OutputLimits,
    /// Keep long output readable under this name. Default: nothing is spooled (`start` picks a name itself).
    pub output_id: Option<OutputId>,
    /// Kills all its processes when it fires; the output so far is returned.
    pub cancel: CancellationToken,
    /// Receives output while it comes. A full or closed channel drops chunks: it never slows the command down.
    pub live: Option<mpsc::Sender<Chunk>>,
}

impl Command {
    fn new(program: Program) -> Self {
        Self {
            program,
            cwd: None,
            env: BTreeMap::new(),
            stdin: Stdin::Empty,
            timeout: None,
            limits: OutputLimits::default(),
            output_id: None,
            cancel: CancellationToken::new(),
            live: None,
        }
    }

    /// A program, looked up in the sandbox's `PATH`, with its arguments.
    pub fn argv<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self::new(Program::Argv(argv.into_iter().map(Into::into).collect()))
    }

    /// A script for `bash -lc`.
    pub fn script(script: impl Into<String>) -> Self {
        Self::new(Program::Script(script.into()))
    }

    /// Sets the directory to run in.
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets one variable.
    pub fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(key.into(), value.into());
        self
    }

    /// Gives bytes to read.
    pub fn stdin_bytes(mut self, bytes: impl Into<Bytes>) -> Self {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    /// Sets what it reads.
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Sets the deadline, from the start of the process.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the bounds of the captured output.
    pub fn limits(mut self, limits: OutputLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps long output readable under this name.
    pub fn output_id(mut self, id: OutputId) -> Self {
        self.output_id = Some(id);
        self
    }

    /// Kills the command when `token` fires.
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = token;
        self
    }

    /// Sends output while it comes.
    pub fn live(mut self, chunks: mpsc::Sender<Chunk>) -> Self {
        self.live = Some(chunks);
        self
    }
}

impl fmt::Debug for Command {
    /// Environment values are left out: they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("stdin", &self.stdin)
            .field("timeout", &self.timeout)
            .field("limits", &self.limits)
            .field("output_id", &self.output_id)
            .finish_non_exhaustive()
    }
}

/// Names a process begun by [`Sandbox::start`](crate::Sandbox::start). It is also the [`OutputId`] of its log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackgroundId(pub OutputId);

impl fmt::Display for BackgroundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a command ended, and what it wrote.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommandOutput {
    /// The exit code; `None` when a signal ended the process or the transport was lost. Never made up.
    pub exit_code: Option<i32>,
    /// The signal that ended the process.
    pub signal: Option<i32>,
    /// Why there is no exit code, when no signal explains it.
    pub reason: Option<String>,
    /// Standard output.
    pub stdout: CapturedStream,
    /// Standard error.
    pub stderr: CapturedStream,
    /// From the start of the process to its end.
    pub duration: Duration,
    /// The deadline passed, and its processes were killed.
    pub timed_out: bool,
    /// It was cancelled by its token or by the end of the sandbox, and its processes were killed.
    pub cancelled: bool,
    /// A memory limit killed it; `None` where the backend cannot know.
    pub oom_killed: Option<bool>,
}

impl CommandOutput {
    /// An output with nothing in it but how the process ended, for backends to fill.
    pub fn new(
        exit_code: Option<i32>,
        stdout: CapturedStream,
        stderr: CapturedStream,
        duration: Duration,
    ) -> Self {
        Self {
            exit_code,
            signal: None,
            reason: None,
            stdout,
            stderr,
            duration,
            timed_out: false,
            cancelled: false,
            oom_killed: None,
        }
    }

    /// Whether the process ended by itself with exit code 0.
    pub fn success(&self) -> bool {
        self.exit_code == Some(0)
    }

    /// Milliseconds from the start of the process to its end.
    pub fn duration_ms(&self) -> u64 {
        u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX)
    }
}
