//! The local folder: made private, written through to the disk, and cleaned of what dead writers left.

#![expect(
    clippy::disallowed_methods,
    reason = "the folder of blobs is the host's own, outside every sandbox"
)]

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use object_store::local::LocalFileSystem;

use super::{BlobError, BlobStore};

/// A part that a writer left this long ago is nobody's any more.
const STALE: Duration = Duration::from_secs(60 * 60);

impl BlobStore {
    /// In a folder of this machine, which is made where it is missing, for this user only.
    ///
    /// A blob is written beside its place, synced to the disk, and then put there under its name: what is reported is kept
    /// across a crash. Blocking, but brief.
    ///
    /// # Errors
    /// `Place` when the folder cannot be made or is none.
    pub fn local(folder: impl AsRef<Path>) -> Result<Self, BlobError> {
        let folder = folder.as_ref();
        let failed = |source: super::BoxError| BlobError::Place {
            what: format!("cannot keep blobs in the folder {}", folder.display()),
            source: Some(source),
        };
        make_private(folder).map_err(|error| failed(error.into()))?;
        refuse_links(folder).map_err(|error| failed(error.into()))?;
        let store =
            LocalFileSystem::new_with_prefix(folder).map_err(|error| failed(error.into()))?;
        let mut blobs = Self::new(Arc::new(store.with_fsync(true)));
        blobs.folder = Some(folder.to_owned());
        Ok(blobs)
    }
}

/// A link below the folder would lead the store elsewhere: somebody planted it.
fn refuse_links(folder: &Path) -> io::Result<()> {
    for part in ["blobs", "blobs/sha256", "blobs/sweeping"] {
        let path = folder.join(part);
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_dir() => {
                let text = format!("{} is a link or a file, and no folder", path.display());
                return Err(io::Error::new(io::ErrorKind::NotADirectory, text));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn make_private(folder: &Path) -> io::Result<()> {
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders.create(folder)
}

/// Removes parts (`<name>#<number>`) that a killed writer left. They are no blobs: the store itself never shows them.
pub(super) async fn remove_stale_parts(folder: PathBuf) {
    // What cannot be removed now is there for the next sweep.
    let _ = tokio::task::spawn_blocking(move || {
        ["blobs/sha256", "blobs/sweeping"].map(|part| remove_parts(&folder.join(part), STALE))
    })
    .await;
}

fn remove_parts(folder: &Path, older_than: Duration) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_part = name
            .to_str()
            .and_then(|name| name.split_once('#'))
            .is_some_and(|(name, number)| {
                crate::Digest::from_hex(name).is_ok()
                    && number.bytes().all(|digit| digit.is_ascii_digit())
            });
        let age = |entry: &fs::DirEntry| {
            Some(
                entry
                    .metadata()
                    .ok()?
                    .modified()
                    .ok()?
                    .elapsed()
                    .unwrap_or_default(),
            )
        };
        if is_part && age(&entry).is_some_and(|age| age > older_than) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    #[tokio::test]
    async fn the_folder_is_private_and_blobs_lie_under_their_names() {
        let root = tempfile::tempdir().expect("folder");
        let folder = root.path().join("a/b");
        let file = BlobStore::local(&folder)
            .expect("store")
            .put("hi")
            .await
            .expect("put");
        let path = folder.join("blobs/sha256").join(file.digest().hex());
        assert_eq!(fs::read(&path).expect("blob"), b"hi");
        #[cfg(unix)]
        {
            let mode =
                std::os::unix::fs::MetadataExt::mode(&fs::metadata(&folder).expect("folder"));
            assert_eq!(mode & 0o777, 0o700);
        }
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let error = BlobStore::local(file.path())
            .expect_err("no folder")
            .to_string();
        assert!(
            error.contains(&file.path().display().to_string()),
            "{error}"
        );
    }

    #[test]
    fn only_old_parts_are_removed() {
        let folder = tempfile::tempdir().expect("folder");
        let hex = Digest::of(b"x").hex();
        let names = [
            hex.clone(),
            format!("{hex}#1"),
            format!("{hex}#x"),
            "notes#1".to_owned(),
        ];
        for name in &names {
            fs::write(folder.path().join(name), "x").expect("file");
        }
        let left = |older_than| {
            remove_parts(folder.path(), older_than).expect("swept");
            names
                .iter()
                .map(|name| folder.path().join(name).exists())
                .collect::<Vec<_>>()
        };
        assert_eq!(left(STALE), [true, true, true, true]);
        assert_eq!(left(Duration::ZERO), [true, false, true, true]);
    }
}
