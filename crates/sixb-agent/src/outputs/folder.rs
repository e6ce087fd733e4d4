//! The folder of the host that outputs go to.
//!
//! It is opened before the sandbox boots and every file is written relative to that descriptor. A file goes to
//! `<folder>/.<run id>.partial/` first and is renamed into `<folder>/<run id>/` when it is whole. Guests choose the names
//! below that folder, so they are plain components (a `SandboxPath` has no `..`), directories are made one by one and never
//! through a link, and what is there already, such as the transcript, is never replaced.
//!
//! A folder in the guest's own workspace is **exposed**: the guest can reach it by name. Of it only the workspace is opened
//! before the boot; files wait in temporary files without a name until the sandbox is gone, and the run's folder is made
//! then, anew: one that the guest made, or a link, is refused. In no case is anything written outside of the workspace.
//! What lies there after the run can of course be changed by the next run in that workspace.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, OpenOptions};
use tokio::io::AsyncWriteExt;

use super::{
    Omitted,
    place::{Place, enter},
    plan::Relative,
};

#[derive(Debug)]
pub(crate) struct Folder {
    place: Place,
    /// As the user wrote it.
    shown: PathBuf,
    run_id: String,
    /// Of an exposed place the workspace, else the folder itself.
    base: Dir,
    /// The folder is new, so it goes again if nothing is saved.
    made: bool,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    parts: Option<Parts>,
    begun: usize,
    published: bool,
}

/// Folders that are made with the first file.
#[derive(Debug)]
struct Parts {
    parent: Dir,
    partial: Dir,
    target: Dir,
}

/// A file on its way.
#[derive(Debug)]
pub(super) struct Partial {
    file: tokio::fs::File,
    /// Its name in the partial folder; none while it has no name at all.
    name: Option<String>,
}

/// A file that is whole and has no place yet.
#[derive(Debug)]
pub(super) struct Staged {
    relative: Relative,
    file: std::fs::File,
    name: Option<String>,
}

impl Folder {
    /// Opens the folder, before any code of the guest runs.
    pub(crate) fn open(place: Place, shown: &Path, run_id: &str) -> io::Result<Self> {
        let (base, made) = if place.is_exposed() {
            let (root, _) = place.open_root()?;
            // A link that is there now would lose the outputs in the end.
            place.check(&root)?;
            (root, false)
        } else {
            place.open()?
        };
        Ok(Self {
            place,
            shown: shown.to_owned(),
            run_id: run_id.to_owned(),
            base,
            made,
            open: Mutex::default(),
        })
    }

