//! One command: pipes, the request, capture, deadlines on this side too.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use sixb_sandbox::{
    CancellationToken, Command, CommandOutput, FileKind, OutputStream, Result, SandboxError,
    capture::{CaptureOptions, capture},
};
use tokio::sync::{mpsc, oneshot};

use super::{
    cgroup::Cgroup,
    link::{Event, Link},
    request::request,
    sandbox::Inner,
    stdio,
};
use crate::protocol::{End, Killed, NotStarted};

/// The supervisor enforces deadlines; if it does not answer for this long after one, it is broken or taken over.
const GRACE: Duration = Duration::from_secs(10);
/// Where there is no deadline.
const FOREVER: Duration = Duration::from_secs(365 * 86_400);

/// Runs `command` to its end. `started` hears that it runs.
pub(super) async fn run(
    inner: &Arc<Inner>,
    mut command: Command,
    deadline: Option<Duration>,
    started: Option<oneshot::Sender<()>>,
) -> Result<CommandOutput> {
    let request = request(inner, &mut command, deadline, started.is_some())?;
    let provider = |error: io::Error| SandboxError::io("run a command", error);
    let (stdin, feeder) = stdio::stdin(command.stdin).map_err(provider)?;
    let (stdout, stdout_end) = stdio::output_pipe().map_err(provider)?;
    let (stderr, stderr_end) = stdio::output_pipe().map_err(provider)?;
    inner.check_running()?;

    let memory_kills = || inner.cgroup.as_ref().map_or(0, Cgroup::memory_kills);
    let kills_before = memory_kills();
    let begin = Instant::now();
    let sent = inner
        .link
        .run(&request, [stdin, stdout_end, stderr_end])
        .await;
    let (id, mut events) = sent.map_err(|error| {
        inner
            .check_running()
            .err()
            .unwrap_or_else(|| provider(error))
    })?;
    let _kill = KillOnDrop {
        link: &inner.link,
        id,
    };
    let _feeder = feeder.map(|feeder| AbortOnDrop(tokio::spawn(feeder)));

    let ended = CancellationToken::new();
    let options = async |stream| {
        let mut options = CaptureOptions::new(stream, command.limits);
        options.live = command.live.clone();
        let id = command.output_id.as_ref();
        let spool = id.map(|id| inner.spool.writer(id, stream, command.limits.spool_cap));
        options.spool = match spool {
            // Whoever hears that it runs may read its log.
            Some(writer) if started.is_some() => Some(writer.begun().await),
            spool => spool,
        };
        options
    };
    let (for_stdout, for_stderr) =
        tokio::join!(options(OutputStream::Stdout), options(OutputStream::Stderr));
    let captures = async {
        tokio::join!(
            capture(stdout, for_stdout, ended.clone()),
            capture(stderr, for_stderr, ended.clone()),
        )
    };
    let process = async {
        let end = follow(inner, id, &mut events, &command.cancel, deadline, started).await;
        let duration = begin.elapsed();
        ended.cancel();
        (end, duration)
    };
    let ((end, duration), (stdout, stderr)) = tokio::join!(process, captures);

    let mut output = CommandOutput::new(None, stdout, stderr, duration);
    match end {
        Ended::NotStarted(why) => {
            let given = command.cwd.as_deref().unwrap_or(&request.cwd);
            return Err(not_started(why, given));
        }
        Ended::Exited {
            end,
            killed,
            cancelled,
        } => {
            match end {
                End::Code(code) => output.exit_code = Some(code),
                End::Signal(signal) => output.signal = Some(signal),
                End::Lost => {
                    output.reason =
                        Some("the process that watches over the command was killed".into())
                }
            }
            output.timed_out = killed == Some(Killed::Deadline);
            output.oom_killed = match killed {
                Some(Killed::Memory) => Some(true),
                _ if !output.success() && memory_kills() > kills_before => Some(true),
                // It may have failed by itself when the kernel gave it no more.
                _ if inner.memory_limited && !output.success() => None,
                _ => Some(false),
            };
            // A command that ended by itself in the meantime was not cancelled.
            output.cancelled = cancelled && killed == Some(Killed::Asked);
        }
        Ended::Gone { unanswered } => {
            output.timed_out = unanswered;
            output.cancelled = inner.stopped() && !unanswered;
            let reason = match (unanswered, inner.stopped()) {
                (true, _) => "it could not be ended at its deadline, so its sandbox was",
                (_, true) => "the sandbox was stopped",
                _ => "the sandbox ended by itself",
            };
            output.reason = Some(reason.into());
        }
    }
    Ok(output)
}

enum Ended {
    NotStarted(NotStarted),
    Exited {
        end: End,
        killed: Option<Killed>,
        cancelled: bool,
    },
    /// The sandbox ended; `unanswered` = the host ended it, since a deadline was not enforced.
    Gone {
        unanswered: bool,
    },
}

/// Waits for the end of a command; sees to it that there is one.
async fn follow(
    inner: &Inner,
    id: u64,
    events: &mut mpsc::Receiver<Event>,
    cancel: &CancellationToken,
    deadline: Option<Duration>,
    mut started: Option<oneshot::Sender<()>>,
) -> Ended {
    let mut cancelled = false;
    // Where there is no deadline there is none here either: the far future.
    let deadline = deadline.unwrap_or(FOREVER).min(FOREVER);
    let mut overdue = tokio::time::Instant::now() + deadline + GRACE;
    let mut unanswered = false;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(Event::Started) => {
                    if let Some(started) = started.take() {
                        let _ = started.send(());
                    }
                }
                Some(Event::NotStarted(why)) => return Ended::NotStarted(why),
                Some(Event::Exited { end, killed }) => return Ended::Exited { end, killed, cancelled },
                None => return Ended::Gone { unanswered },
            },
            () = cancel.cancelled(), if !cancelled => {
                cancelled = true;
                overdue = tokio::time::Instant::now() + GRACE;
                if !inner.link.kill(id) {
                    inner.init.kill();
                }
            }
            () = tokio::time::sleep_until(overdue) => {
                tracing::warn!(sandbox = %inner.id, "the supervisor did not enforce a deadline: ending the sandbox");
                inner.init.kill();
                unanswered = true;
                overdue += GRACE;
            }
        }
    }
}

/// Ends what the caller no longer waits for. For a command that ended already this does nothing.
struct KillOnDrop<'a> {
    link: &'a Link,
    id: u64,
}

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        self.link.forget(self.id);
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn not_started(why: NotStarted, cwd: &str) -> SandboxError {
    match why {
        NotStarted::Cwd(libc::ENOENT) => SandboxError::NotFound {
            what: "working directory",
            name: cwd.into(),
        },
        NotStarted::Cwd(libc::ENOTDIR) => SandboxError::WrongKind {
            path: cwd.into(),
            found: FileKind::File,
            expected: FileKind::Directory,
        },
        NotStarted::Cwd(libc::EACCES | libc::EPERM) => {
            SandboxError::PermissionDenied { path: cwd.into() }
        }
        NotStarted::Cwd(errno) => SandboxError::io(
            "enter the working directory",
            io::Error::from_raw_os_error(errno),
        ),
        NotStarted::Fork(errno) => SandboxError::provider(
            "start a process",
            format!(
                "{}; too many processes may be running",
                io::Error::from_raw_os_error(errno)
            ),
            None,
        ),
        NotStarted::BadRequest => SandboxError::provider(
            "start a process",
            "argv and environment are too large together",
            None,
        ),
    }
}
