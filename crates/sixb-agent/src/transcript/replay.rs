//! What a transcript says about its run: enough to show it, to go on with its thread, and to resume it.

use std::{collections::HashSet, path::Path};

use sixb_artifacts::{Provenance, RunFile};
use sixb_tools::{RunKind, ToolErrorKind};

use super::{FILE_NAME, Reader, Record, RecordBody, TranscriptError};
use crate::{
    files::PastFile,
    model::{Message, ModelLabel, ToolCall, ToolResult, Usage},
    run::{RunState, SavedFile},
};

/// A run as its transcript tells it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Replay {
    /// The run.
    pub run_id: String,
    /// When it began: RFC 3339.
    pub began: String,
    /// When the last record was written.
    pub last: String,
    /// The project.
    pub project_id: String,
    /// The agent.
    pub agent_id: String,
    /// The conversation.
    pub thread_id: Option<String>,
    /// What kind of run.
    pub kind: RunKind,
    /// The model it began with.
    pub model: ModelLabel,
    /// What the user said first.
    pub task: String,
    /// How it ended: `completed`, `failed`, `cancelled` or `timed-out`. `None`: it goes on, or its process was killed.
    pub status: Option<String>,
    /// Why it did not complete.
    pub reason: Option<String>,
    /// Steps that were begun.
    pub steps: u32,
    /// Tokens of all steps.
    pub usage: Usage,
    /// Files that were saved at the end.
    pub files: Vec<SavedFile>,
    /// Files that the run came to: attached, made by tools, looked at. In their order.
    pub run_files: Vec<RunFile>,
    /// The task's schema, where it has to give structured output.
    pub output_schema: Option<serde_json::Value>,
    /// What is wrong with records of files that this version cannot read.
    pub unread: Vec<String>,
    /// What was said: the user's task, the model's steps, the results of its calls.
    pub messages: Vec<Message>,
    /// Calls of the last step that have no result, because the process was killed. They stand in `messages`, where a
    /// result that says so follows each of them.
    pub interrupted: Vec<ToolCall>,
    /// The last line was cut off.
    pub torn: bool,
    /// Ids of all calls.
    pub(crate) call_ids: HashSet<String>,
    /// Records that are whole.
    pub(crate) records: u64,
    /// The last step in `messages` was cut: its calls, if any, were not run.
    ends_partial: bool,
}

/// A step that is being put together.
#[derive(Default)]
struct Step {
    text: String,
    partial: bool,
    /// How many calls the model made in it.
    expected: usize,
    calls: Vec<ToolCall>,
    results: Vec<ToolResult>,
}

