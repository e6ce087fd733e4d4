//! A folder of transcripts: which runs there are, and what was said in a thread.

use std::path::Path;

use super::{Replay, TranscriptError};
use crate::model::Message;

/// Runs that are looked at, newest first: a folder may hold years of them.
const MAX_RUNS: usize = 10_000;
/// Runs of a thread whose messages are told again.
const MAX_TURNS: usize = 200;

/// The ids of the runs in a folder of transcripts, oldest first; none when the folder is missing. Blocking.
///
/// # Errors
/// [`TranscriptError::Io`] when the folder cannot be read.
#[expect(
    clippy::disallowed_methods,
    reason = "transcripts are files of the host"
)]
pub fn runs(folder: impl AsRef<Path>) -> Result<Vec<String>, TranscriptError> {
    let folder = folder.as_ref();
    let failed = |source| TranscriptError::Io {
        op: "read",
        path: folder.to_owned(),
        source,
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        if let Some(name) = name.to_str().filter(|name| name.starts_with("run_")) {
            runs.push(name.to_owned());
        }
    }
    // A run's id begins with its time.
    runs.sort_unstable();
    if runs.len() > MAX_RUNS {
        runs.drain(..runs.len() - MAX_RUNS);
    }
    Ok(runs)
}

/// What was said in a thread before the run `before` (or so far), oldest first: the history of its next turn. Blocking.
///
/// Of an interrupted or cancelled turn it has what there is. Transcripts that cannot be read are passed over: one broken
/// file must not end a conversation.
///
/// # Errors
/// [`TranscriptError::Io`] when the folder cannot be read.
pub fn thread(
    folder: impl AsRef<Path>,
    thread_id: &str,
    before: Option<&str>,
) -> Result<Vec<Message>, TranscriptError> {
    let folder = folder.as_ref();
    let mut turns = Vec::new();
    for run in runs(folder)?.iter().rev() {
        if before.is_some_and(|before| run.as_str() >= before) {
            continue;
        }
        match Replay::read(folder, run) {
            Ok(replay) if replay.thread_id.as_deref() == Some(thread_id) => {
                turns.push(replay.messages)
            }
            Ok(_) => {}
            Err(error) => tracing::debug!("passed over: {error}"),
        }
        if turns.len() == MAX_TURNS {
            break;
        }
    }
    Ok(turns.into_iter().rev().flatten().collect())
}
