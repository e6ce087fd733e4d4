//! The helper: from a plan to a hardened supervisor, before any thread exists.
//!
//! 1. As root only: clone the host folders (id-mapped where needed), then become an unprivileged user.
//! 2. Enter new namespaces, make the init process as a sibling, hand its pidfd to the host, end.
//! 3. Init builds the file view, pivots into it, drops everything, and turns into the supervisor.

mod hand_over;
mod harden;
mod kernel;
mod namespaces;
mod trees;
mod view;

pub(crate) use namespaces::fork;

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::{io::Errno, stdio};

use crate::{
    plan::Plan,
    protocol::{MAX_REQUEST, ToHost, send},
    supervisor,
};

/// `argv[0]` of the helper. The plan is its stdout, the control socket its stdin: no flag can be confused with a
/// user's, and no descriptor number has to be passed.
pub(crate) const ARGV0: &str = "sixb-sandbox-helper";

/// What could not be done, and why.
#[derive(Debug)]
pub(crate) struct Failure {
    stage: String,
    error: io::Error,
}

pub(crate) trait Stage<T> {
    /// Names what was being done.
    fn stage(self, stage: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> Stage<T> for Result<T, E> {
    fn stage(self, stage: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            stage: stage(),
            error: error.into(),
        })
    }
}

/// Runs the helper on its standard descriptors. Never returns.
pub(crate) fn main() -> ! {
    close_inherited();
    let outcome = rustix::io::fcntl_dupfd_cloexec(stdio::stdin(), 10)
        .map_err(io::Error::from)
        .and_then(|control| {
            Ok((
                control,
                rustix::io::fcntl_dupfd_cloexec(stdio::stdout(), 10)?,
            ))
        });
    // Without the two descriptors there is nobody to tell.
    let Ok((control, plan)) = outcome else {
        std::process::exit(70)
    };
    let told = control.try_clone();
    let Err(failure) = enter(control, &plan);
    if let Ok(control) = told {
        let message = ToHost::BootFailed {
            stage: failure.stage,
            errno: failure.error.raw_os_error(),
            detail: failure.error.to_string(),
        };
        // A host that is gone needs no answer.
        let _ = send(control.as_fd(), &message, &[]);
    }
    std::process::exit(71)
}

fn enter(control: OwnedFd, plan: &OwnedFd) -> Result<std::convert::Infallible, Failure> {
    let plan: Plan = read_json(plan.as_fd()).stage(|| "read the plan".into())?;
    null_stdio().stage(|| "open /dev/null".into())?;
    harden::no_core_dumps();
    rustix::process::setsid().stage(|| "start a session".into())?;
    if plan.unisolated {
        return without_walls(control, plan);
    }
    let mut trees = Vec::new();
    if plan.drop_to.is_some() {
        // Privileged: while the host's paths can still be walked.
        trees = trees::clone_all(&plan)?;
    }
    namespaces::enter(plan.drop_to, plan.host_network)?;
    let Some(pidfd) = namespaces::fork_init()? else {
        // In the sandbox from here on.
        if plan.drop_to.is_none() {
            trees = trees::clone_all(&plan)?;
        }
        view::build(&mut kernel::Linux::new(trees), &plan)?;
        let handed = hand_over::open(&plan)?;
        let landlock_abi = harden::harden(&plan)?;
        supervisor::main(control, landlock_abi, handed, plan.limits);
    };
    introduce(&control, &pidfd)
}

/// Hands the supervisor over to the host, and ends.
fn introduce(
    control: &OwnedFd,
    init: &namespaces::Init,
) -> Result<std::convert::Infallible, Failure> {
    let message = ToHost::Init { pid: init.pid };
    send(control.as_fd(), &message, &[init.fd.as_fd()])
        .stage(|| "hand over the init process".into())?;
    std::process::exit(0)
}

/// The same supervisor without any isolation: only who descends from it, and deadlines, are as elsewhere.
fn without_walls(control: OwnedFd, plan: Plan) -> Result<std::convert::Infallible, Failure> {
    let Some(init) = namespaces::fork_init()? else {
        // In place of a pid namespace: what loses its parent becomes a child of this process.
        let me = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(me)).stage(|| "become a subreaper".into())?;
        let _ = rustix::thread::set_name(supervisor::SUPERVISOR_NAME);
        supervisor::main(control, 0, Vec::new(), plan.limits);
    };
    introduce(&control, &init)
}

/// What the host program holds without close-on-exec (a shell's redirections, a C library's files) would go on to every
/// command: open files of the host, whatever the file view shows.
fn close_inherited() {
    let first = stdio::stderr().as_raw_fd() + 1;
    // SAFETY: plain numbers. Nothing of this process has opened a descriptor yet: the hook comes first.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    if closed != 0 {
        // Nobody to tell yet, and no sandbox without this: the host sees that the helper ended.
        std::process::exit(72)
    }
}

/// Reads a whole JSON value from a memfd, at most [`MAX_REQUEST`] bytes.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(fd: BorrowedFd<'_>) -> io::Result<T> {
    let size = rustix::fs::fstat(fd)?.st_size;
    let size = u64::try_from(size).ok().filter(|size| *size <= MAX_REQUEST);
    let mut bytes = vec![0; size.ok_or(io::ErrorKind::InvalidData)? as usize];
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(fd, &mut bytes[done..], done as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(serde_json::from_slice(&bytes)?)
}

/// The standard descriptors carried plan and socket: nothing of them may reach a command.
fn null_stdio() -> Result<(), Errno> {
    let null = rustix::fs::open(
        "/dev/null",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    stdio::dup2_stdin(&null)?;
    stdio::dup2_stdout(&null)?;
    stdio::dup2_stderr(&null)
}
