//! Transcripts: one append-only file of JSON Lines per run.
//!
//! `<folder>/<run id>/transcript.jsonl`, one [`Record`] per line. A record is one `write`, so a killed process loses at
//! most the step in flight and leaves at most one torn line, which the [`Reader`] tells apart from damage. The file is
//! fsynced when the run ends; before that it does not survive a power loss.

mod folder;
mod reader;
mod record;
mod replay;
mod writer;

use std::path::PathBuf;

pub use folder::{Thread, runs, thread};
pub use reader::Reader;
pub use record::{Record, RecordBody};
pub use replay::Replay;
pub(crate) use replay::interrupted;
pub(crate) use writer::Writer;

/// The name of the file in the run's folder.
pub const FILE_NAME: &str = "transcript.jsonl";

/// A transcript cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The file cannot be reached: check the folder and its rights.
    #[error("transcript {}: cannot {op}: {source}", .path.display())]
    Io {
        /// `create`, `open`, `lock`, `write`, `read` or `sync`.
        op: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Another process, or another run of this one, writes the transcript: that run still goes on.
    #[error("transcript {}: its run goes on in another process; wait for its end", .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A line in the middle is no record: the file was changed by something else.
    #[error("transcript {}: line {line} is no record: {problem}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
}
