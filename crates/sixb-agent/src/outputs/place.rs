//! Where files of the host may be written for a run, whatever its guest does.
//!
//! A guest that may write to a folder of the host may plant links in it, also for the runs that come after its own. So below
//! the workspace, and below the current folder, which is the workspace of many runs, no link is ever followed: folders are
//! opened one by one, each relative to the descriptor of the one above. What lies elsewhere is the user's own path, links
//! included.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Component, Path, PathBuf},
};

use cap_fs_ext::DirExt;
use cap_std::{ambient_authority, fs::Dir};

/// The path of a folder without links.
#[expect(
    clippy::disallowed_methods,
    reason = "tells whether a path of the host leads into the workspace"
)]
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// Opens a folder that is the user's own to name, links included.
pub(crate) fn open_own(path: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(path, ambient_authority())
}

/// Opens such a folder and makes it if need be; tells whether it did.
pub(crate) fn make_own(path: &Path) -> io::Result<(Dir, bool)> {
    match open_own(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Dir::create_ambient_dir_all(path, ambient_authority())?;
            Ok((open_own(path)?, true))
        }
        opened => Ok((opened?, false)),
    }
}

/// A folder that may not be there yet.
#[derive(Debug)]
pub(crate) struct Place {
    /// Up to here the path is nobody's but the user's.
    root: PathBuf,
    /// Names below it, which are never followed through a link.
    below: Vec<OsString>,
    exposed: bool,
}

impl Place {
    /// Finds out what of a path a guest may have a hand in, that may write to the folder `writable` (without links).
    pub(crate) fn find(folder: &Path, writable: Option<&Path>) -> io::Result<Self> {
        let here = std::env::current_dir().and_then(|here| real(&here)).ok();
        Self::find_from(folder, writable, here.as_deref())
    }

    fn find_from(folder: &Path, writable: Option<&Path>, here: Option<&Path>) -> io::Result<Self> {
        let shared = |path: &Path| {
            [writable, here]
                .into_iter()
                .flatten()
                .any(|root| path.starts_with(root))
        };
        // Holds no link outside of the shared folders, and inside of them only names, so that `..` is the folder above.
        let mut path = PathBuf::new();
        for component in std::path::absolute(folder)?.components() {
            match component {
                Component::ParentDir => {
                    path.pop();
                }
                Component::Normal(name) => {
                    let by_name = shared(&path);
                    path.push(name);
                    if !by_name {
                        match real(&path) {
                            Ok(found) => path = found,
                            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                            Err(error) => return Err(error),
                        }
                    }
                }
                root => path.push(root),
            }
        }
        // The outermost one: the other may lie in it.
        let root = [writable, here]
            .into_iter()
            .flatten()
            .filter(|root| path.starts_with(root))
            .min_by_key(|root| root.components().count())
            .unwrap_or(&path);
        let below = path.strip_prefix(root).unwrap_or(Path::new(""));
        Ok(Self {
            exposed: writable.is_some_and(|writable| path.starts_with(writable)),
            below: below.iter().map(OsStr::to_owned).collect(),
            root: root.to_owned(),
        })
    }

    /// Whether the guest can reach the place by name.
    pub(crate) fn is_exposed(&self) -> bool {
        self.exposed
    }

    /// Opens the folder that the user's own path leads to, and makes it if need be; tells whether it did.
    pub(crate) fn open_root(&self) -> io::Result<(Dir, bool)> {
        make_own(&self.root)
    }

    /// Goes on to the place, making what is missing; tells whether the last folder is new.
    pub(crate) fn open_below(&self, root: Dir) -> io::Result<(Dir, bool)> {
        let (mut dir, mut made) = (root, false);
        for name in &self.below {
            (dir, made) = enter(&dir, name)?;
        }
        Ok((dir, made))
    }

    /// Whether a link or something else that is no folder stands in the way, as far as that can be seen now.
    pub(crate) fn check(&self, root: &Dir) -> io::Result<()> {
        let mut dir = root.try_clone()?;
        for name in &self.below {
            match open(&dir, name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                opened => dir = opened?,
            }
        }
        Ok(())
    }

    /// Opens the place, making what is missing; tells whether the last folder is new.
    pub(crate) fn open(&self) -> io::Result<(Dir, bool)> {
        let (root, made) = self.open_root()?;
        if self.below.is_empty() {
            return Ok((root, made));
        }
        self.open_below(root)
    }
}

/// Opens a folder of a folder and makes it if need be; tells whether it did. A link is no folder.
pub(crate) fn enter(dir: &Dir, name: &OsStr) -> io::Result<(Dir, bool)> {
    let made = match dir.create_dir(name) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => match open(dir, name) {
            // It is there, whatever may be said against making another one.
            Ok(found) => return Ok((found, false)),
            Err(_) => return Err(error),
        },
    };
    Ok((open(dir, name)?, made))
}

fn open(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    dir.open_dir_nofollow(name).map_err(|error| {
        let is_link = |found: cap_std::fs::Metadata| found.is_symlink();
        if dir.symlink_metadata(name).is_ok_and(is_link) {
            io::Error::new(
                io::ErrorKind::NotADirectory,
                format!(
                    "{} is a link, and in a folder that sandboxes may write to links are not followed",
                    Path::new(name).display()
                ),
            )
        } else {
            error
        }
    })
}

#[cfg(test)]
mod tests;
