//! One command: started in a group of its own, its output passed on, its deadline kept, its end told once.

use std::{
    io::{self, Read, Write},
    os::unix::{
        ffi::OsStringExt,
        net::UnixStream,
        process::{CommandExt, ExitStatusExt},
    },
    process::{ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{Guest, cgroup::Group, wire};

/// How long pipes are read on once the command is gone, where a process it left behind may hold them.
const DRAIN: Duration = Duration::from_millis(250);
/// How long at most, where nothing holds them and only the host is slow.
const DRAIN_ALL: Duration = Duration::from_secs(30);
/// A kill is repeated this often until the command is gone: it may have been about to enter its group.
const AGAIN: Duration = Duration::from_millis(50);

enum Event {
    Exited(io::Result<ExitStatus>),
    Kill,
}

/// Fields: working directory, deadline in ms or `-`, `stdin` or `-`, number of variables, `K=V`…, argv….
pub(crate) fn run(guest: &Arc<Guest>, stream: UnixStream, fields: Vec<Vec<u8>>) -> io::Result<()> {
    let writer = Arc::new(Mutex::new(stream.try_clone()?));
    let send = |kind, payload: &[u8]| send(&writer, kind, payload);
    let [cwd, deadline, stdin, count, rest @ ..] = fields.as_slice() else {
        return Err(wire::broken());
    };
    let count = usize::try_from(wire::number(count)?).unwrap_or(usize::MAX);
    if rest.len() <= count {
        return Err(wire::broken());
    }
    let deadline = wire::number(deadline).ok().map(Duration::from_millis);
    let (variables, argv) = rest.split_at(count);
    let cwd = std::path::PathBuf::from(std::ffi::OsString::from_vec(cwd.clone()));
    match cwd.metadata() {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return send(wire::NOT_STARTED, &wire::pack(&["cwd", "20"])),
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(0).to_string();
            return send(wire::NOT_STARTED, &wire::pack(&["cwd", &errno]));
        }
    }
    let group = match guest.cgroup.child() {
        Ok(group) => Arc::new(group),
        Err(error) => {
            return send(
                wire::NOT_STARTED,
                &wire::pack(&["start", &error.to_string()]),
            );
        }
    };
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("exec")
        .arg(&group.folder)
        .current_dir(&cwd)
        .env_clear()
        .process_group(0);
    command.args(
        argv.iter()
            .map(|word| std::ffi::OsString::from_vec(word.clone())),
    );
    for variable in variables {
        let Some(at) = variable.iter().position(|byte| *byte == b'=') else {
            return Err(wire::broken());
        };
        let part = |bytes: &[u8]| std::ffi::OsString::from_vec(bytes.to_vec());
        command.env(part(&variable[..at]), part(&variable[at + 1..]));
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if stdin == b"stdin" {
        Stdio::piped()
    } else {
        Stdio::null()
    });
    let begun = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return send(
                wire::NOT_STARTED,
                &wire::pack(&["start", &error.to_string()]),
            );
        }
    };
    send(wire::STARTED, &[])?;

    let (events, happened) = mpsc::channel();
    let pumps = [
        (
            wire::STDOUT,
            child
                .stdout
                .take()
                .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ),
        (
            wire::STDERR,
            child
                .stderr
                .take()
                .map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ),
    ]
    .map(|(kind, pipe)| Pump::start(kind, pipe, writer.clone()));
    let feed = child.stdin.take().map(|pipe| feeder(pipe, writer.clone()));
    thread::spawn({
        let events = events.clone();
        move || listen(stream, feed, &events)
    });
    thread::spawn(move || {
        let _ = events.send(Event::Exited(child.wait()));
    });

    let (mut timed_out, mut killed) = (false, false);
    let status = loop {
        let left = match deadline {
            _ if killed || timed_out => AGAIN,
            Some(deadline) => deadline.saturating_sub(begun.elapsed()),
            None => Duration::from_secs(3600),
        };
        match happened.recv_timeout(left) {
            Ok(Event::Exited(status)) => break status,
            Ok(Event::Kill) => killed = true,
            Err(RecvTimeoutError::Timeout) => {
                timed_out |=
                    !killed && deadline.is_some_and(|deadline| begun.elapsed() >= deadline);
            }
            Err(RecvTimeoutError::Disconnected) => break Err(io::ErrorKind::BrokenPipe.into()),
        }
        if killed || timed_out {
            group.kill();
        }
    };
    let took = begun.elapsed();
    if killed || timed_out {
        // What it started goes too, also where the command itself was quicker.
        end_all(&group);
    }
    drain(&pumps, &group);
    let (code, signal) = match &status {
        Ok(status) => (status.code(), status.signal()),
        Err(_) => (None, None),
    };
    let text = |value: Option<i32>| value.map_or("-".to_owned(), |value| value.to_string());
    send(
        wire::EXIT,
        &wire::pack(&[
            text(code),
            text(signal),
            u8::from(timed_out).to_string(),
            u8::from(killed).to_string(),
            group.oom_kills().to_string(),
            took.as_micros().to_string(),
        ]),
    )
}

