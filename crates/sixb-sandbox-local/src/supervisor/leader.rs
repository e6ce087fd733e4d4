//! One leader per command: a subreaper above it, so that its descendants can be told from those of other commands even
//! after they left their session or lost their parent.

use std::{
    ffi::CString,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, WaitOptions},
    stdio,
};
use serde::{Deserialize, Serialize};

use super::rlimits;
use crate::{
    helper::{fork, read_json},
    plan::Limits,
    protocol::{End, NotStarted, RunRequest},
};

/// The supervisor's view of a leader.
pub(super) struct Leader {
    pub(super) pid: Pid,
    /// Packets of [`Report`]; at its end when the leader is gone.
    pub(super) reports: OwnedFd,
}

/// Leader → supervisor, on a pipe that no command ever holds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// The command runs.
    Started,
    /// The command's own process ended.
    Ended(End),
    /// The working directory cannot be entered.
    Cwd(i32),
    /// No process could be made.
    Fork(i32),
}

impl Leader {
    /// The next report; `None` at the end. Reports are written whole and far apart: one read gets one.
    pub(super) fn read_report(&self) -> Option<Report> {
        let mut bytes = [0; 64];
        loop {
            match rustix::io::read(&self.reports, &mut bytes) {
                Ok(0) => return None,
                Ok(read) => return serde_json::from_slice(&bytes[..read]).ok(),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Starts a command: `fds` are stdin, stdout, stderr and the request.
///
/// `own` = processes of the supervisor's, with this new leader: they count against the user's limit, too.
pub(super) fn start(
    fds: Vec<OwnedFd>,
    limits: &Limits,
    own: u32,
) -> Result<(Leader, Option<Instant>), NotStarted> {
    let [stdin, stdout, stderr, request]: [OwnedFd; 4] =
        fds.try_into().map_err(|_| NotStarted::BadRequest)?;
    let request: RunRequest = read_json(request.as_fd()).map_err(|_| NotStarted::BadRequest)?;
    let prepared = Prepared::new(&request, limits, own).ok_or(NotStarted::BadRequest)?;
    let errno = |error: io::Error| NotStarted::Fork(error.raw_os_error().unwrap_or(libc::EAGAIN));
    let (reports, told) = rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|error| errno(error.into()))?;
    let deadline = request
        .deadline_ms
        .and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
    match fork(0).map_err(errno)? {
        Some(pid) => Ok((Leader { pid, reports }, deadline)),
        None => {
            drop(reports);
            lead(&prepared, [stdin, stdout, stderr], &told)
        }
    }
}

/// The leader's life: start the command, reap all below, tell how the command ended, end when nothing is left.
fn lead(prepared: &Prepared, stdio: [OwnedFd; 3], told: &OwnedFd) -> ! {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let (failed, failure) = match rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) {
        Ok(pipe) => pipe,
        Err(error) => end_with(told, &Report::Fork(error.raw_os_error())),
    };
    let command = match fork(0) {
        Ok(Some(pid)) => pid,
        Ok(None) => prepared.exec(&stdio, &failure),
        Err(error) => end_with(
            told,
            &Report::Fork(error.raw_os_error().unwrap_or(libc::EAGAIN)),
        ),
    };
    // From here on only the command and its descendants hold its pipes.
    drop(stdio);
    drop(failure);
    let mut errno = [0; 4];
    if let Ok(4) = rustix::io::read(&failed, &mut errno) {
        end_with(told, &Report::Cwd(i32::from_ne_bytes(errno)));
    }
    drop(failed);
    if prepared.tell_started {
        tell(told, &Report::Started);
    }
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => {
                let end = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => End::Code(code),
                    (None, Some(signal)) => End::Signal(signal),
                    (None, None) => End::Lost,
                };
                tell(told, &Report::Ended(end));
            }
            Ok(_) | Err(Errno::INTR) => {}
            // No children are left.
            Err(_) => std::process::exit(0),
        }
    }
}

fn tell(told: &OwnedFd, report: &Report) {
    if let Ok(bytes) = serde_json::to_vec(report) {
        let _ = rustix::net::send(told, &bytes, rustix::net::SendFlags::NOSIGNAL);
    }
}

