//! `RunFiles`: the files that a run made, was given or looked at. What is not here is forged.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::FileRef;

/// How a run came to a file. Recorded when it happens, not guessed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Provenance {
    /// A user attached it, or an earlier turn left it.
    Attached,
    /// A tool published it.
    Created,
    /// A tool looked at a file of the sandbox.
    Viewed,
    /// It stood in the output folder when the run ended.
    Output,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunFile {
    /// The file.
    pub file: FileRef,
    /// Where it lies in the sandbox, as an absolute path; `None` while it is not there.
    pub path: Option<String>,
    /// How the run came to it.
    pub provenance: Provenance,
    /// The call that made it or looked at it.
    pub tool_call_id: Option<String>,
}

impl RunFile {
    /// A file that lies nowhere yet.
    pub fn new(file: FileRef, provenance: Provenance) -> Self {
        Self {
            file,
            path: None,
            provenance,
            tool_call_id: None,
        }
    }

    /// Says where it lies.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Says which call it comes from.
    #[must_use]
    pub fn by(mut self, tool_call_id: impl Into<String>) -> Self {
        self.tool_call_id = Some(tool_call_id.into());
        self
    }
}

/// The files of one run, in the order they came. Clones share one list.
///
/// ```
/// use sixb_artifacts::{FileRef, Provenance, RunFile, RunFiles};
/// let files = RunFiles::default();
/// files.add(RunFile::new(FileRef::of(b"hi"), Provenance::Created).at("/workspace/hi"));
/// assert!(files.check(&FileRef::of(b"hi")).is_ok());
/// assert!(files.check(&FileRef::of(b"made up")).is_err());
/// assert!(files.at("/workspace/hi").is_some());
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunFiles(Arc<Mutex<Vec<RunFile>>>);

impl RunFiles {
    /// Adds a file. The same file by the same way is kept once; a file that was only viewed and is published later, twice.
    pub fn add(&self, file: RunFile) {
        let mut files = self.files();
        let same = |known: &&mut RunFile| {
            known.file == file.file
                && known.provenance == file.provenance
                && known.path == file.path
        };
        if files.iter_mut().find(same).is_none() {
            files.push(file);
        }
    }

    /// Whether this run knows the content: it published it or was given it, in this size.
    ///
    /// # Errors
    /// [`ForgedFileRef`] otherwise. A reference of a model's own making could name any blob of the store, another run's too.
    pub fn check(&self, file: &FileRef) -> Result<(), ForgedFileRef> {
        let known = self
            .files()
            .iter()
            .any(|known| known.file.same_content(file));
        known.then_some(()).ok_or_else(|| ForgedFileRef {
            blob_id: file.blob_id(),
        })
    }

    /// The file last put at this path of the sandbox.
    pub fn at(&self, path: &str) -> Option<RunFile> {
        let files = self.files();
        files
            .iter()
            .rev()
            .find(|file| file.path.as_deref() == Some(path))
            .cloned()
    }

    /// The first file of this content, best one of the same labels.
    pub fn of(&self, file: &FileRef) -> Option<RunFile> {
        let files = self.files();
        let same = files.iter().find(|known| known.file == *file);
        same.or_else(|| files.iter().find(|known| known.file.same_content(file)))
            .cloned()
    }

    /// All of them, in the order they came.
    pub fn all(&self) -> Vec<RunFile> {
        self.files().clone()
    }

    fn files(&self) -> MutexGuard<'_, Vec<RunFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reference to a file that the run neither published nor was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{blob_id:?} is no file of this run; return only references that artifacts.put or an attachment gave"
)]
#[non_exhaustive]
pub struct ForgedFileRef {
    /// The blob id it names.
    pub blob_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_content_passes_whatever_its_labels() {
        let files = RunFiles::default();
        files.add(RunFile::new(FileRef::of(b"hi"), Provenance::Attached).by("c1"));
        let renamed = FileRef::of(b"hi").with_file_name("other.txt".parse().expect("name"));
        assert_eq!(files.check(&renamed), Ok(()));
        let resized = FileRef::new(FileRef::of(b"hi").digest(), 3);
        let error = files.check(&resized).expect_err("forged").to_string();
        assert!(error.contains(&resized.blob_id()), "{error}");
    }

    #[test]
    fn the_last_file_at_a_path_counts_and_repeats_are_kept_once() {
        let files = RunFiles::default();
        for bytes in [b"1", b"2", b"2"] {
            files.add(RunFile::new(FileRef::of(bytes), Provenance::Viewed).at("/w/a"));
        }
        files.add(RunFile::new(FileRef::of(b"2"), Provenance::Created).at("/w/b"));
        assert_eq!(
            files.at("/w/a").map(|file| file.file),
            Some(FileRef::of(b"2"))
        );
        assert_eq!(files.at("/w/c"), None);
        let named = FileRef::of(b"2").with_file_name("n".parse().expect("name"));
        files.add(RunFile::new(named.clone(), Provenance::Created).at("/w/n"));
        for (file, path) in [(&named, "/w/n"), (&FileRef::of(b"2"), "/w/a")] {
            assert_eq!(
                files.of(file).and_then(|file| file.path).as_deref(),
                Some(path)
            );
        }
        assert_eq!(files.all().len(), 4);
    }
}
