//! Detached copies of host folders, and id-mapping them.

use std::{
    fs,
    io::{self, Read, Write},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{CWD, Mode, OFlags},
    mount::{OpenTreeFlags, open_tree},
    thread::UnshareFlags,
};

use super::{Failure, Stage, namespaces::fork};
use crate::plan::{HostUser, Plan, Tree};

/// Attributes of a mount, to set recursively.
pub(super) const RDONLY: u64 = 0x1;
pub(super) const NOSUID: u64 = 0x2;
pub(super) const NODEV: u64 = 0x4;
const IDMAP: u64 = 0x0010_0000;

/// Clones each tree. As root this comes before the drop of privileges.
pub(super) fn clone_all(plan: &Plan) -> Result<Vec<OwnedFd>, Failure> {
    plan.trees
        .iter()
        .map(|tree| clone_one(tree, plan.drop_to))
        .collect()
}

fn clone_one(tree: &Tree, drop_to: Option<HostUser>) -> Result<OwnedFd, Failure> {
    let at = || format!("open {:?}", tree.source);
    let mount = clone_path(&tree.source, true).stage(at)?;
    let read_only = if tree.read_only { RDONLY } else { 0 };
    set_attributes(mount.as_fd(), NOSUID | NODEV | read_only, None).stage(at)?;
    if let (Some(owner), Some(user)) = (tree.owned_by, drop_to) {
        let namespace = id_map(owner, user).stage(|| "make an id map".into())?;
        set_attributes(mount.as_fd(), IDMAP, Some(namespace.as_fd())).stage(|| {
            format!(
                "mount {:?}, which belongs to user {}, for user {} (id-mapped mount)",
                tree.source, owner.uid, user.uid
            )
        })?;
    }
    Ok(mount)
}

/// A detached copy of the mount at `path`.
pub(super) fn clone_path(path: &str, recursive: bool) -> rustix::io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    open_tree(CWD, path, flags)
}

/// Sets attributes on a detached mount and all below it.
pub(super) fn set_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    userns: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    #[repr(C)]
    struct MountAttr {
        attr_set: u64,
        attr_clr: u64,
        propagation: u64,
        userns_fd: u64,
    }
    let attr = MountAttr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: userns.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is a C string, `attr` has the layout of `struct mount_attr` (version 0) and its size is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A user namespace whose map says: what belongs to `disk` on disk shows as `shown`.
fn id_map(disk: HostUser, shown: HostUser) -> io::Result<OwnedFd> {
    let (ready, readies) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let (hold, holds) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let Some(child) = fork(0)? else {
        drop((ready, holds));
        // SAFETY: this child has one thread and ends soon.
        let entered = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) };
        if entered.is_ok() {
            let _ = fs::File::from(readies).write_all(b"1");
            let _ = fs::File::from(hold).read(&mut [0]);
        }
        std::process::exit(0)
    };
    drop((readies, hold));
    let map = || -> io::Result<OwnedFd> {
        fs::File::from(ready).read_exact(&mut [0])?;
        let process = format!("/proc/{}", child.as_raw_nonzero());
        fs::write(
            format!("{process}/uid_map"),
            format!("{} {} 1", disk.uid, shown.uid),
        )?;
        fs::write(
            format!("{process}/gid_map"),
            format!("{} {} 1", disk.gid, shown.gid),
        )?;
        Ok(rustix::fs::open(
            format!("{process}/ns/user"),
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?)
    };
    let namespace = map();
    drop(holds);
    rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty())?;
    namespace
}
