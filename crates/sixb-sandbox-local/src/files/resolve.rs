//! From a path to an open descriptor, never leaving the root, whatever the guest does meanwhile.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags},
    io::Errno,
};
use sixb_sandbox::{Result, SandboxError, SandboxPath};

use super::{Files, named};

/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

impl Files {
    /// Opens `path` with `flags`. Links are followed as long as they stay inside, relative or absolute in the guest.
    pub(super) fn resolve(&self, path: &SandboxPath, flags: OFlags) -> Result<OwnedFd> {
        let name = if path.is_root() {
            b"."
        } else {
            path.as_bytes()
        };
        match beneath(self.root.as_fd(), name, flags, ResolveFlags::BENEATH) {
            // An absolute link, or one that leaves: only the first kind may be inside.
            Err(Errno::XDEV) => self.walk(path, flags),
            Err(error) => Err(named(path, error.into())),
            Ok(fd) => Ok(fd),
        }
    }

    /// Resolves links by hand, since an absolute link inside the guest means another place than on the host.
    fn walk(&self, path: &SandboxPath, flags: OFlags) -> Result<OwnedFd> {
        let escape = || SandboxError::PathEscape {
            path: path.to_string(),
            reason: "leaves the working directory through a symbolic link".into(),
        };
        // Both parts are relative to the root; `done` holds no links.
        let mut done: Vec<Vec<u8>> = Vec::new();
        let mut rest: Vec<Vec<u8>> = path.components().rev().map(<[u8]>::to_vec).collect();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    done.pop().ok_or_else(escape)?;
                    continue;
                }
                _ => done.push(part),
            }
            let here = done.join(&b'/');
            let look = OFlags::PATH | OFlags::NOFOLLOW;
            let found = beneath(
                self.root.as_fd(),
                &here,
                look,
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
            )
            .map_err(|error| named(path, error.into()))?;
            let stat = rustix::fs::fstat(&found).map_err(|error| named(path, error.into()))?;
            if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::Symlink {
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(escape());
            }
            let target = rustix::fs::readlinkat(&found, "", Vec::new())
                .map_err(|error| named(path, error.into()))?;
            let mut target = target.as_bytes();
            done.pop();
            if target.first() == Some(&b'/') {
                let inside = target
                    .strip_prefix(self.guest.as_bytes())
                    .filter(|rest| matches!(rest.first(), None | Some(b'/')));
                target = inside.ok_or_else(escape)?;
                done.clear();
            }
            rest.extend(target.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
        }
        let here = if done.is_empty() {
            b".".to_vec()
        } else {
            done.join(&b'/')
        };
        // Whatever was swapped since is caught here: no link is followed any more.
        beneath(
            self.root.as_fd(),
            &here,
            flags,
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )
        .map_err(|error| named(path, error.into()))
    }
}

/// `openat2` beneath `root`. `EAGAIN` means that a rename raced with `..`: the kernel asks to try again.
pub(super) fn beneath(
    root: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC;
    for _ in 0..64 {
        match rustix::fs::openat2(
            root,
            name,
            flags,
            Mode::empty(),
            resolve | ResolveFlags::NO_MAGICLINKS,
        ) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            result => return result,
        }
    }
    Err(Errno::XDEV)
}
