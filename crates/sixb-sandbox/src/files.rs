//! Files of a sandbox: what to write, what is there, where a line starts.

use std::{collections::BTreeMap, fmt, time::Duration};

use bytes::Bytes;
use futures::stream::BoxStream;

use crate::{OutputId, OutputStream, SandboxPath};

/// What a name in the working directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A block or character device.
    Device,
    /// Something else.
    Other,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "regular file",
            Self::Directory => "directory",
            Self::Symlink => "symbolic link",
            Self::Fifo => "named pipe (FIFO)",
            Self::Socket => "socket",
            Self::Device => "device",
            Self::Other => "special file",
        })
    }
}

/// What a file will hold.
#[non_exhaustive]
pub enum FileContents {
    /// These bytes.
    Bytes(Bytes),
    /// Chunks as they come; an `Err` leaves the file as it was.
    Stream(BoxStream<'static, std::io::Result<Bytes>>),
}

impl fmt::Debug for FileContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({} B)", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl<T: Into<Bytes>> From<T> for FileContents {
    fn from(bytes: T) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// One file to write. Parents are made, an older file is replaced, and it appears whole or not at all.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileWrite {
    /// Where.
    pub path: SandboxPath,
    /// What.
    pub contents: FileContents,
    /// Permission bits. Default: 0o644.
    pub mode: u32,
}

impl FileWrite {
    /// A file with mode 0o644.
    pub fn new(path: SandboxPath, contents: impl Into<FileContents>) -> Self {
        Self {
            path,
            contents: contents.into(),
            mode: 0o644,
        }
    }

    /// Sets the permission bits; only the lowest nine count.
    pub fn mode(mut self, mode: u32) -> Self {
        self.mode = mode & 0o777;
        self
    }
}

/// What to read from: a file of the working directory, or the spooled output of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileSource {
    /// A file below the working directory.
    Path(SandboxPath),
    /// A stream of a command that ran with this [`OutputId`], kept outside the working directory.
    Output(OutputId, OutputStream),
}

impl From<SandboxPath> for FileSource {
    fn from(path: SandboxPath) -> Self {
        Self::Path(path)
    }
}

/// A piece of a file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte, from 0.
    pub offset: u64,
    /// At most this many bytes are read. Backends refuse more than [`ByteRange::MAX_LEN`].
    pub len: usize,
}

impl ByteRange {
    /// Longest piece of one call: 32 MiB. Read larger files in pieces.
    pub const MAX_LEN: usize = 32 << 20;

    /// `len` bytes from `offset` on.
    pub fn new(offset: u64, len: usize) -> Self {
        Self { offset, len }
    }
}

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Last change of the content, since the Unix epoch.
    pub modified: Duration,
    /// Changes whenever content, size or identity change: two equal versions are the same bytes, short of forgery
    /// by the guest. For caches.
    pub version: u64,
}

impl FileStat {
    /// A description, for backends.
    pub fn new(kind: FileKind, size: u64, mode: u32, modified: Duration, version: u64) -> Self {
        Self {
            kind,
            size,
            mode,
            modified,
            version,
        }
    }
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirEntry {
    /// Where.
    pub path: SandboxPath,
    /// What: links are not followed.
    pub stat: FileStat,
}

impl DirEntry {
    /// An entry, for backends.
    pub fn new(path: SandboxPath, stat: FileStat) -> Self {
        Self { path, stat }
    }
}

/// How to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// Go into directories.
    pub recursive: bool,
    /// More entries than this are `LimitExceeded`. Default: 10 000.
    pub limit: usize,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            recursive: false,
            limit: 10_000,
        }
    }
}

impl ListOptions {
    /// Goes into directories.
    pub fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }
    /// Bounds the number of entries.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// Which line to find, and from where to start counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeekLine {
    /// The line wanted, from 1. Lines end with `\n`.
    pub line: u64,
    /// A line whose start is already known (and not after `line`): counting begins there.
    pub from: (u64, u64),
}

impl SeekLine {
    /// Finds `line`, counting from the start of the file.
    pub fn new(line: u64) -> Self {
        Self { line, from: (1, 0) }
    }

    /// Counts from a known line that starts at byte `offset`.
    pub fn from(mut self, line: u64, offset: u64) -> Self {
        self.from = (line, offset);
        self
    }
}

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinePosition {
    /// It starts at this byte.
    At {
        /// Byte offset of its first byte.
        offset: u64,
    },
    /// The file has fewer lines. A file that ends in `\n` has no line after it; an empty file has none.
    PastEnd {
        /// How many lines the file has.
        total_lines: u64,
    },
}

/// How to take a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotOptions {
    /// Names of directories that are left out, at any depth. Default: `.git`, `node_modules`, `.sixb`.
    pub skip: Vec<String>,
    /// More files than this are `LimitExceeded`. Default: 100 000.
    pub limit: usize,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self {
            skip: [".git", "node_modules", ".sixb"]
                .map(str::to_owned)
                .to_vec(),
            limit: 100_000,
        }
    }
}

/// The regular files of a working directory at one moment: path → (size, change time, version).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// What is known of each file.
    pub files: BTreeMap<SandboxPath, FileStat>,
}

impl SnapshotOptions {
    /// Bounds the number of files.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

impl Snapshot {
    /// A snapshot, for backends.
    pub fn new(files: BTreeMap<SandboxPath, FileStat>) -> Self {
        Self { files }
    }

    /// What changed from `before` to this snapshot.
    pub fn since(&self, before: &Snapshot) -> Changes {
        let mut changes = Changes::default();
        for (path, stat) in &self.files {
            match before.files.get(path) {
                None => changes.created.push(path.clone()),
                Some(old) if old.version != stat.version || old.size != stat.size => {
                    changes.modified.push(path.clone())
                }
                Some(_) => {}
            }
        }
        changes.removed = before
            .files
            .keys()
            .filter(|path| !self.files.contains_key(*path))
            .cloned()
            .collect();
        changes
    }
}

/// The difference of two snapshots; each list is sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Files that are new.
    pub created: Vec<SandboxPath>,
    /// Files with other content.
    pub modified: Vec<SandboxPath>,
    /// Files that are gone.
    pub removed: Vec<SandboxPath>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_each_file_once() {
        let path = |name: &str| SandboxPath::parse(name).expect("path");
        let stat = |version| FileStat::new(FileKind::File, 1, 0o644, Duration::ZERO, version);
        let before = Snapshot::new(
            [
                (path("a"), stat(1)),
                (path("b"), stat(1)),
                (path("c"), stat(1)),
            ]
            .into(),
        );
        let after = Snapshot::new(
            [
                (path("a"), stat(1)),
                (path("b"), stat(2)),
                (path("d"), stat(1)),
            ]
            .into(),
        );
        let changes = after.since(&before);
        assert_eq!(changes.created, [path("d")]);
        assert_eq!(changes.modified, [path("b")]);
        assert_eq!(changes.removed, [path("c")]);
    }
}
