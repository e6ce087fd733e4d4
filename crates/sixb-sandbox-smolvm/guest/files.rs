//! File calls below the working directory, without a name ever being checked first and opened later.
//!
//! The standard library has no `openat`: `/proc/self/fd/N/name` is the same thing. The kernel resolves the first part to
//! the folder that is open, whatever its name is by now, and `O_NOFOLLOW` refuses a link in the last part. So a path is
//! walked one name at a time, and links are followed by hand, as long as they stay inside.

use std::{
    ffi::OsStr,
    fs::{self, File, Metadata, OpenOptions},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    os::{
        fd::AsRawFd,
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
            net::UnixStream,
        },
    },
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::wire::{self, error};

const O_PATH: i32 = 0o10_000_000;
const O_NONBLOCK: i32 = 0o4_000;
#[cfg(not(target_arch = "aarch64"))]
const O_NOFOLLOW: i32 = 0o400_000;
#[cfg(target_arch = "aarch64")]
const O_NOFOLLOW: i32 = 0o100_000;
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const EPERM: i32 = 1;
const ENOTDIR: i32 = 20;
const EROFS: i32 = 30;
const ELOOP: i32 = 40;
const EISDIR: i32 = 21;
const ENOTEMPTY: i32 = 39;
const EEXIST: i32 = 17;
/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

/// Why a call failed, as the host is told.
pub(crate) struct Failure {
    pub(crate) name: &'static str,
    pub(crate) detail: String,
}

impl Failure {
    pub(crate) fn new(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            detail: detail.into(),
        }
    }

    fn kind(found: &str, expected: &str) -> Self {
        Self::new(error::KIND, format!("{found}/{expected}"))
    }

    fn escape() -> Self {
        Self::new(
            error::ESCAPE,
            "leaves the working directory through a symbolic link",
        )
    }
}

impl From<io::Error> for Failure {
    fn from(from: io::Error) -> Self {
        match from.raw_os_error() {
            Some(ENOENT | ENOTDIR) => Self::new(error::NOT_FOUND, from.to_string()),
            Some(EACCES | EPERM | EROFS) => Self::new(error::DENIED, from.to_string()),
            Some(ELOOP) => Self::escape(),
            _ => Self::new("other", from.to_string()),
        }
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// The working directory.
pub(crate) struct Workspace {
    root: File,
    path: Vec<u8>,
    read_only: bool,
    drafts: AtomicU64,
}

/// The path of `name` in an open folder.
pub(crate) fn at(folder: &File, name: &[u8]) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(OsStr::from_bytes(name))
}

/// Opens a name without reading it, and without following it.
pub(crate) fn look(folder: &File, name: &[u8]) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(O_PATH | O_NOFOLLOW)
        .open(at(folder, name))
}

/// Kind, size, mode, seconds and nanoseconds of the last change, and a version that moves with every change.
pub(crate) fn describe(found: &Metadata) -> [String; 6] {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut version = DefaultHasher::new();
    (
        found.dev(),
        found.ino(),
        found.size(),
        found.mtime(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    )
        .hash(&mut version);
    [
        kind(found).to_owned(),
        found.size().to_string(),
        (found.mode() & 0o7777).to_string(),
        found.mtime().max(0).to_string(),
        found.mtime_nsec().to_string(),
        version.finish().to_string(),
    ]
}

pub(crate) fn kind(found: &Metadata) -> &'static str {
    let kind = found.file_type();
    match () {
        () if kind.is_file() => "file",
        () if kind.is_dir() => "directory",
        () if kind.is_symlink() => "symlink",
        () if kind.is_fifo() => "fifo",
        () if kind.is_socket() => "socket",
        () if kind.is_block_device() || kind.is_char_device() => "device",
        () => "other",
    }
}

impl Workspace {
    pub(crate) fn open(path: &str, read_only: bool) -> io::Result<Self> {
        Ok(Self {
            root: OpenOptions::new()
                .read(true)
                .custom_flags(O_PATH)
                .open(path)?,
            path: path.as_bytes().to_vec(),
            read_only,
            drafts: AtomicU64::new(0),
        })
    }

