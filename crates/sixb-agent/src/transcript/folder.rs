//! A folder of transcripts: which runs there are, and what was said in a thread.

use std::path::Path;

use super::{FILE_NAME, Reader, RecordBody, Replay, TranscriptError};
use crate::{files::PastFile, model::Message, run::RunState};

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

/// A conversation so far.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Thread {
    /// What was said, oldest first.
    pub messages: Vec<Message>,
    /// Files that came of it, oldest first.
    pub files: Vec<PastFile>,
    /// What could not be read of it, in words for people.
    pub problems: Vec<String>,
}

impl From<Vec<Message>> for Thread {
    fn from(messages: Vec<Message>) -> Self {
        Self {
            messages,
            ..Self::default()
        }
    }
}

/// What was said in a thread before the run `before` (or so far), and the files that came of it: the past of its next turn. Blocking.
///
/// Of an interrupted or cancelled turn it has what there is. Transcripts that cannot be read are passed over, which
/// [`Thread::problems`] tells: one broken file must not end a conversation.
///
/// # Errors
/// [`TranscriptError::Io`] when the folder cannot be read.
pub fn thread(
    folder: impl AsRef<Path>,
    thread_id: &str,
    before: Option<&str>,
) -> Result<Thread, TranscriptError> {
    let folder = folder.as_ref();
    let (mut thread, mut turns) = (Thread::default(), Vec::new());
    for run in runs(folder)?.iter().rev() {
        if before.is_some_and(|before| run.as_str() >= before) {
            continue;
        }
        if !is_of(folder, run, thread_id) {
            continue;
        }
        match Replay::read(folder, run) {
            Ok(replay) => {
                let unread = replay.unread.iter();
                let unread =
                    unread.map(|problem| format!("a file of {run} is passed over: {problem}"));
                thread.problems.extend(unread);
                turns.push((replay.past_files(), replay.messages));
            }
            Err(error) => thread
                .problems
                .push(format!("a turn is passed over: {error}")),
        }
        if turns.len() == MAX_TURNS {
            break;
        }
    }
    for (files, messages) in turns.into_iter().rev() {
        thread.files.extend(files);
        thread.messages.extend(messages);
    }
    Ok(thread)
}

/// By the first record alone: a folder has many runs, and a thread few of them.
fn is_of(folder: &Path, run: &str, thread: &str) -> bool {
    let reader = Reader::open(folder.join(run).join(FILE_NAME));
    let first = reader.ok().and_then(|mut reader| reader.next()?.ok());
    matches!(
        first.map(|record| record.body),
        Some(RecordBody::State { state: RunState::Started { thread_id: Some(of), .. } }) if of == thread
    )
}
