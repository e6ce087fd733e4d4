//! Whose a folder of the host is while a run may write to it, and what to remove there if the run dies.
//!
//! `<state>/runs-open/<digest of the folder's path>.jsonl`: the first line names the run and the folder, the second one what
//! the run adds to it. The file is locked for as long as the run lives, so a second run in the folder is refused, and it goes
//! with the run. One that is there and not locked tells of a killed run: the next run in that folder, or a sweep, removes
//! what that one added. It lies outside of every workspace, and links in the folder are never followed.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use cap_fs_ext::{DirExt, MetadataExt, OpenOptionsFollowExt};
use cap_std::fs::{Dir, OpenOptions};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::layout;
use crate::{
    outputs::place::{enter, make_own, open_own},
    run::RunError,
};

const FOLDER: &str = "runs-open";
/// Longest record that is read, in bytes: a path and a dozen names are far below.
const MAX_RECORD: u64 = 64 << 10;

/// Where sixb keeps what outlives a process and is nobody's workspace: `$XDG_STATE_HOME/sixb`, else `~/.local/state/sixb`,
/// else a folder of this user below the temporary directory. None if that one belongs to somebody else.
pub fn state_folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    match state {
        Some(state) => Some(state.join("sixb")),
        None => temporary_state(&std::env::temp_dir()),
    }
}

/// Everybody may write to the temporary directory: a folder that is there already must be this user's.
#[cfg(unix)]
fn temporary_state(parent: &Path) -> Option<PathBuf> {
    use cap_std::fs::{DirBuilder, DirBuilderExt};
    let uid = {
        use std::os::unix::fs::MetadataExt;
        tempfile::tempfile_in(parent).ok()?.metadata().ok()?.uid()
    };
    let (name, temporary) = (format!("sixb-{uid}"), open_own(parent).ok()?);
    // Fails when it is there.
    let _ = temporary.create_dir_with(&name, DirBuilder::new().mode(0o700));
    let found = temporary
        .open_dir_nofollow(&name)
        .ok()?
        .dir_metadata()
        .ok()?;
    (cap_std::fs::MetadataExt::uid(&found) == uid).then(|| parent.join(name))
}

#[cfg(not(unix))]
fn temporary_state(_: &Path) -> Option<PathBuf> {
    None
}

/// A folder that was cleaned of what a killed run had added.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweptWorkspace {
    /// The run.
    pub run_id: String,
    /// The folder.
    pub workspace: PathBuf,
}