impl Replay {
    /// Reads `<folder>/<run id>/transcript.jsonl`. Blocking; holds the conversation, not the whole file.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or says nothing about how its run began.
    pub fn read(folder: impl AsRef<Path>, run_id: &str) -> Result<Self, TranscriptError> {
        let path = folder.as_ref().join(run_id).join(FILE_NAME);
        // The id names a folder below `folder`, and nothing else.
        if run_id.is_empty() || run_id.contains(['/', '\0']) || run_id.starts_with('.') {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "this is no run id");
            return Err(TranscriptError::Io {
                op: "open",
                path,
                source,
            });
        }
        let mut reader = Reader::open(&path)?;
        let mut replay = None;
        let mut step = None;
        let mut records = 0;
        for record in reader.by_ref() {
            let record = record?;
            records += 1;
            match &mut replay {
                None => {
                    replay = Some(
                        Self::begin(&record).ok_or_else(|| TranscriptError::Damaged {
                            path: path.clone(),
                            line: records,
                            problem: "the first record does not say how the run began".to_owned(),
                        })?,
                    )
                }
                Some(replay) => replay.add(record, &mut step),
            }
        }
        let mut replay = replay.ok_or_else(|| TranscriptError::Damaged {
            path: path.clone(),
            line: 1,
            problem: "there is no whole record".to_owned(),
        })?;
        replay.end_step(step.take());
        replay.torn = reader.torn();
        replay.records = records;
        Ok(replay)
    }

    fn begin(record: &Record) -> Option<Self> {
        let RecordBody::State {
            state:
                RunState::Started {
                    project_id,
                    agent_id,
                    thread_id,
                    kind,
                    model,
                    output_schema,
                    ..
                },
        } = &record.body
        else {
            return None;
        };
        Some(Self {
            run_id: record.run_id.clone(),
            began: record.at.clone(),
            last: record.at.clone(),
            project_id: project_id.clone(),
            agent_id: agent_id.clone(),
            thread_id: thread_id.clone(),
            kind: *kind,
            model: model.clone(),
            task: String::new(),
            status: None,
            reason: None,
            steps: 0,
            usage: Usage::default(),
            files: Vec::new(),
            run_files: Vec::new(),
            unread: Vec::new(),
            output_schema: output_schema.clone(),
            messages: Vec::new(),
            interrupted: Vec::new(),
            torn: false,
            call_ids: HashSet::new(),
            records: 0,
            ends_partial: false,
        })
    }

    fn add(&mut self, record: Record, step: &mut Option<Step>) {
        self.last = record.at;
        match record.body {
            RecordBody::User { text, .. } => {
                self.end_step(step.take());
                if self.messages.is_empty() {
                    self.task.clone_from(&text);
                }
                self.ends_partial = false;
                self.messages.push(Message::user(text));
            }
            RecordBody::Assistant {
                text,
                partial,
                calls,
                ..
            } => {
                self.end_step(step.take());
                *step = Some(Step {
                    text,
                    partial,
                    expected: calls as usize,
                    ..Step::default()
                });
            }
            RecordBody::ToolCall {
                call_id,
                name,
                arguments,
                ..
            } => {
                self.call_ids.insert(call_id.clone());
                // Malformed arguments are kept as a JSON string.
                let arguments = match arguments {
                    serde_json::Value::String(raw) => raw,
                    other => other.to_string(),
                };
                if let Some(step) = step {
                    step.calls.push(ToolCall::new(call_id, name, arguments));
                }
            }
            RecordBody::ToolResult {
                call_id,
                name,
                result,
                error,
                ..
            } => {
                let result = match (result, error) {
                    (_, Some(failure)) => Err(failure),
                    (value, None) => Ok(value.unwrap_or_default()),
                };
                if let Some(step) = step {
                    step.results.push(ToolResult {
                        call_id,
                        name,
                        result,
                        shown: None,
                    });
                }
            }
            RecordBody::RunFile {
                provenance,
                file_ref,
                path,
                call_id,
            } => {
                let mut file = RunFile::new(file_ref, provenance);
                (file.path, file.tool_call_id) = (path, call_id);
                self.run_files.push(file);
            }
            RecordBody::File { file } => self.files.push(file),
            RecordBody::Usage { usage, .. } => self.usage.add(usage),
            RecordBody::State { state } => match state {
                RunState::Step { step, .. } => self.steps = self.steps.max(step),
                RunState::Finished { status, reason } => {
                    (self.status, self.reason) = (Some(status), reason)
                }
                RunState::Resumed { .. } => {
                    (self.status, self.reason) = (None, None);
                    self.end_step(step.take());
                    self.drop_partial_step();
                }
                _ => {}
            },
            RecordBody::Unread { problem } => self.unread.push(problem),
            RecordBody::Diagnostic { .. } => {}
        }
    }

    /// Adds a step to the messages; results in the order of the calls. A step in flight of which not all calls were
    /// written is left out: none of them was begun.
    fn end_step(&mut self, step: Option<Step>) {
        let Some(mut step) = step else { return };
        if step.calls.len() < step.expected {
            for call in &step.calls {
                self.call_ids.remove(&call.id);
            }
            return;
        }
        let mut results = Vec::with_capacity(step.calls.len());
        self.interrupted.clear();
        for call in &step.calls {
            let at = step
                .results
                .iter()
                .position(|result| result.call_id == call.id);
            results.push(match at {
                Some(at) => step.results.swap_remove(at),
                None => {
                    self.interrupted.push(call.clone());
                    interrupted(call)
                }
            });
        }
        if step.partial && step.text.is_empty() && step.calls.is_empty() {
            return;
        }
        self.ends_partial = step.partial;
        self.messages.push(Message::Assistant {
            text: step.text,
            calls: step.calls,
        });
        self.messages.extend(results.into_iter().map(Message::Tool));
    }

    /// Takes the last step away if it was cut: the model is asked for it again.
    pub(crate) fn drop_partial_step(&mut self) {
        if !std::mem::take(&mut self.ends_partial) {
            return;
        }
        let said = |message: &Message| matches!(message, Message::Assistant { .. });
        let Some(last) = self.messages.iter().rposition(said) else {
            return;
        };
        for message in self.messages.drain(last..) {
            if let Message::Assistant { calls, .. } = message {
                for call in calls {
                    self.call_ids.remove(&call.id);
                }
            }
        }
    }

    /// The files that a later turn of its conversation has: attached, looked at, and made; each content once by each way.
    pub(crate) fn past_files(&self) -> Vec<PastFile> {
        let known = self.run_files.iter();
        let known = known.map(|known| (known.file.clone(), known.provenance));
        let saved = self.files.iter();
        let saved = saved.filter_map(|saved| Some((saved.file_ref.clone()?, saved.provenance)));
        let mut files: Vec<PastFile> = Vec::new();
        for (file, provenance) in known.chain(saved) {
            let same = |old: &PastFile| {
                old.file.same_content(&file) && old.file.file_name() == file.file_name()
            };
            match files.iter_mut().find(|old| same(old)) {
                None => files.push(PastFile::new(file, provenance, &self.run_id)),
                // What was looked at and then handed out was handed out.
                Some(old) if old.provenance == Provenance::Viewed => old.provenance = provenance,
                Some(_) => {}
            }
        }
        files
    }

    /// Whether its model had said all it wanted.
    pub fn completed(&self) -> bool {
        self.status.as_deref() == Some("completed")
    }
}

/// The result of a call whose process was killed.
pub(crate) fn interrupted(call: &ToolCall) -> ToolResult {
    ToolResult::failed(
        call,
        ToolErrorKind::Cancelled,
        "The run was interrupted before this call had a result. Whether it took effect is not known.",
    )
}
