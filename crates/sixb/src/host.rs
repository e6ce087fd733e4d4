//! The only place where the command line touches files of the host by itself.

#![expect(
    clippy::disallowed_methods,
    reason = "the command line reads sixb.toml, scripts and /proc, and writes sixb.toml and outputs, for the person who runs it"
)]

use std::{
    fs,
    io::{self, Read, Write},
    path::Path,
};

/// Longest file that is read whole: settings and scripts are small; a larger one was named by mistake.
const MAX_FILE: u64 = 8 << 20;

/// Reads a small text file.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = fs::File::open(path)?
        .take(MAX_FILE + 1)
        .read_to_string(&mut text)?;
    if read as u64 > MAX_FILE {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("is larger than {MAX_FILE} bytes"),
        ));
    }
    Ok(text)
}

/// Reads a file of at most `limit` bytes.
pub(crate) fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file_size(path)?;
    let file = fs::File::open(path)?;
    let read = file.take(limit + 1).read_to_end(&mut bytes)?;
    if read as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("is larger than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

/// The size of a regular file, in bytes. Nothing is opened: a pipe would wait for its writer.
pub(crate) fn file_size(path: &Path) -> io::Result<u64> {
    let found = fs::metadata(path)?;
    match found.is_file() {
        true => Ok(found.len()),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "is no regular file",
        )),
    }
}

/// Writes a file that must not be there yet.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

/// Whether a folder is there; an error when something else is, or when it cannot be looked at.
pub(crate) fn is_folder(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.is_dir())
}

/// Whether a file, not a folder, is there.
pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file()
}
