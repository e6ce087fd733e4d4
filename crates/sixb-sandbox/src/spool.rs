//! Spool files: whole output streams on the host, outside the working directory.

use std::path::{Path, PathBuf};

use crate::{OutputId, OutputStream};

/// The folder of a sandbox's spool files: `<root>/<output id>/stdout|stderr`.
#[derive(Debug, Clone)]
pub struct Spool {
    root: PathBuf,
}

impl Spool {
    /// A spool below `root`, a directory that no sandboxed process can reach.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The file that holds (or will hold) a stream.
    pub fn path(&self, id: &OutputId, stream: OutputStream) -> PathBuf {
        self.root.join(id.as_str()).join(stream.as_str())
    }

    /// A writer of one stream, at most `cap` bytes; it makes no file before the first write.
    pub fn writer(&self, id: &OutputId, stream: OutputStream, cap: u64) -> SpoolWriter {
        SpoolWriter { path: self.path(id, stream), cap }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Writes one stream to its spool file.
#[derive(Debug)]
pub struct SpoolWriter {
    #[expect(dead_code, reason = "skeleton")]
    path: PathBuf,
    #[expect(dead_code, reason = "skeleton")]
    cap: u64,
}
