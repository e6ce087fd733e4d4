//! Listing and snapshots: walks that never follow a link.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    fs::{AtFlags, Dir, OFlags},
    io::Errno,
};
use sixb_sandbox::{
    DirEntry, FileKind, FileStat, ListOptions, Result, SandboxError, SandboxPath, Snapshot,
    SnapshotOptions,
};

use super::{Files, describe, named, removal::open_folder, wrong_kind};

/// Folders below folders: deeper ones are refused, since a walk holds a descriptor for each level.
const MAX_DEPTH: usize = 128;
/// Folders that a walk still has to enter: a guest may make any number of them.
const MAX_AHEAD: usize = 1 << 20;

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
        // By the folder above, and opened only when their turn comes: one descriptor for each would take all that the
        // process has.
        let mut ahead: Vec<(SandboxPath, Arc<OwnedFd>, Vec<u8>)> = Vec::new();
        let mut here = Some((path.clone(), Arc::new(start)));
        while let Some((path, folder)) = here {
            for name in names(&folder).map_err(|error| named(&path, error.into()))? {
                let name = name.map_err(|error| named(&path, error.into()))?;
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
                    if ahead.len() == MAX_AHEAD {
                        return Err(too_many("folders of a listing", MAX_AHEAD));
                    }
                    ahead.push((below.clone(), folder.clone(), name));
                }
                each(DirEntry::new(below, stat))?;
            }
            here = loop {
                let Some((path, above, name)) = ahead.pop() else {
                    break None;
                };
                match open_folder(above.as_fd(), &name) {
                    Ok(folder) => break Some((path, Arc::new(folder))),
                    // Swapped for a link, removed, or closed to the owner: listed, not entered.
                    Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT | Errno::ACCESS) => {}
                    Err(error) => return Err(named(&path, error.into())),
                }
            };
        }
        Ok(())
    }
}

/// The entries of a folder, without `.` and `..`, one by one: a guest may make any number of them.
fn names(folder: &OwnedFd) -> Result<impl Iterator<Item = Result<Vec<u8>, Errno>>, Errno> {
    // `Dir` opens the folder anew: the position in it is not shared.
    let entries = Dir::read_from(folder)?.map(|entry| Ok(entry?.file_name().to_bytes().to_vec()));
    Ok(entries.filter(|name| !matches!(name.as_deref(), Ok(b"." | b".."))))
}

fn too_many(what: &str, limit: usize) -> SandboxError {
    SandboxError::LimitExceeded {
        what: what.to_owned(),
        limit: limit as u64,
        actual: None,
    }
}
