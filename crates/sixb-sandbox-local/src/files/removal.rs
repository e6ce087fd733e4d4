//! Removal of what a guest made: never through a link, however deep, and with few descriptors and little stack.

use std::{
    ffi::CStr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags},
    io::Errno,
};
use sixb_sandbox::{Result, SandboxError, SandboxPath};

use super::{Files, named, resolve::beneath};

/// So many levels are walked down; what lies deeper is first moved up. A guest makes hundreds of thousands of levels in a
/// second: a walk with a frame or a descriptor for each would end this process.
const LEVELS: usize = 64;
/// Entries of one folder that are held in memory at once.
const BATCH: usize = 4096;
/// Rounds without progress until it is given up.
const IDLE_ROUNDS: u32 = 16;
/// Most rounds while the guest lives, which may add entries as fast as they are removed.
const LIVE_ROUNDS: u32 = 4096;

impl Files {
    /// Removes a file, a link or a whole folder.
    pub(crate) fn remove(&self, path: &SandboxPath) -> Result<()> {
        self.check_writable(path)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(SandboxError::InvalidInput {
                field: "path",
                value: path.to_string(),
                reason: "is the working directory itself: remove what is in it".into(),
            });
        };
        let _acting = self.acting()?;
        let folder = match self.resolve(&parent, OFlags::PATH | OFlags::DIRECTORY) {
            Err(SandboxError::NotFound { .. }) => return Ok(()),
            folder => folder?,
        };
        remove(folder.as_fd(), name, LIVE_ROUNDS, false).map_err(|error| named(path, error.into()))
    }
}

/// Removes all that a dead guest left below `name`, also where it took rights away.
pub(crate) fn remove_leavings(folder: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    remove(folder, name, u32::MAX, true)
}

fn remove(
    folder: BorrowedFd<'_>,
    name: &[u8],
    most_rounds: u32,
    open_up: bool,
) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let (mut idle, mut rounds) = (0, 0);
    loop {
        let top = match open(folder, name, open_up) {
            Err(Errno::NOENT) => return Ok(()),
            top => top?,
        };
        let mut walk = Walk {
            top: top.as_fd(),
            open_up,
            done: 0,
        };
        walk.empty(top.as_fd(), 0)?;
        match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        idle = if walk.done == 0 { idle + 1 } else { 0 };
        rounds += 1;
        if idle == IDLE_ROUNDS || rounds == most_rounds {
            return Err(Errno::NOTEMPTY);
        }
    }
}

/// One round.
struct Walk<'a> {
    top: BorrowedFd<'a>,
    open_up: bool,
    /// Entries removed or moved.
    done: u64,
}

impl Walk<'_> {
    /// Removes what is in `folder`, as far as one round goes.
    fn empty(&mut self, folder: BorrowedFd<'_>, level: usize) -> Result<(), Errno> {
        for name in some_names(folder)? {
            match rustix::fs::unlinkat(folder, name.as_slice(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {
                    self.done += 1;
                    continue;
                }
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error),
            }
            let below = match open(folder, &name, self.open_up) {
                // Swapped meanwhile: the next round sees what it is now.
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => continue,
                below => below?,
            };
            if level < LEVELS {
                self.empty(below.as_fd(), level + 1)?;
            } else if !is_empty(&below)? {
                // In the top folder, which goes as a whole, any name does that nobody else chose.
                let moved = format!(".sixb-{}", ulid::Ulid::new());
                match rustix::fs::renameat(folder, name.as_slice(), self.top, &moved) {
                    Ok(()) => self.done += 1,
                    Err(Errno::NOENT) => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            match rustix::fs::unlinkat(folder, name.as_slice(), AtFlags::REMOVEDIR) {
                Ok(()) => self.done += 1,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Opens a folder that is about to be emptied; with `open_up`, its owner gets back the rights that this takes.
fn open(parent: BorrowedFd<'_>, name: &[u8], open_up: bool) -> Result<OwnedFd, Errno> {
    if !open_up {
        return open_folder(parent, name);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let found = beneath(
        parent,
        name,
        flags,
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )?;
    let stat = rustix::fs::fstat(&found)?;
    if stat.st_mode & 0o700 != 0o700 {
        // The very folder that was found, whatever its name stands for by now.
        let link = format!("/proc/self/fd/{}", found.as_raw_fd());
        rustix::fs::chmod(link, Mode::from_raw_mode(0o700))?;
    }
    open_folder(parent, name)
}

/// Opens a folder right below `parent` for reading, never through a link.
pub(super) fn open_folder(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    beneath(
        parent,
        name,
        flags,
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
}

fn some_names(folder: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if !is_dots(entry.file_name()) {
            names.push(entry.file_name().to_bytes().to_vec());
        }
        if names.len() == BATCH {
            break;
        }
    }
    Ok(names)
}

fn is_empty(folder: &OwnedFd) -> Result<bool, Errno> {
    for entry in Dir::read_from(folder)? {
        if !is_dots(entry?.file_name()) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}
