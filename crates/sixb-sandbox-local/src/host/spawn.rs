//! Starts the helper and waits until its sandbox is up.

use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sixb_sandbox::{Result, SandboxError};
use tokio::io::unix::AsyncFd;

use super::image;
use crate::{
    helper::ARGV0,
    plan::Plan,
    protocol::{ToHost, receive},
};

/// A healthy machine needs some 10 ms; a loaded one gets time.
const BOOT_DEADLINE: Duration = Duration::from_secs(20);

/// A sandbox that is up.
pub(super) struct Booted {
    pub(super) control: AsyncFd<OwnedFd>,
    pub(super) init: InitProcess,
    pub(super) landlock_abi: u32,
    /// What the plan asked to be handed over.
    pub(super) handed: Vec<OwnedFd>,
}

/// Process 1 of a sandbox, seen from outside. Killed when dropped.
#[derive(Debug)]
pub(super) struct InitProcess {
    pub(super) pid: i32,
    fd: OwnedFd,
    /// Without a pid namespace nothing ends with this process. It has to end the others first: it does once this
    /// connection is hung up.
    leash: Option<OwnedFd>,
}

/// How long a supervisor without a namespace may take to end all that descends from it.
const UNLEASHED: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

impl InitProcess {
    /// Kills it, and with it every process of the sandbox. Does not wait.
    pub(super) fn kill(&self) {
        if let Some(leash) = &self.leash {
            let _ = rustix::net::shutdown(leash, rustix::net::Shutdown::Both);
            return;
        }
        let _ = rustix::process::pidfd_send_signal(&self.fd, rustix::process::Signal::KILL);
    }

