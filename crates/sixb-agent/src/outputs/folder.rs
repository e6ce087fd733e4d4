//! The folder of the host that outputs go to.
//!
//! A file is written to `<folder>/.<run id>.partial/` first and renamed into `<folder>/<run id>/` when it is whole. Guests
//! choose the names below that folder, so they are plain components (a `SandboxPath` has no `..`), directories are made
//! one by one and never through a link, and what is there already, such as the transcript, is never replaced.

use std::{
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use tokio::{fs, io::AsyncWriteExt};

use super::{Omitted, plan::Take};

#[derive(Debug)]
pub(super) struct Folder {
    target: PathBuf,
    partial: PathBuf,
    begun: usize,
}

/// A file on its way.
#[derive(Debug)]
pub(super) struct Partial {
    file: fs::File,
    partial: PathBuf,
    root: PathBuf,
    relative: PathBuf,
}

impl Folder {
    pub(super) fn new(parent: &Path, run_id: &str) -> Self {
        Self {
            target: parent.join(run_id),
            partial: parent.join(format!(".{run_id}.partial")),
            begun: 0,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "outputs are files of the host")]
    pub(super) async fn begin(&mut self, take: &Take) -> Result<Partial, Omitted> {
        let relative = host_names(take)?;
        let partial = self.partial.join(self.begun.to_string());
        self.begun += 1;
        let begin = async {
            if self.begun == 1 {
                // What a killed process left of the same run.
                let _ = fs::remove_dir_all(&self.partial).await;
            }
            fs::create_dir_all(&self.partial).await?;
            fs::create_dir_all(&self.target).await?;
            fs::File::create_new(&partial).await
        };
        Ok(Partial {
            file: begin.await.map_err(unwritable)?,
            partial,
            root: self.target.clone(),
            relative,
        })
    }

    /// Removes what was not published.
    #[expect(clippy::disallowed_methods, reason = "outputs are files of the host")]
    pub(super) async fn finish(self) {
        if let Err(error) = fs::remove_dir_all(&self.partial).await
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("{} is left behind: {error}", self.partial.display());
        }
    }
}

impl Partial {
    pub(super) async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        self.file.write_all(&bytes).await
    }

    /// Gives the file its name.
    pub(super) async fn publish(mut self) -> Result<PathBuf, Omitted> {
        self.file.flush().await.map_err(unwritable)?;
        drop(self.file);
        let mut place = self.root;
        if let Some(parent) = self.relative.parent() {
            for name in parent.components() {
                place.push(name);
                make_dir(&place).await?;
            }
        }
        if let Some(name) = self.relative.file_name() {
            place.push(name);
        }
        rename_new(&self.partial, &place).await?;
        Ok(place)
    }
}

/// Makes one directory; one that is there is fine, a link is not.
#[expect(clippy::disallowed_methods, reason = "outputs are files of the host")]
async fn make_dir(path: &Path) -> Result<(), Omitted> {
    match fs::create_dir(path).await {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path).await.map_err(unwritable)?;
            if found.is_dir() {
                Ok(())
            } else {
                Err(taken(path))
            }
        }
        made => made.map_err(unwritable),
    }
}

#[expect(clippy::disallowed_methods, reason = "outputs are files of the host")]
async fn rename_new(from: &Path, to: &Path) -> Result<(), Omitted> {
    match fs::symlink_metadata(to).await {
        Ok(_) => Err(taken(to)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::rename(from, to).await.map_err(unwritable)
        }
        Err(error) => Err(unwritable(error)),
    }
}

/// The path below the target. On Unix any name will do; elsewhere only text.
fn host_names(take: &Take) -> Result<PathBuf, Omitted> {
    #[cfg(unix)]
    return Ok(take
        .relative
        .iter()
        .map(|name| <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name))
        .collect());
    #[cfg(not(unix))]
    {
        // `\`, `:` and device names mean something to other systems: one strict rule instead of a list of them.
        let plain = |name: &&str| {
            name.chars()
                .all(|letter| letter.is_alphanumeric() || " ._-()+,=@".contains(letter))
                && !name.ends_with(['.', ' '])
        };
        let names = take
            .relative
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
