//! Appends records to the file of one run.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{FILE_NAME, Record, RecordBody, TranscriptError};
use crate::timestamp::rfc3339;

#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    path: PathBuf,
    run_id: String,
    seq: u64,
}

impl Writer {
    /// Makes `<folder>/<run id>/transcript.jsonl`, which must not exist.
    #[expect(
        clippy::disallowed_methods,
        reason = "the transcript is a file of the host"
    )]
    pub(crate) fn create(folder: &Path, run_id: &str) -> Result<Self, TranscriptError> {
        let folder = folder.join(run_id);
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        builder
            .create(&folder)
            .map_err(|source| failed("create", &folder, source))?;
        let path = folder.join(FILE_NAME);
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        let file = options
            .open(&path)
            .map_err(|source| failed("create", &path, source))?;
        Ok(Self {
            file,
            path,
            run_id: run_id.to_owned(),
            seq: 0,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one record by one `write`. It goes to the page cache, which takes microseconds: not worth a thread.
    pub(crate) fn append(&mut self, body: RecordBody) -> Result<(), TranscriptError> {
        let record = Record {
            at: rfc3339(SystemTime::now()),
            run_id: self.run_id.clone(),
            seq: self.seq,
            body,
        };
        let mut line = serde_json::to_vec(&record)
            .map_err(|error| failed("write", &self.path, std::io::Error::other(error)))?;
        line.push(b'\n');
        self.file
            .write_all(&line)
            .map_err(|source| failed("write", &self.path, source))?;
        self.seq += 1;
        Ok(())
    }

    /// Makes all records survive a power loss. May take long: call it off the runtime's threads.
    pub(crate) fn sync(&self) -> Result<(), TranscriptError> {
        self.file
            .sync_all()
            .map_err(|source| failed("sync", &self.path, source))
    }
}

fn failed(op: &'static str, path: &Path, source: std::io::Error) -> TranscriptError {
    TranscriptError::Io {
        op,
        path: path.to_owned(),
        source,
    }
}