fn end_all(group: &Group) {
    let begun = Instant::now();
    while group.populated() && begun.elapsed() < Duration::from_secs(5) {
        group.kill();
        thread::sleep(Duration::from_millis(2));
    }
}

fn send(writer: &Mutex<UnixStream>, kind: u8, payload: &[u8]) -> io::Result<()> {
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    writer.write_all(&wire::frame(kind, payload))
}

/// Hears what the host says. The end of the connection is a kill: nobody waits any more.
fn listen(
    mut stream: UnixStream,
    feed: Option<mpsc::Sender<Vec<u8>>>,
    events: &mpsc::Sender<Event>,
) {
    let mut feed = feed;
    loop {
        match wire::read(&mut stream) {
            Ok((wire::STDIN, bytes)) => {
                if let Some(feed) = &feed {
                    let _ = feed.send(bytes);
                }
            }
            Ok((wire::STDIN_END, _)) => feed = None,
            Ok((wire::KILL, _)) => {
                let _ = events.send(Event::Kill);
            }
            _ => {
                let _ = events.send(Event::Kill);
                return;
            }
        }
    }
}

/// Writes to the command's input in a thread of its own. Each piece is acknowledged, taken or not: the host sends the
/// next one only then, so a command that reads nothing fills nothing.
fn feeder(mut pipe: ChildStdin, writer: Arc<Mutex<UnixStream>>) -> mpsc::Sender<Vec<u8>> {
    let (feed, pieces) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        for piece in pieces {
            let taken = pipe.write_all(&piece).is_ok();
            let answer: &[u8] = if taken { b"1" } else { b"0" };
            if send(&writer, wire::STDIN_TAKEN, answer).is_err() || !taken {
                return;
            }
        }
    });
    feed
}

/// Reads after which a pipe of 64 KiB is empty, also where the first one was small.
const EMPTIED: u64 = 3;
/// Most commands say little: memory is touched for those that say more.
const FIRST_READ: usize = 4 << 10;
const LATER_READS: usize = 128 << 10;
const READING: u8 = 0;
const SENDING: u8 = 1;
const ENDED: u8 = 2;

/// Passes one output stream on.
struct Pump {
    state: Arc<AtomicU8>,
    reads: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Pump {
    fn start(kind: u8, pipe: Option<Box<dyn Read + Send>>, writer: Arc<Mutex<UnixStream>>) -> Self {
        let pump = Self {
            state: Arc::new(AtomicU8::new(READING)),
            reads: Arc::default(),
            stop: Arc::default(),
        };
        let (state, reads, stop) = (pump.state.clone(), pump.reads.clone(), pump.stop.clone());
        thread::spawn(move || {
            let Some(mut pipe) = pipe else {
                state.store(ENDED, Ordering::Release);
                return;
            };
            let mut bytes = vec![0; FIRST_READ];
            loop {
                state.store(READING, Ordering::Release);
                let read = match pipe.read(&mut bytes) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(0) | Err(_) => break,
                    Ok(read) => read,
                };
                state.store(SENDING, Ordering::Release);
                if stop.load(Ordering::Acquire) || send(&writer, kind, &bytes[..read]).is_err() {
                    break;
                }
                reads.fetch_add(1, Ordering::AcqRel);
                if read == bytes.len() {
                    bytes.resize(LATER_READS, 0);
                }
            }
            state.store(ENDED, Ordering::Release);
        });
        pump
    }
}

/// Waits until all output that the command itself wrote is passed on. A process it left behind may hold the pipes for
/// ever, silent or not.
fn drain(pumps: &[Pump], group: &Group) {
    let begun = Instant::now();
    let before = pumps
        .iter()
        .map(|pump| pump.reads.load(Ordering::Acquire))
        .collect::<Vec<_>>();
    loop {
        let held = group.populated();
        let done = pumps.iter().zip(&before).all(|(pump, before)| {
            match pump.state.load(Ordering::Acquire) {
                ENDED => true,
                // Nothing was left to read, or so many reads have emptied what the pipe held when the command ended.
                READING => held && begun.elapsed() >= DRAIN,
                _ => {
                    held && begun.elapsed() >= DRAIN
                        && pump.reads.load(Ordering::Acquire) >= before + EMPTIED
                }
            }
        });
        if done || begun.elapsed() >= DRAIN_ALL {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    for pump in pumps {
        pump.stop.store(true, Ordering::Release);
    }
}