fn end_with(told: &OwnedFd, report: &Report) -> ! {
    tell(told, report);
    std::process::exit(0)
}

/// A request in the form that `execve` takes.
struct Prepared {
    /// Where the program may be, in order.
    candidates: Vec<CString>,
    name: String,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
    tell_started: bool,
    limits: Limits,
    own: u32,
}

impl Prepared {
    fn new(request: &RunRequest, limits: &Limits, own: u32) -> Option<Self> {
        let text = |text: &String| CString::new(text.as_str()).ok();
        let name = request.argv.first()?.clone();
        let candidates = if name.contains('/') {
            vec![CString::new(name.as_str()).ok()?]
        } else {
            let path = request
                .env
                .iter()
                .find_map(|entry| entry.strip_prefix("PATH="))
                .unwrap_or_default();
            let folders = path.split(':').filter(|folder| folder.starts_with('/'));
            folders
                .filter_map(|folder| CString::new(format!("{folder}/{name}")).ok())
                .collect()
        };
        Some(Self {
            candidates,
            name,
            argv: request.argv.iter().map(text).collect::<Option<_>>()?,
            env: request.env.iter().map(text).collect::<Option<_>>()?,
            cwd: text(&request.cwd)?,
            tell_started: request.tell_started,
            limits: limits.clone(),
            own,
        })
    }

    /// Turns this process into the command.
    fn exec(&self, [stdin, stdout, stderr]: &[OwnedFd; 3], failure: &OwnedFd) -> ! {
        // A session of its own: no controlling terminal, so nothing can wait for a person (editors, ssh, git).
        let _ = rustix::process::setsid();
        let ready = stdio::dup2_stdin(stdin)
            .and_then(|()| stdio::dup2_stdout(stdout))
            .and_then(|()| stdio::dup2_stderr(stderr));
        let ready = ready.and_then(|()| rustix::process::chdir(self.cwd.as_c_str()));
        let ready = ready.and_then(|()| rlimits::apply(&self.limits, self.own));
        if let Err(error) = ready {
            let _ = rustix::io::write(failure, &error.raw_os_error().to_ne_bytes());
            std::process::exit(126);
        }
        // Rust's runtime ignores SIGPIPE; commands expect the default.
        // SAFETY: sets a default disposition, no handler is installed.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let argv = pointers(&self.argv);
        let env = pointers(&self.env);
        let mut worst = Errno::NOENT;
        for candidate in &self.candidates {
            // SAFETY: both arrays end with a null pointer and point to C strings that live until exec replaces us.
            unsafe { libc::execve(candidate.as_ptr(), argv.as_ptr(), env.as_ptr()) };
            let error = Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::NOENT);
            if error != Errno::NOENT && error != Errno::NOTDIR {
                worst = error;
            }
        }
        let (code, text) = match worst {
            Errno::NOENT => (127, "command not found".to_owned()),
            error => (126, io::Error::from(error).to_string()),
        };
        let _ = writeln!(io::stderr(), "sixb: {}: {text}", self.name);
        std::process::exit(code)
    }
}

fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts
        .iter()
        .map(|text| text.as_ptr())
        .chain([std::ptr::null()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_up_in_the_requests_own_path() {
        let request = |program: &str| RunRequest {
            argv: vec![program.into()],
            env: vec!["HOME=/x".into(), "PATH=/a:relative:/b".into()],
            cwd: "/".into(),
            deadline_ms: None,
            tell_started: false,
        };
        let limits = Limits::new(None, None, None);
        let candidates = |program: &str| {
            let prepared = Prepared::new(&request(program), &limits, 2).expect("prepared");
            prepared
                .candidates
                .iter()
                .map(|path| String::from_utf8_lossy(path.as_bytes()).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(candidates("ls"), ["/a/ls", "/b/ls"]);
        assert_eq!(candidates("./ls"), ["./ls"]);
        assert!(Prepared::new(&request("a\0b"), &limits, 2).is_none());
    }
}
