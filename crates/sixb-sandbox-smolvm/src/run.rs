//! One command, from this side: the request, its input, its output, and the deadline once more.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use sixb_sandbox::{
    CancellationToken, Command, CommandOutput, FileKind, OutputStream, Program, Result,
    SandboxError, SandboxPath, Stdin,
    capture::{CaptureOptions, capture},
};
use tokio::{
    io::{AsyncWriteExt, DuplexStream},
    sync::{Notify, mpsc, oneshot},
    time::Instant,
};

use crate::{
    link::{Receiver, Sender},
    sandbox::Inner,
    wire,
};

/// The guest enforces deadlines; if it does not answer for this long after one, it is broken or taken over.
const GRACE: Duration = Duration::from_secs(30);
/// How long output of a machine that ended is waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Linux takes no longer argument (MAX_ARG_STRLEN, with its NUL).
const MAX_ARGUMENT: usize = 128 * 1024 - 1;
/// Output on its way between the guest's frames and the capture.
const PIPE_BYTES: usize = 256 << 10;
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs `command` to its end. `started` hears that it runs.
pub(crate) async fn run(
    inner: &Arc<Inner>,
    command: Command,
    deadline: Option<Duration>,
    started: Option<oneshot::Sender<()>>,
) -> Result<CommandOutput> {
    let op = "run a command";
    let cwd = guest_cwd(command.cwd.as_deref(), &inner.working_directory)?;
    let is_script = matches!(command.program, Program::Script(_));
    let argv = argv(command.program)?;
    let variables = environment(&inner.env, &command.env, is_script)?;
    let stdin: Option<BoxStream<'static, io::Result<Bytes>>> = match command.stdin {
        Stdin::Empty => None,
        Stdin::Bytes(bytes) => Some(futures::stream::iter([Ok(bytes)]).boxed()),
        Stdin::Stream(chunks) => Some(chunks),
        _ => {
            return Err(SandboxError::provider(
                op,
                "this kind of stdin is not known to the smolvm sandbox",
                None,
            ));
        }
    };
    let mut fields = vec![
        cwd.clone(),
        deadline.map_or("-".into(), |deadline| deadline.as_millis().to_string()),
        if stdin.is_some() { "stdin" } else { "-" }.to_owned(),
        variables.len().to_string(),
    ];
    fields.extend(variables);
    fields.extend(argv);
    inner.check_running()?;
    if command.cancel.is_cancelled() {
        let mut output =
            CommandOutput::new(None, Default::default(), Default::default(), Duration::ZERO);
        (output.cancelled, output.reason) = (true, Some("cancelled before it started".into()));
        return Ok(output);
    }
    let begun = Instant::now();
    let talk = inner
        .link
        .ask(wire::RUN, &fields)
        .await
        .map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => SandboxError::LimitExceeded {
                what: "argv and environment together (bytes)".into(),
                limit: wire::MAX_FRAME as u64,
                actual: None,
            },
            _ => inner
                .check_running()
                .err()
                .unwrap_or_else(|| SandboxError::io(op, error)),
        })?;

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
    let (stdout, to_stdout) = tokio::io::duplex(PIPE_BYTES);
    let (stderr, to_stderr) = tokio::io::duplex(PIPE_BYTES);
    let captures = async {
        tokio::join!(
            capture(stdout, for_stdout, ended.clone()),
            capture(stderr, for_stderr, ended.clone()),
        )
    };
    // Whoever drops this future drops the connection: the guest then kills the command.
    let (words, to_guest) = mpsc::channel(4);
    let taken = Arc::new(Notify::new());
    let follow = async {
        let mut pipes = Pipes {
            stdout: to_stdout,
            stderr: to_stderr,
        };
        let end = follow(
            inner,
            talk.from,
            &mut pipes,
            &words,
            &taken,
            &command.cancel,
            deadline,
            started,
        )
        .await;
        drop(pipes);
        ended.cancel();
        end
    };
    let feed = async {
        if let Some(chunks) = stdin {
            feed(chunks, &words, &taken).await;
        }
        std::future::pending::<()>().await;
    };
    let speak = async {
        speak(talk.to, to_guest).await;
        std::future::pending::<()>().await;
    };
    let work = async { tokio::join!(follow, captures) };
    let (end, (stdout, stderr)) = tokio::select! {
        done = work => done,
        () = feed => unreachable!("pending"),
        () = speak => unreachable!("pending"),
    };
    let mut output = CommandOutput::new(None, stdout, stderr, begun.elapsed());
    match end {
        Ended::NotStarted(fields) => {
            return Err(not_started(&fields, command.cwd.as_deref().unwrap_or(&cwd)));
        }
        Ended::Exited {
            code,
            signal,
            timed_out,
            killed,
            oom_kills,
            duration,
            asked,
        } => {
            (
                output.exit_code,
                output.signal,
                output.timed_out,
                output.duration,
            ) = (code, signal, timed_out, duration);
            output.cancelled = killed && asked;
            output.oom_killed = Some(oom_kills > 0);
            if code.is_none() && signal.is_none() {
                output.reason = Some("the guest does not know how the command ended".into());
            }
        }
        Ended::Gone => {
            output.cancelled = inner.stopped();
            output.reason = Some(
                if inner.stopped() {
                    "the sandbox was stopped"
                } else {
                    "the connection to the machine was lost"
                }
                .into(),
            );
        }
    }
    Ok(output)
}