    /// Whether files may only be published once the sandbox is gone.
    pub(crate) fn is_exposed(&self) -> bool {
        self.place.is_exposed()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        // A panic between two changes leaves at most a folder that was not noted.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a file.
    pub(super) fn begin(&self) -> Result<Partial, Omitted> {
        if self.is_exposed() {
            let file = tempfile::tempfile().map_err(unwritable)?;
            return Ok(Partial {
                file: tokio::fs::File::from_std(file),
                name: None,
            });
        }
        let mut open = self.lock();
        let (file, name) = self.create(&mut open)?;
        Ok(Partial {
            file: tokio::fs::File::from_std(file),
            name: Some(name),
        })
    }

    /// A new file of the partial folder.
    fn create(&self, open: &mut Open) -> Result<(std::fs::File, String), Omitted> {
        let name = open.begun.to_string();
        open.begun += 1;
        let parts = self.parts(open)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let file = parts
            .partial
            .open_with(&name, &options)
            .map_err(unwritable)?;
        Ok((file.into_std(), name))
    }

    fn parts<'a>(&self, open: &'a mut Open) -> Result<&'a Parts, Omitted> {
        if open.parts.is_none() {
            let parent = self.base.try_clone().map_err(unwritable)?;
            let parent = if self.is_exposed() {
                self.place.open_below(parent).map_err(unwritable)?.0
            } else {
                parent
            };
            let (target, made) = enter(&parent, OsStr::new(&self.run_id)).map_err(unwritable)?;
            // Elsewhere it can only be the transcript's: no other path has this id.
            if !made && self.is_exposed() {
                return Err(taken(&self.shown.join(&self.run_id)));
            }
            let partial = format!(".{}.partial", self.run_id);
            if !self.is_exposed() {
                // What a killed process left of the same run. No guest can reach it.
                let left = parent.open_dir_nofollow(&partial);
                let _ = left.and_then(Dir::remove_open_dir_all);
            }
            parent.create_dir(&partial).map_err(unwritable)?;
            let (partial, _) = enter(&parent, OsStr::new(&partial)).map_err(unwritable)?;
            open.parts = Some(Parts {
                parent,
                partial,
                target,
            });
        }
        open.parts
            .as_ref()
            .ok_or_else(|| unwritable(io::Error::other("no folder")))
    }

    /// Gives a whole file its name. Of an exposed folder only once the sandbox is gone.
    pub(super) fn publish(&self, staged: Staged) -> Result<PathBuf, Omitted> {
        let relative = host_names(&staged.relative)?;
        let mut open = self.lock();
        let partial = match &staged.name {
            Some(name) => name.clone(),
            None => {
                let (mut to, name) = self.create(&mut open)?;
                let mut from = &staged.file;
                io::Seek::rewind(&mut from).map_err(unwritable)?;
                io::copy(&mut from, &mut to).map_err(unwritable)?;
                name
            }
        };
        let parts = self.parts(&mut open)?;
        let shown = self.shown.join(&self.run_id).join(&relative);
        let mut dir = parts.target.try_clone().map_err(unwritable)?;
        for name in relative.parent().into_iter().flat_map(Path::iter) {
            dir = match enter(&dir, name) {
                Ok((entered, _)) => entered,
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    return Err(taken(&shown));
                }
                Err(error) => return Err(unwritable(error)),
            };
        }
        let name = relative.file_name().unwrap_or_default();
        match dir.symlink_metadata(name) {
            Ok(_) => return Err(taken(&shown)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(error)),
        }
        parts
            .partial
            .rename(partial, &dir, name)
            .map_err(unwritable)?;
        open.published = true;
        Ok(shown)
    }

    /// Removes what was not published, and a folder that was made for nothing.
    pub(crate) fn finish(&self) {
        let mut open = self.lock();
        if let Some(parts) = open.parts.take() {
            if let Err(error) = parts.partial.remove_open_dir_all() {
                tracing::warn!(
                    "partial outputs of {} are left behind: {error}",
                    self.run_id
                );
            }
            if !open.published {
                // Not empty when the transcript lies there.
                let _ = parts.parent.remove_dir(&self.run_id);
            }
        }
        if self.made && !open.published {
            // Not empty when somebody else uses it too.
            let _ = self.base.try_clone().and_then(Dir::remove_open_dir);
        }
    }
}

impl Partial {
    pub(super) async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        self.file.write_all(&bytes).await
    }

    pub(super) async fn whole(mut self, relative: Relative) -> Result<Staged, Omitted> {
        self.file.flush().await.map_err(unwritable)?;
        Ok(Staged {
            relative,
            file: self.file.into_std().await,
            name: self.name,
        })
    }
}

/// The path below the target. On Unix any name will do; elsewhere only text.
fn host_names(relative: &Relative) -> Result<PathBuf, Omitted> {
    #[cfg(unix)]
    return Ok(relative
        .0
        .iter()
        .map(|name| <OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name))
        .collect());
    #[cfg(not(unix))]
    {
        // `\`, `:` and device names mean something to other systems: one strict rule instead of a list of them.
        let plain = |name: &&str| {
            name.chars()
                .all(|letter| letter.is_alphanumeric() || " ._-()+,=@".contains(letter))
                && !name.ends_with(['.', ' '])
        };
        let names = relative
            .0
            .iter()
            .map(|name| std::str::from_utf8(name).ok().filter(plain));
        let path: Option<PathBuf> = names.collect();
        path.ok_or_else(|| {
            (
                "output_name",
                "has a name that this system cannot hold".to_owned(),
            )
        })
    }
}

fn taken(path: &Path) -> Omitted {
    (
        "output_name_taken",
        format!("was not saved: {} exists already", path.display()),
    )
}

fn unwritable(error: io::Error) -> Omitted {
    ("output_write_failed", format!("cannot be written: {error}"))
}

#[cfg(test)]
mod tests;
