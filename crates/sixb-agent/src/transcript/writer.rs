//! Appends records to the file of one run.

use std::{
    fs::{File, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::SystemTime,
};

use cap_std::fs::OpenOptions;

use super::{FILE_NAME, Record, RecordBody, Replay, TranscriptError};
use crate::{
    outputs::place::{Place, enter},
    timestamp::rfc3339,
};

#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    path: PathBuf,
    run_id: String,
    seq: u64,
}

impl Writer {
    /// Makes `<folder>/<run id>/transcript.jsonl`, which must not exist. From then on the file is what is open, not its
    /// name.
    pub(crate) fn create(
        place: &Place,
        shown: &Path,
        run_id: &str,
    ) -> Result<Self, TranscriptError> {
        let folder = shown.join(run_id);
        let dir = place
            .open()
            .and_then(|(dir, _)| enter(&dir, run_id.as_ref()))
            .map_err(|source| failed("create", &folder, source))?
            .0;
        let path = folder.join(FILE_NAME);
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        let file = dir
            .open_with(FILE_NAME, &options)
            .map_err(|source| failed("create", &path, source))?
            .into_std();
        lock(&file, &path)?;
        Ok(Self {
            file,
            path,
            run_id: run_id.to_owned(),
            seq: 0,
        })
    }

    /// Goes on with the transcript of a run: the lock first, so that what is read then is all there is. What is left of
    /// a line that was cut off is taken away.
    pub(crate) fn reopen(
        place: &Place,
        shown: &Path,
        run_id: &str,
    ) -> Result<(Self, Replay), TranscriptError> {
        // Checks the id and that there is a transcript at all, before anything is made.
        Replay::read(shown, run_id)?;
        let path = shown.join(run_id).join(FILE_NAME);
        let mut options = OpenOptions::new();
        options.append(true).read(true);
        let file = place
            .open()
            .and_then(|(dir, _)| enter(&dir, run_id.as_ref()))
            .and_then(|(dir, _)| dir.open_with(FILE_NAME, &options))
            .map_err(|source| failed("open", &path, source))?
            .into_std();
        lock(&file, &path)?;
        let replay = Replay::read(shown, run_id)?;
        if replay.torn {
            let whole = whole_lines(&file).map_err(|source| failed("read", &path, source))?;
            file.set_len(whole)
                .map_err(|source| failed("write", &path, source))?;
        }
        let writer = Self {
            file,
            path,
            run_id: run_id.to_owned(),
            seq: replay.records,
        };
        Ok((writer, replay))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends records by one `write`. It goes to the page cache, which takes microseconds: not worth a thread.
    pub(crate) fn append(
        &mut self,
        bodies: impl IntoIterator<Item = RecordBody>,
    ) -> Result<(), TranscriptError> {
        let mut lines = Vec::new();
        let mut seq = self.seq;
        for body in bodies {
            let record = Record {
                at: rfc3339(SystemTime::now()),
                run_id: self.run_id.clone(),
                seq,
                body,
            };
            serde_json::to_writer(&mut lines, &record)
                .map_err(|error| failed("write", &self.path, std::io::Error::other(error)))?;
            lines.push(b'\n');
            seq += 1;
        }
        self.file
            .write_all(&lines)
            .map_err(|source| failed("write", &self.path, source))?;
        self.seq = seq;
        Ok(())
    }

    /// Removes the transcript of a run that does not begin, and its folder if nothing else is in it.
    #[expect(
        clippy::disallowed_methods,
        reason = "the transcript is a file of the host, made by this process a moment ago"
    )]
    pub(crate) fn discard(self) {
        let _ = std::fs::remove_file(&self.path);
        if let Some(folder) = self.path.parent() {
            let _ = std::fs::remove_dir(folder);
        }
    }

    /// Makes all records survive a power loss. May take long: call it off the runtime's threads.
    pub(crate) fn sync(&self) -> Result<(), TranscriptError> {
        self.file
            .sync_all()
            .map_err(|source| failed("sync", &self.path, source))
    }
}

/// The kernel lets go of it when the process dies, however it dies.
fn lock(file: &File, path: &Path) -> Result<(), TranscriptError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(TranscriptError::Busy {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(failed("lock", path, source)),
    }
}

/// Where the last whole line ends, in bytes.
fn whole_lines(mut file: &File) -> std::io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = [0; 8 << 10];
    while end > 0 {
        let len = end.min(block.len() as u64);
        file.seek(SeekFrom::Start(end - len))?;
        let block = &mut block[..len as usize];
        file.read_exact(block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(end - len + at as u64 + 1);
        }
        end -= len;
    }
    Ok(0)
}

fn failed(op: &'static str, path: &Path, source: std::io::Error) -> TranscriptError {
    TranscriptError::Io {
        op,
        path: path.to_owned(),
        source,
    }
}