struct Pipes {
    stdout: DuplexStream,
    stderr: DuplexStream,
}

enum Ended {
    NotStarted(Vec<Vec<u8>>),
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
        timed_out: bool,
        killed: bool,
        oom_kills: u64,
        duration: Duration,
        asked: bool,
    },
    Gone,
}

/// Takes what the guest says until the command's end; sees to it that there is one.
#[expect(
    clippy::too_many_arguments,
    reason = "the parts of one call, each used once"
)]
async fn follow(
    inner: &Arc<Inner>,
    mut from: Receiver,
    pipes: &mut Pipes,
    words: &mpsc::Sender<(u8, Bytes)>,
    taken: &Notify,
    cancel: &CancellationToken,
    deadline: Option<Duration>,
    mut started: Option<oneshot::Sender<()>>,
) -> Ended {
    let mut asked = false;
    // Where there is no deadline there is none here either: the far future.
    let mut overdue = Instant::now()
        + deadline
            .unwrap_or(Duration::from_secs(365 * 86_400))
            .saturating_add(GRACE);
    // A frame is received whole or the connection is given up: only then may the wait for it be dropped.
    let (frames, mut received) = mpsc::channel(4);
    let receive = async {
        while let Ok(frame) = from.receive().await {
            if frames.send(frame).await.is_err() {
                break;
            }
        }
        drop(frames);
        std::future::pending::<()>().await;
    };
    tokio::pin!(receive);
    let mut last_words = None;
    loop {
        let frame = tokio::select! {
            biased;
            () = cancel.cancelled(), if !asked => {
                asked = true;
                overdue = Instant::now() + GRACE;
                let _ = words.try_send((wire::KILL, Bytes::new()));
                continue;
            }
            // What the machine said before it ended is still on its way.
            () = inner.gone.cancelled(), if last_words.is_none() => {
                last_words = Some(Instant::now() + LAST_WORDS);
                continue;
            }
            () = tokio::time::sleep_until(last_words.unwrap_or(overdue)), if last_words.is_some() => None,
            () = tokio::time::sleep_until(overdue), if last_words.is_none() => {
                tracing::warn!(sandbox = %inner.id, "the guest did not enforce a deadline: ending its machine");
                inner.end_in_background();
                overdue += GRACE;
                continue;
            }
            // Last: a guest that floods must not hide a deadline.
            frame = received.recv() => frame,
            () = &mut receive => None,
        };
        let Some((kind, payload)) = frame else {
            return Ended::Gone;
        };
        match kind {
            wire::STARTED => {
                if let Some(started) = started.take() {
                    let _ = started.send(());
                }
            }
            wire::STDOUT => pass(&mut pipes.stdout, &payload, &mut receive).await,
            wire::STDERR => pass(&mut pipes.stderr, &payload, &mut receive).await,
            wire::STDIN_TAKEN => taken.notify_one(),
            wire::NOT_STARTED => {
                return Ended::NotStarted(wire::unpack(&payload).unwrap_or_default());
            }
            wire::EXIT => return exited(&payload, asked).unwrap_or(Ended::Gone),
            _ => return Ended::Gone,
        }
    }
}

