//! Programs that most commands need, brought from the shared root file system to the machine's own disk.
//!
//! The root of a machine is an overlay: below, a folder of the host that virtiofs shares; above, a disk of the machine.
//! virtiofs forgets what it read of a file each time the file is opened, so each `bash` asks the host for all of bash and
//! libc again. A file that was copied up is read from the machine's own memory: a shell starts in a sixth of the time.

use std::{fs, io, path::Path, process::Command};

use crate::cgroup;

/// What every shell needs, for the processors and the libcs that there are. Copied at once.
const SHELL: &[&str] = &[
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libtinfo.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/aarch64-linux-gnu/libtinfo.so.6",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
    "/etc/ld.so.cache",
    "/bin/bash",
    "/bin/sh",
    "/bin/busybox",
];
/// What commands call most. Copied while the machine has nothing else to do.
const MORE: &[&str] = &[
    "/usr/bin/sleep",
    "/usr/bin/cat",
    "/usr/bin/ls",
    "/usr/bin/mkdir",
    "/usr/bin/rm",
    "/usr/bin/head",
    "/usr/bin/grep",
    "/usr/bin/sed",
    "/usr/bin/env",
    "/usr/bin/python3",
    "/usr/bin/curl",
];
/// The word that makes this program copy [`MORE`].
pub(crate) const ROLE: &str = "bring";

/// Copies the shell up and has the rest copied by a process that gives way to all others. What is missing is not missed; a
/// machine whose root is not shared is left as it is.
pub(crate) fn bring() {
    if !root_is_shared(&fs::read_to_string("/proc/mounts").unwrap_or_default()) {
        return;
    }
    copy_all_up(SHELL);
    if let Ok(group) = cgroup::idle() {
        let rest = Command::new("/proc/self/exe").arg(ROLE).arg(group).spawn();
        let _ = rest.and_then(|mut rest| rest.wait());
    }
}

/// The rest, in this process, which enters `group` first.
pub(crate) fn bring_more(group: &Path) -> io::Result<()> {
    cgroup::enter(group)?;
    copy_all_up(MORE);
    Ok(())
}

fn copy_all_up(files: &[&str]) {
    for file in files {
        let _ = copy_up(Path::new(file));
    }
}

/// The smallest change that makes the overlay copy a file: the mode that it has already. Unlike an opening for writing
/// it also works on a program that runs, and stops none from being started.
fn copy_up(file: &Path) -> io::Result<()> {
    let found = fs::metadata(file)?;
    if found.is_file() {
        fs::set_permissions(file, found.permissions())?;
    }
    Ok(())
}

fn root_is_shared(mounts: &str) -> bool {
    let (mut overlay, mut shared) = (false, false);
    for line in mounts.lines() {
        match line.split(' ').take(3).collect::<Vec<_>>()[..] {
            [_, "/", "overlay"] => overlay = true,
            ["/dev/root", _, "virtiofs"] => shared = true,
            _ => {}
        }
    }
    overlay && shared
}
