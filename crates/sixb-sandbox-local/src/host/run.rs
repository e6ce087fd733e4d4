//! One command: pipes, the request, capture, deadlines on this side too.

use std::{
    collections::BTreeMap,
    io,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use sixb_sandbox::{
    CancellationToken, Command, CommandOutput, FileKind, OutputStream, Program, Result,
    SandboxError, SandboxPath, Stdin,
    capture::{CaptureOptions, capture},
};
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe,
    sync::{mpsc, oneshot},
};

use super::{
    cgroup::Cgroup,
    link::{Event, Link},
    sandbox::Inner,
};
use crate::{
    plan,
    protocol::{End, Killed, NotStarted, RunRequest},
};

/// The supervisor enforces deadlines; if it does not answer for this long after one, it is broken or taken over.
const GRACE: Duration = Duration::from_secs(10);
/// Linux takes no longer argument (MAX_ARG_STRLEN, with its NUL).
const MAX_ARGUMENT: usize = 128 * 1024 - 1;
/// Larger pipes mean fewer switches under floods of output.
const PIPE_BYTES: usize = 256 << 10;

/// Runs `command` to its end. `started` hears that it runs.
pub(super) async fn run(
    inner: &Arc<Inner>,
    command: Command,
    deadline: Option<Duration>,
    started: Option<oneshot::Sender<()>>,
) -> Result<CommandOutput> {
    let cwd = guest_cwd(command.cwd.as_deref(), &inner.working_directory)?;
    let request = RunRequest {
        argv: argv(command.program)?,
        env: environment(&inner.env, &command.env)?,
        cwd: cwd.clone(),
        deadline_ms: deadline
            .map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX)),
        tell_started: started.is_some(),
    };
    let provider = |error: io::Error| SandboxError::io("run a command", error);
    let (stdin, feeder) = stdin(command.stdin).map_err(provider)?;
    let (stdout, stdout_end) = output_pipe().map_err(provider)?;
    let (stderr, stderr_end) = output_pipe().map_err(provider)?;
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
    let options = |stream| {
        let mut options = CaptureOptions::new(stream, command.limits);
        options.live = command.live.clone();
        options.spool = command
            .output_id
            .as_ref()
            .map(|id| inner.spool.writer(id, stream, command.limits.spool_cap));
        options
    };
    let captures = async {
        tokio::join!(
            capture(stdout, options(OutputStream::Stdout), ended.clone()),
            capture(stderr, options(OutputStream::Stderr), ended.clone()),
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
            let given = command.cwd.as_deref().unwrap_or(&cwd);
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
        Ended::Gone => {
            output.cancelled = inner.stopped();
            output.reason = Some(if inner.stopped() {
                "the sandbox was stopped".into()
            } else {
                "the sandbox ended by itself".into()
            });
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
    Gone,
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
    let mut overdue = tokio::time::Instant::now()
        + deadline
            .unwrap_or(Duration::from_secs(365 * 86_400))
            .saturating_add(GRACE);
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
                None => return Ended::Gone,
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

fn argv(program: Program) -> Result<Vec<String>> {
    let argv = match program {
        Program::Argv(argv) => argv,
        Program::Script(script) => vec!["bash".into(), "-lc".into(), script],
        _ => Vec::new(),
    };
    let invalid = |reason: &str| SandboxError::InvalidInput {
        field: "command",
        value: argv.first().cloned().unwrap_or_default(),
        reason: reason.into(),
    };
    if argv.first().is_none_or(|program| program.is_empty()) {
        return Err(invalid("names no program"));
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err(invalid("holds a NUL byte, which no argument can"));
    }
    if let Some(long) = argv.iter().find(|argument| argument.len() > MAX_ARGUMENT) {
        return Err(SandboxError::LimitExceeded {
            what: "one argument or script of a command (bytes; write a file and run that, or use stdin)".into(),
            limit: MAX_ARGUMENT as u64,
            actual: Some(long.len() as u64),
        });
    }
    Ok(argv)
}

/// The base, then the sandbox's, then the command's: later ones win. Nothing comes from the host's environment.
fn environment(
    sandbox: &BTreeMap<String, String>,
    command: &BTreeMap<String, String>,
) -> Result<Vec<String>> {
    let base = [
        ("HOME", plan::HOME),
        ("LANG", "C.UTF-8"),
        ("LOGNAME", plan::USER),
        ("PATH", plan::PATH),
        ("SHELL", "/bin/bash"),
        ("TERM", "dumb"),
        ("USER", plan::USER),
    ];
    let mut all: BTreeMap<&str, &str> = base.into();
    all.extend(
        sandbox
            .iter()
            .chain(command)
            .map(|(key, value)| (key.as_str(), value.as_str())),
    );
    all.into_iter()
        .map(|(key, value)| {
            if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
                return Err(SandboxError::InvalidInput {
                    field: "env",
                    // The value may be a secret.
                    value: key.into(),
                    reason: "is no environment variable: the name may not be empty or hold `=`, and neither part a NUL".into(),
                });
            }
            Ok(format!("{key}={value}"))
        })
        .collect()
}

fn guest_cwd(cwd: Option<&str>, working_directory: &str) -> Result<String> {
    match cwd {
        None | Some("") => Ok(working_directory.to_owned()),
        Some(absolute) if absolute.starts_with('/') => Ok(absolute.to_owned()),
        Some(relative) => {
            let path = SandboxPath::parse(relative)?;
            Ok(if path.is_root() {
                working_directory.to_owned()
            } else {
                format!("{working_directory}/{path}")
            })
        }
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

fn output_pipe() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // A user who has many large pipes already gets ordinary ones.
    let _ = rustix::pipe::fcntl_setpipe_size(&theirs, PIPE_BYTES);
    Ok((pipe::Receiver::from_owned_fd(ours)?, theirs))
}

type Feeder = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// The command's end of its input, and what fills it.
fn stdin(stdin: Stdin) -> io::Result<(OwnedFd, Option<Feeder>)> {
    let chunks: BoxStream<'static, io::Result<Bytes>> = match stdin {
        Stdin::Empty => {
            // Not an empty pipe: programs such as ripgrep read a pipe, and leave a device alone.
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
            return Ok((
                rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?,
                None,
            ));
        }
        Stdin::Bytes(bytes) => futures::stream::iter([Ok(bytes)]).boxed(),
        Stdin::Stream(chunks) => chunks,
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    let (theirs, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let sender = pipe::Sender::from_owned_fd(ours)?;
    Ok((theirs, Some(Box::pin(feed(sender, chunks)))))
}

async fn feed(mut sender: pipe::Sender, mut chunks: BoxStream<'static, io::Result<Bytes>>) {
    while let Some(chunk) = chunks.next().await {
        match chunk {
            // A command may close its input early; that is its right.
            Ok(bytes) => {
                if sender.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the input of a command ended early");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_directories() {
        for (cwd, expect) in [
            (None, Some("/workspace")),
            (Some("."), Some("/workspace")),
            (Some("a/../b"), Some("/workspace/b")),
            (Some("/tmp"), Some("/tmp")),
            (Some("../x"), None),
        ] {
            assert_eq!(
                guest_cwd(cwd, "/workspace").ok().as_deref(),
                expect,
                "{cwd:?}"
            );
        }
    }

    #[test]
    fn the_commands_environment_wins_and_secrets_stay_out_of_errors() {
        let map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        let env = environment(
            &map(&[("A", "1"), ("B", "1")]),
            &map(&[("B", "2"), ("PATH", "/x")]),
        )
        .expect("env");
        for expect in ["A=1", "B=2", "PATH=/x", "HOME=/home/agent"] {
            assert!(env.contains(&expect.to_owned()), "{expect} in {env:?}");
        }
        let error = environment(&map(&[("A=", "sk-secret")]), &map(&[]))
            .expect_err("bad name")
            .to_string();
        assert!(
            error.contains("\"A=\"") && !error.contains("sk-secret"),
            "{error}"
        );
    }

    #[test]
    fn arguments_are_bounded() {
        assert!(argv(Program::Argv(vec![])).is_err());
        assert!(argv(Program::Argv(vec!["a\0".into()])).is_err());
        assert!(argv(Program::Script("x".repeat(MAX_ARGUMENT))).is_ok());
        assert!(argv(Program::Script("x".repeat(MAX_ARGUMENT + 1))).is_err());
    }
}
