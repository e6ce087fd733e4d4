//! Appends records to the file of one run.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    time::SystemTime,
};

use cap_std::fs::OpenOptions;

use super::{FILE_NAME, Record, RecordBody, TranscriptError};
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
