//! New namespaces, the id map, and the init process.

use std::{
    fs,
    io::{self, Read, Write},
    os::fd::{FromRawFd, OwnedFd},
};

use rustix::{
    process::{Gid, Uid},
    thread::UnshareFlags,
};

use super::{Failure, Stage};
use crate::plan::{GUEST_ID, HostUser};

/// Becomes `drop_to`, where given, and enters new namespaces with one mapped id.
pub(super) fn enter(drop_to: Option<HostUser>, host_network: bool) -> Result<(), Failure> {
    let user = drop_to.unwrap_or(HostUser {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    });
    // A user who drops from root is not dumpable, so it cannot write its own map: and must not become dumpable, or a
    // process of the same user could attach to it. A child that is still root writes the map.
    let mapper = drop_to
        .map(|_| Mapper::start())
        .transpose()
        .stage(|| "fork".into())?;
    if let Some(user) = drop_to {
        become_user(user).stage(|| format!("become user {} and group {}", user.uid, user.gid))?;
    }
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if !host_network {
        flags |= UnshareFlags::NEWNET;
    }
    // SAFETY: no thread exists, and no descriptor table or address space is unshared.
    unsafe { rustix::thread::unshare_unsafe(flags) }.stage(|| "create a user namespace".into())?;
    match mapper {
        Some(mapper) => mapper.map(user),
        None => write_maps("/proc/self", user),
    }
    .stage(|| "map the user into the namespace".into())
}

fn become_user(user: HostUser) -> rustix::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)
}

fn write_maps(process: &str, user: HostUser) -> io::Result<()> {
    // Else an unprivileged process may not write the group map (and could drop groups that deny it something).
    fs::write(format!("{process}/setgroups"), "deny")?;
    fs::write(
        format!("{process}/uid_map"),
        format!("{GUEST_ID} {} 1", user.uid),
    )?;
    fs::write(
        format!("{process}/gid_map"),
        format!("{GUEST_ID} {} 1", user.gid),
    )
}

/// A child that stays root and writes the id map of its parent.
struct Mapper {
    pid: rustix::process::Pid,
    order: fs::File,
}

impl Mapper {
    fn start() -> io::Result<Self> {
        let (order, orders) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let parent = rustix::process::getpid();
        match fork(0)? {
            Some(pid) => Ok(Self {
                pid,
                order: orders.into(),
            }),
            None => {
                drop(orders);
                let mut text = String::new();
                let done = fs::File::from(order)
                    .read_to_string(&mut text)
                    .and_then(|_| {
                        let mut ids = text
                            .split(' ')
                            .map(|id| id.parse::<u32>().map_err(io::Error::other));
                        let (Some(uid), Some(gid)) = (ids.next(), ids.next()) else {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        };
                        write_maps(
                            &format!("/proc/{}", parent.as_raw_nonzero()),
                            HostUser {
                                uid: uid?,
                                gid: gid?,
                            },
                        )
                    });
                let code = done.map_or_else(
                    |error| error.raw_os_error().unwrap_or(1).clamp(1, 255),
                    |()| 0,
                );
                std::process::exit(code)
            }
        }
    }

    fn map(mut self, user: HostUser) -> io::Result<()> {
        write!(self.order, "{} {}", user.uid, user.gid)?;
        drop(self.order);
        let status =
            rustix::process::waitpid(Some(self.pid), rustix::process::WaitOptions::empty())?;
        match status.and_then(|(_, status)| status.exit_status()) {
            Some(0) => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::Error::other(
                "the process that maps the user was killed",
            )),
        }
    }
}

/// The init process, as its parent sees it.
pub(super) struct Init {
    pub(super) pid: i32,
    pub(super) fd: OwnedFd,
}

/// Makes the first process of the new pid namespace, as a sibling: the host is its parent, and the helper can end.
/// `None` in the child.
pub(super) fn fork_init() -> Result<Option<Init>, Failure> {
    let mut pidfd: libc::c_int = -1;
    let flags = libc::CLONE_PARENT | libc::CLONE_PIDFD;
    // SAFETY: like fork: no stack, no shared memory; `pidfd` is a valid place for the descriptor (the third argument
    // of clone is where CLONE_PIDFD stores it). The process has one thread.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags | libc::SIGCHLD,
            0,
            &raw mut pidfd,
            0,
            0,
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()).stage(|| "create the init process".into()),
        0 => Ok(None),
        pid => {
            // SAFETY: the kernel just made this descriptor for us.
            let fd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Some(Init {
                pid: pid as i32,
                fd,
            }))
        }
    }
}

/// `fork` with extra clone flags. `None` in the child.
pub(crate) fn fork(flags: i32) -> io::Result<Option<rustix::process::Pid>> {
    // SAFETY: like fork: no stack is given and no memory shared. Callers have one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(rustix::process::Pid::from_raw(pid as i32))
}
