//! Spool files: whole output streams on the host, outside the working directory.
//!
//! The only module of this crate that opens files of the host.
#![expect(
    clippy::disallowed_methods,
    reason = "spool files are the host's own, outside every sandbox"
)]

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{OutputId, OutputStream, Result, SandboxError};

type Names = Arc<Mutex<HashSet<(OutputId, OutputStream)>>>;

/// The folder of a sandbox's spool files: `<root>/<output id>/stdout|stderr`, readable by this user only.
///
/// Clones share what they know of names already used; make one per folder. The folder is the caller's to remove.
#[derive(Debug, Clone)]
pub struct Spool {
    root: PathBuf,
    /// Names whose file was made: the next command of that name replaces it.
    made: Names,
}

impl Spool {
    /// A spool below `root`, a directory that no sandboxed process can reach. It is made with the first file.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            made: Names::default(),
        }
    }

    /// The file that holds (or will hold) a stream.
    pub fn path(&self, id: &OutputId, stream: OutputStream) -> PathBuf {
        self.root.join(id.as_str()).join(stream.as_str())
    }

    /// A writer of one stream, at most `cap` bytes; it touches no file before the capture begins.
    ///
    /// An id that is used again is replaced: its old file is gone once the new capture began, also where the new output
    /// is too short to be spooled. A reader that has the old file open reads on in the old one.
    pub fn writer(&self, id: &OutputId, stream: OutputStream, cap: u64) -> SpoolWriter {
        SpoolWriter {
            path: self.path(id, stream),
            cap,
            replaces: names(&self.made).remove(&(id.clone(), stream)),
            name: Some((id.clone(), stream)),
            made: self.made.clone(),
            file: None,
            written: 0,
        }
    }

    /// Opens a spooled stream for reading. Blocking: call it where blocking is allowed.
    ///
    /// # Errors
    /// `NotFound` when nothing was spooled under this name: no such command ran, or its output was shorter than
    /// [`OutputLimits::spool_after`](crate::OutputLimits::spool_after). `Provider` for other I/O errors.
    pub fn open(&self, id: &OutputId, stream: OutputStream) -> Result<File> {
        File::open(self.path(id, stream)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SandboxError::NotFound {
                what: "output",
                name: format!("{id}/{}", stream.as_str()),
            },
            _ => SandboxError::io("opening spooled output", error),
        })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

fn names(made: &Names) -> std::sync::MutexGuard<'_, HashSet<(OutputId, OutputStream)>> {
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes one stream to its spool file. [`capture`](crate::capture::capture) drives it.
#[derive(Debug)]
pub struct SpoolWriter {
    path: PathBuf,
    cap: u64,
    /// An earlier command left a file here.
    replaces: bool,
    /// Told to `made` with the first write.
    name: Option<(OutputId, OutputStream)>,
    made: Names,
    file: Option<File>,
    written: u64,
}

impl SpoolWriter {
    /// Makes the file now, empty: for a background process, whose log may be read as soon as it is known to run. Where that
    /// fails the capture meets the same failure, and tells it.
    pub async fn begun(mut self) -> Self {
        let (path, cap, made) = (self.path.clone(), self.cap, self.made.clone());
        let begun = tokio::task::spawn_blocking(move || {
            let made = self.write(&[]);
            (self, made)
        });
        match begun.await {
            Ok((writer, Ok(()))) => writer,
            Ok((writer, Err(error))) => {
                tracing::debug!(%error, "a log cannot be begun");
                writer
            }
            // The runtime shuts down: nobody reads it any more.
            Err(_) => Self {
                path,
                cap,
                replaces: false,
                name: None,
                made,
                file: None,
                written: 0,
            },
        }
    }

    pub(crate) fn cap(&self) -> u64 {
        self.cap
    }

    pub(crate) fn replaces(&self) -> bool {
        self.replaces
    }

    /// Bytes in the file, from the start of the stream.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Removes what an earlier command left under this name. Blocking.
    pub(crate) fn remove_replaced(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.replaces) {
            match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Appends, making the file first. Blocking.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.remove_replaced()?;
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = create_private(&self.path)?;
                if let Some(name) = self.name.take() {
                    names(&self.made).insert(name);
                }
                self.file.insert(file)
            }
        };
        file.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// Makes a file that did not exist (no link is followed), 0600 in folders of 0700.
fn create_private(path: &Path) -> io::Result<File> {
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    if let Some(folder) = path.parent() {
        folders.create(folder)?;
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool() -> (tempfile::TempDir, Spool, OutputId) {
        let root = tempfile::tempdir().expect("tempdir");
        let spool = Spool::new(root.path().join("spool"));
        (root, spool, OutputId::for_call("call_1"))
    }

    fn contents(spool: &Spool, id: &OutputId) -> Option<String> {
        spool
            .open(id, OutputStream::Stdout)
            .ok()
            .map(|file| io::read_to_string(file).expect("text"))
    }

    #[test]
    fn files_appear_with_the_first_write_and_are_private() {
        let (_root, spool, id) = spool();
        let mut writer = spool.writer(&id, OutputStream::Stdout, 100);
        assert!(!spool.root().exists());
        writer.write(b"a").expect("write");
        writer.write(b"b").expect("write");
        assert_eq!(contents(&spool, &id).as_deref(), Some("ab"));
        assert_eq!(writer.written(), 2);
        #[cfg(unix)]
        for (path, mode) in [
            (spool.root().to_owned(), 0o40700),
            (spool.root().join("call_1"), 0o40700),
            (spool.path(&id, OutputStream::Stdout), 0o100600),
        ] {
            let metadata = fs::metadata(&path).expect("metadata");
            assert_eq!(
                std::os::unix::fs::MetadataExt::mode(&metadata),
                mode,
                "{path:?}"
            );
        }
    }

    #[test]
    fn an_unknown_output_is_named() {
        let (_root, spool, id) = spool();
        let error = spool
            .open(&id, OutputStream::Stderr)
            .expect_err("nothing there")
            .to_string();
        assert_eq!(error, "output not found: \"call_1/stderr\"");
    }

    #[test]
    fn a_reused_id_is_replaced() {
        let (_root, spool, id) = spool();
        spool
            .writer(&id, OutputStream::Stdout, 100)
            .write(b"old and long")
            .expect("write");
        let mut second = spool.clone().writer(&id, OutputStream::Stdout, 100);
        assert!(second.replaces());
        second.write(b"new").expect("write");
        assert_eq!(contents(&spool, &id).as_deref(), Some("new"));
        spool
            .writer(&id, OutputStream::Stdout, 100)
            .remove_replaced()
            .expect("remove");
        assert_eq!(
            contents(&spool, &id),
            None,
            "a third command with a short output leaves no old one"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_planted_link_is_not_followed() {
        let (root, spool, id) = spool();
        let victim = root.path().join("victim");
        fs::create_dir_all(spool.root().join("call_1")).expect("folder");
        std::os::unix::fs::symlink(&victim, spool.path(&id, OutputStream::Stdout)).expect("link");
        spool
            .writer(&id, OutputStream::Stdout, 100)
            .write(b"x")
            .expect_err("refused");
        assert!(!victim.exists());
    }
}