/// Hands output to the capture. The capture never stops reading, so this ends.
async fn pass(
    pipe: &mut DuplexStream,
    bytes: &[u8],
    receive: &mut (impl Future<Output = ()> + Unpin),
) {
    let write = pipe.write_all(bytes);
    tokio::pin!(write);
    tokio::select! {
        _ = &mut write => {}
        () = receive => {}
    }
}

fn exited(payload: &[u8], asked: bool) -> Option<Ended> {
    let fields = wire::unpack(payload).ok()?;
    let [code, signal, timed_out, killed, oom_kills, micros] = fields.as_slice() else {
        return None;
    };
    let number = |field: &[u8]| wire::number(field).ok();
    let small = |field: &[u8]| number(field).and_then(|value| i32::try_from(value).ok());
    Some(Ended::Exited {
        code: small(code),
        signal: small(signal),
        timed_out: number(timed_out)? == 1,
        killed: number(killed)? == 1,
        oom_kills: number(oom_kills)?,
        duration: Duration::from_micros(number(micros)?),
        asked,
    })
}

/// Sends the input in pieces, each after the one before was taken: a command that reads nothing fills nothing.
async fn feed(
    mut chunks: BoxStream<'static, io::Result<Bytes>>,
    words: &mpsc::Sender<(u8, Bytes)>,
    taken: &Notify,
) {
    'input: while let Some(chunk) = chunks.next().await {
        let mut bytes = match chunk {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(%error, "the input of a command ended early");
                break;
            }
        };
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(wire::CHUNK));
            if words.send((wire::STDIN, piece)).await.is_err() {
                break 'input;
            }
            taken.notified().await;
        }
    }
    let _ = words.send((wire::STDIN_END, Bytes::new())).await;
}

async fn speak(mut to: Sender, mut words: mpsc::Receiver<(u8, Bytes)>) {
    while let Some((kind, payload)) = words.recv().await {
        if to.send(kind, &payload).await.is_err() {
            return;
        }
    }
}

fn not_started(fields: &[Vec<u8>], cwd: &str) -> SandboxError {
    let text = |at: usize| {
        fields
            .get(at)
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .unwrap_or_default()
    };
    match (text(0).as_str(), text(1).as_str()) {
        ("cwd", "2") => SandboxError::NotFound {
            what: "working directory",
            name: cwd.into(),
        },
        ("cwd", "20") => SandboxError::WrongKind {
            path: cwd.into(),
            found: FileKind::File,
            expected: FileKind::Directory,
        },
        ("cwd", "13" | "1") => SandboxError::PermissionDenied { path: cwd.into() },
        ("cwd", errno) => SandboxError::io(
            "enter the working directory",
            io::Error::from_raw_os_error(errno.parse().unwrap_or(5)),
        ),
        (_, why) => SandboxError::provider(
            "start a process",
            format!("{why}; too many processes may be running"),
            None,
        ),
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
    is_script: bool,
) -> Result<Vec<String>> {
    let base = [
        ("HOME", "/root"),
        ("LANG", "C.UTF-8"),
        ("LOGNAME", "root"),
        ("PATH", PATH),
        ("SHELL", "/bin/bash"),
        ("TERM", "dumb"),
        ("USER", "root"),
    ];
    let mut all: BTreeMap<&str, &str> = base.into();
    all.extend(
        sandbox
            .iter()
            .chain(command)
            .map(|(key, value)| (key.as_str(), value.as_str())),
    );
    if is_script {
        // `bash -l` reads profiles that set PATH; ours, read last, puts this one back.
        let path = all.get("PATH").copied().unwrap_or(PATH);
        all.insert("SIXB_PATH", path);
    }
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
            true,
        )
        .expect("env");
        for expect in ["A=1", "B=2", "PATH=/x", "SIXB_PATH=/x", "HOME=/root"] {
            assert!(env.contains(&expect.to_owned()), "{expect} in {env:?}");
        }
        let error = environment(&map(&[("A=", "sk-secret")]), &map(&[]), false)
            .expect_err("bad name")
            .to_string();
        assert!(
            error.contains("\"A=\"") && !error.contains("sk-secret"),
            "{error}"
        );
    }
}
