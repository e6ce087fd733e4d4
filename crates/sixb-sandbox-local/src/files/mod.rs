//! File calls on a working directory, made by the host below one directory descriptor.
//!
//! The guest changes the tree at the same time and may plant links anywhere. So nothing is checked by name first and
//! opened by name later: each name is opened with `openat2` beneath the root, and what was opened is what is used.

mod identity;
mod listing;
mod removal;
mod resolve;
mod write;

use std::{
    fs::File,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::FileExt,
    },
    path::Path,
    time::Duration,
};

use bytes::Bytes;
use rustix::fs::{Mode, OFlags};
use sixb_sandbox::{ByteRange, FileKind, FileStat, Result, SandboxError, SandboxPath};

use crate::plan::HostUser;
use identity::Acting;

pub(crate) use removal::remove_leavings;
pub(crate) use write::write;

/// The working directory of one sandbox, seen from the host.
#[derive(Debug)]
pub(crate) struct Files {
    root: OwnedFd,
    /// Where it is in the guest: absolute links that point below this are links inside.
    guest: String,
    act_as: Option<HostUser>,
    read_only: bool,
}

impl Files {
    /// Opens the folder at `path`, which shows in the guest at `guest`.
    pub(crate) fn open(
        path: &Path,
        guest: &str,
        act_as: Option<HostUser>,
        read_only: bool,
    ) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| SandboxError::io("open the working directory", error.into()))?;
        Ok(Self::at(root, guest, act_as, read_only))
    }

    /// Works below `root`, which shows in the guest at `guest`.
    pub(crate) fn at(
        root: OwnedFd,
        guest: &str,
        act_as: Option<HostUser>,
        read_only: bool,
    ) -> Self {
        Self {
            root,
            guest: guest.to_owned(),
            act_as,
            read_only,
        }
    }

    fn acting(&self) -> Result<Acting> {
        Acting::begin(self.act_as)
            .map_err(|error| SandboxError::io("act as the owner of the working directory", error))
    }

    /// Opens a regular file for reading. Pipes, devices and sockets are described, never opened.
    pub(crate) fn open_regular(&self, path: &SandboxPath) -> Result<File> {
        let _acting = self.acting()?;
        let found = self.resolve(path, OFlags::PATH)?;
        let kind = kind_of(&rustix::fs::fstat(&found).map_err(|error| named(path, error.into()))?);
        if kind != FileKind::File {
            return Err(wrong_kind(path, kind, FileKind::File));
        }
        // The very file that was looked at, whatever its name stands for by now.
        let link = format!("/proc/self/fd/{}", found.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        let file = rustix::fs::open(link, flags, Mode::empty())
            .map_err(|error| named(path, error.into()))?;
        Ok(File::from(file))
    }

    /// Describes what a path names.
    pub(crate) fn stat(&self, path: &SandboxPath) -> Result<FileStat> {
        let _acting = self.acting()?;
        let found = self.resolve(path, OFlags::PATH)?;
        rustix::fs::fstat(&found)
            .map(|stat| describe(&stat))
            .map_err(|error| named(path, error.into()))
    }

    fn check_writable(&self, path: &SandboxPath) -> Result<()> {
        if self.read_only {
            return Err(SandboxError::PermissionDenied {
                path: format!("{path} (the working directory is read-only)"),
            });
        }
        Ok(())
    }
}

/// Reads `range`; shorter only at the end of the file.
pub(crate) fn read_range(file: &File, range: ByteRange) -> io::Result<Bytes> {
    let size = file.metadata()?.len();
    let len = usize::try_from(size.saturating_sub(range.offset))
        .unwrap_or(usize::MAX)
        .min(range.len);
    let mut bytes = vec![0; len];
    let mut done = 0;
    while done < len {
        match file.read_at(&mut bytes[done..], range.offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(done);
    Ok(bytes.into())
}

/// Describes an open file.
pub(crate) fn stat_of(file: &File) -> io::Result<FileStat> {
    Ok(describe(&rustix::fs::fstat(file)?))
}

fn kind_of(stat: &rustix::fs::Stat) -> FileKind {
    use rustix::fs::FileType;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => FileKind::Device,
        _ => FileKind::Other,
    }
}

fn describe(stat: &rustix::fs::Stat) -> FileStat {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let modified = Duration::new(
        seconds,
        u32::try_from(stat.st_mtime_nsec)
            .unwrap_or(0)
            .min(999_999_999),
    );
    // The change time moves with every write and cannot be set back by the guest; the inode tells a replaced file.
    let mut version = DefaultHasher::new();
    (
        stat.st_dev,
        stat.st_ino,
        stat.st_size,
        stat.st_mtime,
        stat.st_mtime_nsec,
        stat.st_ctime,
        stat.st_ctime_nsec,
    )
        .hash(&mut version);
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    FileStat::new(
        kind_of(stat),
        size,
        stat.st_mode & 0o7777,
        modified,
        version.finish(),
    )
}

fn wrong_kind(path: &SandboxPath, found: FileKind, expected: FileKind) -> SandboxError {
    SandboxError::WrongKind {
        path: path.to_string(),
        found,
        expected,
    }
}

/// An I/O error that names its path.
fn named(path: &SandboxPath, error: io::Error) -> SandboxError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => SandboxError::NotFound {
            what: "file",
            name: path.to_string(),
        },
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => SandboxError::PermissionDenied {
            path: path.to_string(),
        },
        Some(libc::EXDEV | libc::ELOOP) => SandboxError::PathEscape {
            path: path.to_string(),
            reason: "leaves the working directory through a symbolic link".into(),
        },
        Some(libc::ENOSPC | libc::EDQUOT) => {
            SandboxError::provider("a file call", format!("{path}: no space is left"), None)
        }
        _ => SandboxError::provider(
            "a file call",
            format!("{path}: {error}"),
            Some(std::sync::Arc::new(error)),
        ),
    }
}
