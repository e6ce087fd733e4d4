//! Listing, snapshots and removal: walks that never follow a link.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags},
    io::Errno,
};
use sixb_sandbox::{
    DirEntry, FileKind, FileStat, ListOptions, Result, SandboxError, SandboxPath, Snapshot,
    SnapshotOptions,
};

use super::{Files, describe, named, resolve::beneath, wrong_kind};

/// Folders below folders: deeper ones are refused, so that a walk holds few descriptors.
const MAX_DEPTH: usize = 128;

impl Files {
    /// The entries of a folder, sorted by path.
    pub(crate) fn list(&self, path: &SandboxPath, options: ListOptions) -> Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        self.walk_entries(path, options.recursive, &[], |entry| {
            if entries.len() == options.limit {
                return Err(too_many("entries of a listing", options.limit));
            }
            entries.push(entry);
            Ok(())
        })?;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// All regular files.
    pub(crate) fn snapshot(&self, options: &SnapshotOptions) -> Result<Snapshot> {
        let mut files = BTreeMap::new();
        self.walk_entries(&SandboxPath::root(), true, &options.skip, |entry| {
            if entry.stat.kind != FileKind::File {
                return Ok(());
            }
            if files.len() == options.limit {
                return Err(too_many("files of a snapshot", options.limit));
            }
            files.insert(entry.path, entry.stat);
            Ok(())
        })?;
        Ok(Snapshot::new(files))
    }

    fn walk_entries(
        &self,
        path: &SandboxPath,
        recursive: bool,
        skip: &[String],
        mut each: impl FnMut(DirEntry) -> Result<()>,
    ) -> Result<()> {
        let _acting = self.acting()?;
        let found = self.resolve(path, OFlags::PATH)?;
        let stat = describe(&rustix::fs::fstat(&found).map_err(|error| named(path, error.into()))?);
        if stat.kind != FileKind::Directory {
            return Err(wrong_kind(path, stat.kind, FileKind::Directory));
        }
        let start = open_folder(found.as_fd(), b".").map_err(|error| named(path, error.into()))?;
        let mut folders = vec![(path.clone(), start)];
        while let Some((path, folder)) = folders.pop() {
            for name in names(&folder).map_err(|error| named(&path, error.into()))? {
                let Ok(stat) =
                    rustix::fs::statat(&folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)
                else {
                    // Removed meanwhile.
                    continue;
                };
                // A name that is too long for a path of ours is too long for Linux, too.
                let Ok(below) = path.join(&name) else {
                    continue;
                };
                let stat: FileStat = describe(&stat);
                let skipped = skip.iter().any(|skip| skip.as_bytes() == name);
                if stat.kind == FileKind::Directory && recursive && !skipped {
                    if below.components().count() > MAX_DEPTH {
                        return Err(too_many("depth of folders", MAX_DEPTH));
                    }
                    match open_folder(folder.as_fd(), &name) {
                        Ok(next) => folders.push((below.clone(), next)),
                        // Swapped for a link, removed, or closed to the owner: listed, not entered.
                        Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT | Errno::ACCESS) => {}
                        Err(error) => return Err(named(&below, error.into())),
                    }
                }
                each(DirEntry::new(below, stat))?;
            }
        }
        Ok(())
    }

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
        remove_at(folder.as_fd(), name, 0).map_err(|error| named(path, error.into()))
    }
}

fn remove_at(folder: BorrowedFd<'_>, name: &[u8], depth: usize) -> Result<(), Errno> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) if depth < MAX_DEPTH => {}
        Err(error) => return Err(error),
    }
    // The guest may add entries meanwhile: a bounded number of rounds.
    for _ in 0..16 {
        let below = open_folder(folder, name)?;
        for entry in names(&below)? {
            remove_at(below.as_fd(), &entry, depth + 1)?;
        }
        match rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(()),
            result => return result,
        }
    }
    Err(Errno::NOTEMPTY)
}

fn open_folder(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    beneath(
        parent,
        name,
        flags,
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
}

fn names(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    // A descriptor of its own: the position in the folder must not be shared.
    let folder = rustix::fs::openat(
        folder,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut names = Vec::new();
    for entry in Dir::new(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

fn too_many(what: &str, limit: usize) -> SandboxError {
    SandboxError::LimitExceeded {
        what: what.to_owned(),
        limit: limit as u64,
        actual: None,
    }
}
