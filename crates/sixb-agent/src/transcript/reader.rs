//! Reads a transcript back, also one whose writer was killed.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use super::{Record, TranscriptError};

/// Longest line that is read, in bytes. The writer's records stay far below.
const MAX_LINE: u64 = 64 << 20;

/// Yields the records of a transcript, in order, holding one at a time. Blocking.
///
/// A last line that is cut off (the writer was killed in the middle of it) ends the iteration without an error;
/// [`torn`](Self::torn) tells. A line in the middle that is no record is [`TranscriptError::Damaged`].
#[derive(Debug)]
pub struct Reader<R = BufReader<File>> {
    lines: R,
    path: PathBuf,
    line: u64,
    torn: bool,
    ended: bool,
}

impl Reader {
    /// Opens `<folder>/<run id>/transcript.jsonl`, or whichever file `path` names.
    ///
    /// # Errors
    /// [`TranscriptError::Io`] when it cannot be opened.
    #[expect(
        clippy::disallowed_methods,
        reason = "the transcript is a file of the host"
    )]
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TranscriptError> {
        let path = path.as_ref().to_owned();
        match File::open(&path) {
            Ok(file) => Ok(Self::new(BufReader::new(file), path)),
            Err(source) => Err(TranscriptError::Io {
                op: "open",
                path,
                source,
            }),
        }
    }
}

impl<R: BufRead> Reader<R> {
    fn new(lines: R, path: PathBuf) -> Self {
        Self {
            lines,
            path,
            line: 0,
            torn: false,
            ended: false,
        }
    }

    /// Whether the last line was cut off. Known once the iteration has ended.
    pub fn torn(&self) -> bool {
        self.torn
    }

    fn read(&mut self) -> Result<Option<Record>, TranscriptError> {
        let mut line = Vec::new();
        let read = (&mut self.lines)
            .take(MAX_LINE)
            .read_until(b'\n', &mut line);
        read.map_err(|source| TranscriptError::Io {
            op: "read",
            path: self.path.clone(),
            source,
        })?;
        if line.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        if line.pop_if(|byte| *byte == b'\n').is_none() && (line.len() as u64) < MAX_LINE {
            self.torn = true;
            return Ok(None);
        }
        // By way of a `Value`: a tagged enum read from text at once does not understand the numbers of serde_json's
        // feature `arbitrary_precision`.
        let value = serde_json::from_slice::<serde_json::Value>(&line);
        let read = value.and_then(|value| match serde_json::from_value(value.clone()) {
            Err(error) if is_of_file(&value) => unread(value, &error),
            read => read,
        });
        match read {
            Ok(record) => Ok(Some(record)),
            Err(error) => Err(TranscriptError::Damaged {
                path: self.path.clone(),
                line: self.line,
                problem: error.to_string(),
            }),
        }
    }
}

/// Whether a record tells of a file: the conversation is whole without it.
fn is_of_file(value: &serde_json::Value) -> bool {
    let kind = value.get("type").and_then(serde_json::Value::as_str);
    matches!(kind, Some("run-file" | "file"))
}

fn unread(
    mut value: serde_json::Value,
    error: &serde_json::Error,
) -> Result<Record, serde_json::Error> {
    value["type"] = "unread".into();
    value["problem"] = error.to_string().into();
    serde_json::from_value(value)
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, TranscriptError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests damage the file")]
mod tests;