/// Removes from workspaces what killed runs have left there, by the records in the state folder. Runs that live keep theirs.
///
/// # Errors
/// The records cannot be listed. A folder that cannot be cleaned keeps its record, and the log says why.
pub fn sweep_workspaces(state: &Path) -> io::Result<Vec<SweptWorkspace>> {
    let folder = match open_own(&state.join(FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        folder => folder?,
    };
    let mut swept = Vec::new();
    for entry in folder.entries()? {
        let name = entry?.file_name();
        let swept_one = name
            .to_str()
            .filter(|name| name.ends_with(".jsonl"))
            .map(|name| sweep_one(&folder, name));
        match swept_one {
            Some(Ok(Some(found))) => swept.push(found),
            Some(Err(error)) => {
                tracing::warn!("{} is not swept: {error}", Path::new(&name).display());
            }
            Some(Ok(None)) | None => {}
        }
    }
    Ok(swept)
}

fn sweep_one(folder: &Dir, name: &str) -> io::Result<Option<SweptWorkspace>> {
    let Locked::Mine(mut file) = lock(folder, name, false)? else {
        return Ok(None);
    };
    let record = Record::read(&mut file)?;
    record.clean()?;
    folder.remove_file(name)?;
    Ok(record.owner.map(|owner| SweptWorkspace {
        run_id: owner.run_id,
        workspace: owner.workspace,
    }))
}

/// The right of one run to write to a folder of the host.
#[derive(Debug)]
pub(crate) struct Claim {
    folder: Dir,
    name: String,
    file: File,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    run_id: String,
    #[serde(with = "bytes_of_path")]
    workspace: PathBuf,
}

/// What the run adds, as paths of the workspace.
#[derive(Debug, Serialize, Deserialize)]
struct Added {
    added: Vec<String>,
}

#[derive(Debug, Default)]
struct Record {
    owner: Option<Owner>,
    added: Vec<String>,
}

impl Claim {
    /// Takes the folder, whose path has no links, and removes what a killed run has left there.
    pub(crate) fn take(state: &Path, workspace: &Path, run_id: &str) -> Result<Self, RunError> {
        let failed = |source| RunError::State {
            folder: state.join(FOLDER),
            source,
        };
        let folder = open_records(state).map_err(failed)?;
        let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
        let digest: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let name = format!("{digest}.jsonl");
        let mut file = match lock(&folder, &name, true).map_err(failed)? {
            Locked::Mine(file) => file,
            Locked::Other(mut file) => {
                let owner = Record::read(&mut file).ok().and_then(|record| record.owner);
                return Err(RunError::WorkspaceBusy {
                    workspace: workspace.to_owned(),
                    run_id: owner.map(|owner| owner.run_id),
                });
            }
            Locked::Gone => return Err(failed(io::ErrorKind::NotFound.into())),
        };
        let left = Record::read(&mut file).and_then(|record| record.clean());
        if let Err(error) = left {
            // Output files that stay are told apart by the run itself.
            tracing::warn!(
                "what a killed run left in {} stays: {error}",
                workspace.display()
            );
        }
        let owner = Owner {
            run_id: run_id.to_owned(),
            workspace: workspace.to_owned(),
        };
        file.set_len(0).map_err(failed)?;
        append(&file, &owner).map_err(failed)?;
        Ok(Self { folder, name, file })
    }

    /// Notes what the run is about to add.
    pub(crate) fn note(&self, missing: &[sixb_sandbox::SandboxPath]) -> io::Result<()> {
        let added = layout::to_remove(missing)
            .iter()
            .map(ToString::to_string)
            .collect();
        append(&self.file, &Added { added })
    }

    /// Ends the claim, once the sandbox is gone. What the run added and could not remove through the sandbox goes now.
    pub(crate) fn release(&self) {
        let released = Record::read(&mut &self.file)
            .and_then(|record| record.clean())
            .and_then(|()| self.folder.remove_file(&self.name));
        if let Err(error) = released {
            tracing::warn!("a workspace is not clean, a sweep will try again: {error}");
        }
    }
}

fn open_records(state: &Path) -> io::Result<Dir> {
    let (state, _) = make_own(state)?;
    Ok(enter(&state, FOLDER.as_ref())?.0)
}

enum Locked {
    Mine(File),
    Other(File),
    Gone,
}

/// Opens and locks a record. One that its owner removes meanwhile is no record any more.
fn lock(folder: &Dir, name: &str, create: bool) -> io::Result<Locked> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .append(true)
        .create(create)
        .follow(cap_fs_ext::FollowSymlinks::No);
    for _ in 0..100 {
        let opened = match folder.open_with(name, &options) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !create => {
                return Ok(Locked::Gone);
            }
            opened => opened?,
        };
        let inode = opened.metadata()?.ino();
        let file = opened.into_std();
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Locked::Other(file)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        match folder.symlink_metadata(name) {
            Ok(found) if found.ino() == inode => return Ok(Locked::Mine(file)),
            _ if create => {}
            _ => return Ok(Locked::Gone),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

fn append(mut file: &File, line: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(line)?;
    line.push(b'\n');
    file.write_all(&line)
}

impl Record {
    /// A killed owner may have left half a line: it had not added anything by then.
    fn read(mut file: impl Read + io::Seek) -> io::Result<Self> {
        let mut text = String::new();
        file.rewind()?;
        file.take(MAX_RECORD).read_to_string(&mut text)?;
        let mut lines = text.lines();
        let owner = lines
            .next()
            .and_then(|line| serde_json::from_str(line).ok());
        let added = lines
            .next()
            .and_then(|line| serde_json::from_str(line).ok());
        Ok(Self {
            owner,
            added: added.map(|Added { added }| added).unwrap_or_default(),
        })
    }

    /// Removes what was added. Of `.sixb` itself, which may hold more by now, only `agent`, and then what is empty.
    fn clean(&self) -> io::Result<()> {
        let Some(owner) = &self.owner else {
            return Ok(());
        };
        if self.added.is_empty() {
            return Ok(());
        }
        let workspace = match open_own(&owner.workspace) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            workspace => workspace?,
        };
        let known: Vec<_> = layout::made().map(|path| path.to_string()).collect();
        for path in &self.added {
            // Whatever the record says: nothing but what runs add.
            if !known.contains(path) {
                continue;
            }
            let root = path == ".sixb";
            match remove(&workspace, if root { layout::CONTEXT } else { path }) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            if root {
                // Fails when there is more in it.
                let _ = workspace.remove_dir(path);
            }
        }
        Ok(())
    }
}

/// Removes a file, or a folder with all that is in it. A link on the way is an error, one at the end is removed itself.
fn remove(root: &Dir, path: &str) -> io::Result<()> {
    let (parents, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut dir = root.try_clone()?;
    for parent in parents.split('/').filter(|name| !name.is_empty()) {
        dir = dir.open_dir_nofollow(parent)?;
    }
    if dir.symlink_metadata(name)?.is_dir() {
        dir.remove_dir_all(name)
    } else {
        dir.remove_file(name)
    }
}

/// A path may be no text: its bytes then, as numbers.
mod bytes_of_path {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        let written = match path.to_str() {
            Some(text) => Written::Text(text.to_owned()),
            None => Written::Bytes(path.as_os_str().as_encoded_bytes().to_vec()),
        };
        written.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Written::deserialize(from)? {
            Written::Text(text) => text.into(),
            #[cfg(unix)]
            Written::Bytes(bytes) => {
                <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes).into()
            }
            #[cfg(not(unix))]
            Written::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned().into(),
        })
    }
}

#[cfg(test)]
mod tests;