    /// Waits, blocking, until the kernel has torn everything down.
    pub(super) fn reap(&self) -> io::Result<()> {
        if self.leash.is_some() {
            let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
            if rustix::event::poll(&mut fds, Some(&UNLEASHED)) == Ok(0) {
                let _ = rustix::process::pidfd_send_signal(&self.fd, rustix::process::Signal::KILL);
            }
        }
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        loop {
            match waitid(
                WaitId::PidFd(std::os::fd::AsFd::as_fd(&self.fd)),
                WaitIdOptions::EXITED,
            ) {
                // ECHILD: somebody else in this program reaped it.
                Ok(_) | Err(rustix::io::Errno::CHILD) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for InitProcess {
    fn drop(&mut self) {
        self.kill();
        // Bounded: the kernel ends the processes of the namespace at once.
        let _ = self.reap();
    }
}

/// Starts the helper with `plan`. Dropping the future ends what was started.
pub(super) async fn boot(program: &Path, plan: &Plan) -> Result<Booted> {
    let io = |error: io::Error| SandboxError::io("start the sandbox helper", error);
    let json = serde_json::to_vec(plan).map_err(|error| io(error.into()))?;
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|error| io(error.into()))?;
    rustix::io::ioctl_fionbio(&ours, true).map_err(|error| io(error.into()))?;
    let program = program.to_owned();
    let helper = tokio::task::spawn_blocking(move || -> io::Result<Helper> {
        let image = image::sealed(&program)?;
        let plan = image::memory(c"sixb-plan", &json)?;
        // No hook runs between fork and exec, so the standard library may use vfork: the cost does not grow with this
        // process.
        let child = Command::new(format!("/proc/self/fd/{}", image.as_raw_fd()))
            .arg0(ARGV0)
            .env_clear()
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(plan))
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Helper(Some(child)))
    })
    .await
    .map_err(|error| io(io::Error::other(error)))?
    .map_err(io)?;
    let leash = match plan.unisolated {
        true => Some(ours.try_clone().map_err(io)?),
        false => None,
    };
    // SAFETY: an `OwnedFd` is one open descriptor for as long as it lives, and nobody takes it out of the `AsyncFd`.
    let control = unsafe { AsyncFd::register(ours) }.map_err(|error| io(error.into()))?;
    let booted = tokio::time::timeout(BOOT_DEADLINE, handshake(control, leash)).await;
    drop(helper);
    booted.unwrap_or(Err(SandboxError::Timeout {
        op: "create the sandbox",
        after: BOOT_DEADLINE,
    }))
}

/// The helper process: ends by itself, and is ended and reaped in any case.
struct Helper(Option<std::process::Child>);

impl Drop for Helper {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for the two messages that make a sandbox, in any order: the helper hands over the init process, and that one
/// says that it is ready, or why not. Once init exists it is always received, so that it is always reaped.
async fn handshake(control: AsyncFd<OwnedFd>, mut leash: Option<OwnedFd>) -> Result<Booted> {
    let (mut init, mut outcome) = (None, None);
    loop {
        match next(&control)
            .await
            .map_err(|error| SandboxError::io("create the sandbox", error))?
        {
            Some((ToHost::Init { pid }, mut fds)) => {
                let leash = leash.take();
                init = fds.pop().map(|fd| InitProcess { pid, fd, leash });
            }
            Some((ToHost::Ready { landlock_abi }, handed)) => {
                outcome = Some(Ok((landlock_abi, handed)))
            }
            Some((
                ToHost::BootFailed {
                    stage,
                    errno,
                    detail,
                },
                _,
            )) => outcome = Some(Err(explain(&stage, errno, &detail))),
            Some(_) | None => {
                return Err(outcome.and_then(Result::err).unwrap_or_else(ended_early));
            }
        }
        if init.is_some()
            && let Some(outcome) = outcome.take()
        {
            let (landlock_abi, handed) = outcome?;
            let init = init.take().ok_or_else(ended_early)?;
            return Ok(Booted {
                control,
                init,
                landlock_abi,
                handed,
            });
        }
    }
}

/// The next message of the supervisor; `None` once it is gone.
pub(super) async fn next(control: &AsyncFd<OwnedFd>) -> io::Result<Option<(ToHost, Vec<OwnedFd>)>> {
    loop {
        let mut ready = control.readable().await?;
        match ready.try_io(|fd| receive(fd.get_ref())) {
            Ok(result) => return result,
            Err(_would_block) => {}
        }
    }
}

fn ended_early() -> SandboxError {
    SandboxError::provider(
        "create the sandbox",
        "the helper ended without a word: `sixb_sandbox_local::init()` must come first in `main`, before anything that starts threads; an installed helper must be of the same version",
        None,
    )
}

/// Turns a failed stage into what the operator can do.
fn explain(stage: &str, errno: Option<i32>, detail: &str) -> SandboxError {
    let remedy = match (stage, errno) {
        (stage, Some(libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EINVAL | libc::ENOSYS))
            if stage.contains("user namespace") || stage.contains("map the user") =>
        {
            "Allow unprivileged user namespaces: `sysctl -w kernel.unprivileged_userns_clone=1` (Debian), `sysctl -w \
             kernel.apparmor_restrict_unprivileged_userns=0` or an AppArmor profile (Ubuntu), `sysctl -w \
             user.max_user_namespaces=10000`; in a container, also a seccomp profile that allows `unshare`. Or use another \
             sandbox provider"
        }
        (stage, Some(libc::EPERM)) if stage.contains("/proc") => {
            "A container hides parts of /proc, so the kernel refuses a fresh one: run it with `--security-opt \
             systempaths=unconfined` (docker) or `procMount: Unmasked` (Kubernetes). Or use another sandbox provider"
        }
        (stage, Some(libc::EINVAL | libc::EPERM | libc::EOPNOTSUPP))
            if stage.contains("id-mapped") =>
        {
            "This file system cannot be id-mapped: give the folder to that user (chown), or run as the folder's owner instead \
             of root"
        }
        _ => {
            "See docs/security.md for what the local sandbox needs, or use another sandbox provider"
        }
    };
    SandboxError::IsolationUnavailable {
        what: format!("could not {stage}: {detail}"),
        remedy: remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_names_its_remedy() {
        for (stage, errno, remedy) in [
            (
                "create a user namespace",
                libc::EPERM,
                "user.max_user_namespaces",
            ),
            (
                "create a user namespace",
                libc::ENOSPC,
                "user.max_user_namespaces",
            ),
            ("mount a fresh /proc", libc::EPERM, "systempaths=unconfined"),
            (
                "mount \"/w\", which belongs to user 0, for user 65534 (id-mapped mount)",
                libc::EINVAL,
                "chown",
            ),
        ] {
            let error = explain(stage, Some(errno), "Operation not permitted").to_string();
            assert!(error.contains(stage) && error.contains(remedy), "{error}");
        }
    }
}