    /// Walks to `path`. Links are followed as long as they stay inside, relative or absolute; the last name
    /// too. Missing folders are made if `make`.
    fn walk(&self, path: &[u8], make: bool) -> Outcome<File> {
        // Open folders from the root down; none of them is a link.
        let mut folders = vec![self.root.try_clone()?];
        let mut last: Option<File> = None;
        let mut rest: Vec<Vec<u8>> = path
            .split(|byte| *byte == b'/')
            .rev()
            .map(<[u8]>::to_vec)
            .collect();
        let mut links = 0;
        while let Some(part) = rest.pop() {
            match part.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    if last.take().is_none() {
                        folders.pop();
                    }
                    if folders.is_empty() {
                        return Err(Failure::escape());
                    }
                    continue;
                }
                _ => {}
            }
            if let Some(file) = last.take() {
                let found = file.metadata()?;
                if !found.is_dir() {
                    return Err(match make {
                        true => Failure::kind(kind(&found), "directory"),
                        false => {
                            Failure::new(error::NOT_FOUND, "is below something that is no folder")
                        }
                    });
                }
                folders.push(file);
            }
            let folder = folders.last().ok_or_else(Failure::escape)?;
            let found = match look(folder, &part) {
                Ok(found) => found,
                Err(failed) if failed.raw_os_error() == Some(ENOENT) => {
                    if !make {
                        return Err(failed.into());
                    }
                    match fs::create_dir(at(folder, &part)) {
                        Err(failed) if failed.raw_os_error() != Some(EEXIST) => {
                            return Err(failed.into());
                        }
                        _ => look(folder, &part)?,
                    }
                }
                Err(failed) => return Err(failed.into()),
            };
            if !found.metadata()?.file_type().is_symlink() {
                last = Some(found);
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Failure::escape());
            }
            // Read by name: if it was swapped meanwhile this fails or reads another link, which is walked just the same.
            let target = fs::read_link(at(folder, &part))?
                .into_os_string()
                .into_vec();
            let mut target = target.as_slice();
            if target.first() == Some(&b'/') {
                target = target
                    .strip_prefix(self.path.as_slice())
                    .filter(|rest| matches!(rest.first(), None | Some(b'/')))
                    .ok_or_else(Failure::escape)?;
                folders.truncate(1);
            }
            rest.extend(target.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
        }
        last.or_else(|| folders.pop()).ok_or_else(Failure::escape)
    }

    /// What `path` names; it must be there.
    pub(crate) fn find(&self, path: &[u8]) -> Outcome<File> {
        self.walk(path, false)
    }

    /// Opens a regular file for reading. Pipes, devices and sockets are described, never opened.
    fn open_regular(&self, path: &[u8]) -> Outcome<File> {
        let found = self.find(path)?;
        let what = found.metadata()?;
        if !what.is_file() {
            return Err(Failure::kind(kind(&what), "file"));
        }
        // The very file that was looked at, whatever its name stands for by now.
        let link = format!("/proc/self/fd/{}", found.as_raw_fd());
        Ok(OpenOptions::new()
            .read(true)
            .custom_flags(O_NONBLOCK)
            .open(link)?)
    }

    pub(crate) fn writable(&self) -> Outcome {
        if self.read_only {
            return Err(Failure::new(
                error::DENIED,
                "the working directory is read-only",
            ));
        }
        Ok(())
    }

    /// Fields: path, mode. Then the host sends `DATA` frames and one `OK`; anything else leaves the file as it was.
    pub(crate) fn write(&self, stream: &mut UnixStream, fields: &[Vec<u8>]) -> Outcome {
        let [path, mode] = fields else {
            return Err(wire::broken().into());
        };
        self.writable()?;
        let mode = u32::try_from(wire::number(mode)?).unwrap_or(0o644) & 0o777;
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&b""[..], path.as_slice()),
        };
        if name.is_empty() {
            return Err(Failure::kind("directory", "file"));
        }
        let folder = self.walk(parent, true)?;
        let found = folder.metadata()?;
        if !found.is_dir() {
            return Err(Failure::kind(kind(&found), "directory"));
        }
        let draft = Draft {
            path: at(
                &folder,
                format!(
                    ".sixb-draft-{}-{}",
                    std::process::id(),
                    self.drafts.fetch_add(1, Ordering::Relaxed)
                )
                .as_bytes(),
            ),
            published: false,
        };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(O_NOFOLLOW)
            .open(&draft.path)?;
        // Tells the host that it may send: a refusal must not wait behind all the contents.
        stream.write_all(&wire::frame(wire::OK, &[]))?;
        loop {
            match wire::read(stream)? {
                (wire::DATA, bytes) => {
                    file.write_all(&bytes)?;
                    stream.write_all(&wire::frame(wire::OK, &[]))?;
                }
                (wire::OK, _) => break,
                _ => return Err(wire::broken().into()),
            }
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        match draft.publish(&at(&folder, name)) {
            Ok(()) => Ok(stream.write_all(&wire::frame(wire::OK, &[]))?),
            Err(failed) if matches!(failed.raw_os_error(), Some(EISDIR | ENOTEMPTY | EEXIST)) => {
                Err(Failure::kind("directory", "file"))
            }
            Err(failed) => Err(failed.into()),
        }
    }

    /// Fields: path, offset, length. Answers `DATA` frames and `OK`.
    pub(crate) fn read(&self, stream: &mut UnixStream, fields: &[Vec<u8>]) -> Outcome {
        let [path, offset, length] = fields else {
            return Err(wire::broken().into());
        };
        let (mut offset, mut length) = (wire::number(offset)?, wire::number(length)?);
        let file = self.open_regular(path)?;
        // What begins behind the end is empty; the kernel would refuse an offset that no file can have.
        if offset >= file.metadata()?.len() {
            length = 0;
        }
        let mut bytes = vec![0; wire::CHUNK];
        while length > 0 {
            let want = bytes
                .len()
                .min(usize::try_from(length).unwrap_or(usize::MAX));
            let read = match file.read_at(&mut bytes[..want], offset) {
                Err(failed) if failed.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) => break,
                read => read?,
            };
            stream.write_all(&wire::frame(wire::DATA, &bytes[..read]))?;
            offset += read as u64;
            length -= read as u64;
        }
        Ok(stream.write_all(&wire::frame(wire::OK, &[]))?)
    }

    /// Field: path. Answers `OK` with the description.
    pub(crate) fn stat(&self, stream: &mut UnixStream, fields: &[Vec<u8>]) -> Outcome {
        let [path] = fields else {
            return Err(wire::broken().into());
        };
        let found = self.find(path)?.metadata()?;
        Ok(stream.write_all(&wire::frame(wire::OK, &wire::pack(&describe(&found))))?)
    }

    /// Fields: path, line wanted, a line already known and its offset. Answers `OK` with `at`, offset or `end`, lines.
    pub(crate) fn seek(&self, stream: &mut UnixStream, fields: &[Vec<u8>]) -> Outcome {
        let [path, line, known, offset] = fields else {
            return Err(wire::broken().into());
        };
        let line = wire::number(line)?.max(1);
        let (mut here, mut offset) = match wire::number(known)? {
            known if (1..=line).contains(&known) => (known, wire::number(offset)?),
            _ => (1, 0),
        };
        let mut file = self.open_regular(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut reader = BufReader::with_capacity(wire::CHUNK, file);
        let mut ends_open = false;
        while here < line {
            let bytes = reader.fill_buf()?;
            if bytes.is_empty() {
                let total = if ends_open {
                    here
                } else {
                    here.saturating_sub(1)
                };
                return Ok(stream.write_all(&wire::frame(
                    wire::OK,
                    &wire::pack(&["end", &total.to_string()]),
                ))?);
            }
            let taken = match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => {
                    here += 1;
                    ends_open = false;
                    at + 1
                }
                None => {
                    ends_open = true;
                    bytes.len()
                }
            };
            reader.consume(taken);
            offset += taken as u64;
        }
        let answer = match reader.fill_buf()?.is_empty() {
            true => ["end".to_owned(), here.saturating_sub(1).to_string()],
            false => ["at".to_owned(), offset.to_string()],
        };
        Ok(stream.write_all(&wire::frame(wire::OK, &wire::pack(&answer)))?)
    }

    /// The folder that a path lies in, and its name there.
    pub(crate) fn parent_of(&self, path: &[u8]) -> Outcome<Option<(File, Vec<u8>)>> {
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&b""[..], path),
        };
        match self.walk(parent, false) {
            Ok(folder) => Ok(Some((folder, name.to_vec()))),
            Err(Failure {
                name: error::NOT_FOUND,
                ..
            }) => Ok(None),
            Err(failed) => Err(failed),
        }
    }
}

/// A file that is being written beside its target. Removed unless published.
struct Draft {
    path: PathBuf,
    published: bool,
}

impl Draft {
    fn publish(mut self, target: &PathBuf) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.path);
        }
    }
}
