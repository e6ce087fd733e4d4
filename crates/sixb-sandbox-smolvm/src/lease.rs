//! Leases: who owns which machine, so that the leavings of a dead owner can be found and removed.
//!
//! A sandbox's folder holds `lease.json`, locked (`flock`) by the owner for as long as it lives. The kernel drops the
//! lock when the owner dies, however it dies; no process id has to be trusted for that.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

const LEASE: &str = "lease.json";
/// Every machine and every folder of ours is named so.
pub(crate) const PREFIX: &str = "sixb-";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Content {
    pub(crate) owner_pid: u32,
    pub(crate) created_at: u64,
}

/// A sandbox's folder on the host, held by this process for as long as the value lives.
#[derive(Debug)]
pub(crate) struct Lease {
    folder: PathBuf,
    /// Taken by whoever removes the folder.
    file: Mutex<Option<File>>,
}

/// The right, and the duty, to remove a sandbox's folder. The lease stays locked until that is done.
#[derive(Debug)]
pub(crate) struct Leavings {
    folder: PathBuf,
    _lock: File,
}

impl Leavings {
    /// Removes the folder and gives the lease up. Blocking.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}

/// Makes a folder for this user alone. One that another user laid ready would let that user look in.
pub(crate) fn own_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    if fs::metadata(folder)?.uid() != fs::metadata("/proc/self")?.uid() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} belongs to another user: name another state directory",
                folder.display()
            ),
        ));
    }
    Ok(())
}

impl Lease {
    /// Makes the folder of sandbox `id` below `leases` and takes its lease. Blocking.
    pub(crate) fn take(leases: &Path, id: &str) -> io::Result<Self> {
        own_folder(leases)?;
        // Made under another name and renamed once it is locked: no sweep ever sees it without an owner.
        let making = leases.join(format!(".new-{id}"));
        DirBuilder::new().mode(0o700).create(&making)?;
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(making.join(LEASE))?;
        file.lock()?;
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let content = Content {
            owner_pid: std::process::id(),
            created_at: now.as_secs(),
        };
        serde_json::to_writer(&file, &content)?;
        let folder = leases.join(id);
        fs::rename(&making, &folder)?;
        Ok(Self {
            folder,
            file: Mutex::new(Some(file)),
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Hands the folder over for removal; `None` when that was done before.
    pub(crate) fn take_folder(&self) -> Option<Leavings> {
        let lock = self
            .file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        Some(Leavings {
            folder: self.folder.clone(),
            _lock: lock,
        })
    }
}

/// A sandbox's folder as another process sees it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) id: String,
    pub(crate) content: Option<Content>,
    /// Held when the owner is dead.
    pub(crate) leavings: Option<Leavings>,
}

/// All folders of ours. Blocking.
pub(crate) fn found(leases: &Path) -> io::Result<Vec<Found>> {
    let entries = match fs::read_dir(leases) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let id = name.strip_prefix(".new-").unwrap_or(&name).to_owned();
        // Only what this crate names is ever touched.
        if !id.starts_with(PREFIX) || !entry.file_type()?.is_dir() {
            continue;
        }
        let folder = entry.path();
        let (lock, content) = match OpenOptions::new()
            .read(true)
            .write(true)
            .open(folder.join(LEASE))
        {
            Ok(file) => {
                let content = io::read_to_string(&file)
                    .ok()
                    .and_then(|text| serde_json::from_str(&text).ok());
                match file.try_lock() {
                    Ok(()) => (Some(file), content),
                    Err(TryLockError::WouldBlock | TryLockError::Error(_)) => (None, content),
                }
            }
            // Being made just now, or half removed: an old one is a leaving.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if age(&folder) < Duration::from_secs(60) {
                    continue;
                }
                (File::open(&folder).ok(), None)
            }
            Err(_) => continue,
        };
        all.push(Found {
            id,
            content,
            leavings: lock.map(|lock| Leavings {
                folder,
                _lock: lock,
            }),
        });
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(all)
}

fn age(folder: &Path) -> Duration {
    let modified = fs::metadata(folder).and_then(|metadata| metadata.modified());
    modified
        .ok()
        .and_then(|modified| modified.elapsed().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_owner_keeps_its_folder_and_a_dead_one_leaves_it() {
        let state = tempfile::tempdir().expect("folder");
        let lease = Lease::take(state.path(), "sixb-1-a").expect("lease");
        assert!(found(state.path()).expect("found")[0].leavings.is_none());
        drop(lease);
        let dead = found(state.path()).expect("found").remove(0);
        assert_eq!(
            (
                dead.id.as_str(),
                dead.content.map(|content| content.owner_pid)
            ),
            ("sixb-1-a", Some(std::process::id()))
        );
        dead.leavings
            .expect("nobody holds it")
            .remove()
            .expect("removed");
        assert!(found(state.path()).expect("found").is_empty());
    }

    #[test]
    fn foreign_folders_are_never_touched() {
        let state = tempfile::tempdir().expect("folder");
        fs::create_dir(state.path().join("precious")).expect("folder");
        assert!(found(state.path()).expect("found").is_empty());
    }
}
