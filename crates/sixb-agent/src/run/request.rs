//! What is asked for when a run starts.

use std::{io, path::PathBuf, time::Duration};

use serde_json::Value;
use sixb_sandbox::CreateOptions;
use sixb_tools::RunKind;
use tokio_util::sync::CancellationToken;

use crate::{
    files::{Attachment, PastFile},
    model::Message,
    transcript::{Replay, Thread, TranscriptError},
};

/// Longest task, in bytes.
pub(super) const MAX_TASK: usize = 1 << 20;

/// A run to start.
///
/// ```
/// use sixb_agent::RunRequest;
/// let request = RunRequest::new("researcher", "How many orders came in May?").outputs("out").transcripts("out");
/// # let _ = request;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunRequest {
    /// The agent's id.
    pub agent: String,
    /// What the user says. Not blank; at most 1 MiB.
    pub task: String,
    /// What kind of run. Default: `Cli`.
    pub kind: RunKind,
    /// The conversation it belongs to.
    pub thread_id: Option<String>,
    /// What was said in the conversation before, oldest first.
    pub history: Vec<Message>,
    /// Files that the user attaches.
    pub attachments: Vec<Attachment>,
    /// Files of the conversation's earlier turns, oldest first: they are in the new sandbox too, within limits.
    pub past_files: Vec<PastFile>,
    /// Structured input of a workflow task; the model reads it after the task.
    pub input: Option<Value>,
    /// The JSON schema of the structured output of a workflow task.
    pub output_schema: Option<Value>,
    /// Options of its sandbox, over the factory's.
    pub sandbox: CreateOptions,
    /// The host folder that output files go to, as `<outputs>/<run id>/…`. Without it they are in the
    /// store alone. It may lie in a workspace that the guest writes to: then they are saved once the sandbox is gone. Below
    /// the current directory and the workspace links are not followed.
    pub outputs: Option<PathBuf>,
    /// The host folder of transcripts, `<transcripts>/<run id>/transcript.jsonl`. Without it none is kept. It may not lie
    /// in a workspace that the guest writes to.
    pub transcripts: Option<PathBuf>,
    /// The host folder of requests to the model. It may not lie in a workspace that the guest writes to.
    #[cfg(feature = "openai")]
    pub requests: Option<PathBuf>,
    /// The host folder that records which run writes to which host folder. Default: [`state_folder`](crate::state_folder).
    /// Only runs in such a workspace need it.
    pub state: Option<PathBuf>,
    /// How long it may take. Default: the agent's.
    pub timeout: Option<Duration>,
    /// Ends it early.
    pub cancel: CancellationToken,
    /// The run that is resumed.
    pub(crate) resume: Option<String>,
}

impl RunRequest {
    /// A run of the command line with no folders on the host.
    pub fn new(agent: impl Into<String>, task: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            task: task.into(),
            kind: RunKind::Cli,
            thread_id: None,
            history: Vec::new(),
            attachments: Vec::new(),
            past_files: Vec::new(),
            input: None,
            output_schema: None,
            sandbox: CreateOptions::default(),
            outputs: None,
            transcripts: None,
            #[cfg(feature = "openai")]
            requests: None,
            state: None,
            timeout: None,
            cancel: CancellationToken::new(),
            resume: None,
        }
    }

    /// A turn of a conversation: `past` is what was said in it before and the files that came of it, for example by
    /// [`transcript::thread`](crate::transcript::thread), or messages alone.
    pub fn conversation(
        agent: impl Into<String>,
        task: impl Into<String>,
        thread_id: impl Into<String>,
        past: impl Into<Thread>,
    ) -> Self {
        Self {
            kind: RunKind::Conversation,
            ..Self::new(agent, task).thread(thread_id).past(past)
        }
    }

    /// A headless task: nobody can be asked, `input` is data, and with [`output_schema`](Self::output_schema) the answer
    /// is JSON of a known shape, in [`Outcome::output`](crate::Outcome::output).
    pub fn workflow_task(agent: impl Into<String>, task: impl Into<String>, input: Value) -> Self {
        Self {
            kind: RunKind::WorkflowTask,
            input: Some(input),
            ..Self::new(agent, task)
        }
    }

    /// Goes on with a run that did not complete: killed, failed, cancelled or out of time.
    ///
    /// - It is the same run, with the same id, agent and transcript (`transcripts` is the folder that `past` was read
    ///   from); steps are counted on, up to as many more as its agent allows, and time begins anew.
    /// - No call is made again. One without a result is told as interrupted. Tools that must not act twice have
    ///   [`ToolContext::idempotency_key`](sixb_tools::ToolContext::idempotency_key).
    /// - Its sandbox is new. The model is told that files that were not published are gone.
    /// - Of a conversation, set the [`past`](Self::past) again: a transcript holds its own turn.
    pub fn resume(past: &Replay, transcripts: impl Into<PathBuf>) -> Self {
        Self {
            kind: past.kind,
            thread_id: past.thread_id.clone(),
            output_schema: past.output_schema.clone(),
            transcripts: Some(transcripts.into()),
            resume: Some(past.run_id.clone()),
            ..Self::new(&past.agent_id, &past.task)
        }
    }

    /// Sets what was said before, and the files that came of it.
    pub fn past(mut self, past: impl Into<Thread>) -> Self {
        let past = past.into();
        (self.history, self.past_files) = (past.messages, past.files);
        self
    }

    /// Attaches a file.
    pub fn attach(mut self, file: Attachment) -> Self {
        self.attachments.push(file);
        self
    }

    /// Sets the JSON schema that the answer has to fit. An answer that does not is told to the model, which may correct
    /// it within its steps.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// Sets what kind of run.
    pub fn kind(mut self, kind: RunKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the conversation.
    pub fn thread(mut self, id: impl Into<String>) -> Self {
        self.thread_id = Some(id.into());
        self
    }

    /// Sets options of its sandbox: workspace, network, limits, ….
    ///
    /// With a host folder as workspace the run keeps its files below `.sixb/agent` there and removes what it added when
    /// it ends; a second run in that folder at the same time is refused. In a read-only one it has no output directory,
    /// which a diagnostic tells.
    pub fn sandbox(mut self, options: CreateOptions) -> Self {
        self.sandbox = options;
        self
    }

    /// Sets the host folder that output files go to.
    pub fn outputs(mut self, folder: impl Into<PathBuf>) -> Self {
        self.outputs = Some(folder.into());
        self
    }

    /// Sets the host folder of transcripts.
    pub fn transcripts(mut self, folder: impl Into<PathBuf>) -> Self {
        self.transcripts = Some(folder.into());
        self
    }

    /// Writes each request to the model into this host folder, as `request-001.json` and so on: what an OpenAI-compatible
    /// server would get, without the key. Images of files are in it.
    #[cfg(feature = "openai")]
    pub fn dump_requests(mut self, folder: impl Into<PathBuf>) -> Self {
        self.requests = Some(folder.into());
        self
    }

    /// Sets the host folder that records which run writes to which host folder.
    pub fn state(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = Some(folder.into());
        self
    }

    /// Sets how long it may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the token that ends it early.
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = token;
        self
    }
}

/// A run did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No agent has this id.
    #[error("no agent has the id `{agent}`; known agents: {}", .known.join(", "))]
    UnknownAgent {
        /// The id asked for.
        agent: String,
        /// The ids there are.
        known: Vec<String>,
    },
    /// The task says nothing, or too much.
    #[error("the task {problem}")]
    InvalidTask {
        /// What is wrong.
        problem: String,
    },
    /// It was cancelled, or the project closed, while its files were taken in. Nothing is left of it.
    #[error("the run was cancelled before it began")]
    Cancelled,
    /// Its time was over while its files were taken in. Nothing is left of it.
    #[error("the run's time of {} ms was over before it began", .limit.as_millis())]
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// A file cannot be attached.
    #[error("attachment {name:?} {problem}")]
    Attachment {
        /// Its name, as given.
        name: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The output schema is no JSON schema.
    #[error("the output schema cannot be used: {problem}")]
    InvalidSchema {
        /// What is wrong.
        problem: String,
    },
    /// There is nothing to go on with.
    #[error("run {run_id} cannot be resumed: {problem}")]
    NotResumable {
        /// The run.
        run_id: String,
        /// Why.
        problem: String,
    },
    /// The project was closed.
    #[error("the project is closed: no more runs can start")]
    Closed,
    /// Another run writes to the workspace.
    #[error(
        "the workspace {} is in use by {}: wait for it to end, or use another folder",
        .workspace.display(),
        .run_id.as_deref().unwrap_or("another run")
    )]
    WorkspaceBusy {
        /// The folder.
        workspace: PathBuf,
        /// The other run.
        run_id: Option<String>,
    },
    /// What the run keeps would be in the guest's hands.
    #[error(
        "{what} would lie in {}, inside the workspace {}, which the sandbox may change: keep them elsewhere",
        .folder.display(),
        .workspace.display()
    )]
    Exposed {
        /// `transcripts`, `requests to the model`, `blobs` or `records of open runs`.
        what: &'static str,
        /// Where they would be.
        folder: PathBuf,
        /// The workspace.
        workspace: PathBuf,
    },
    /// The folder of requests cannot be used.
    #[error("folder of requests {}: {source}", .folder.display())]
    Requests {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The folder of outputs cannot be used.
    #[error("output folder {}: {source}", .folder.display())]
    Outputs {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// That the run writes to its workspace cannot be recorded.
    #[error("records of open runs {}: {source}", .folder.display())]
    State {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The transcript cannot be begun.
    #[error(transparent)]
    Transcript(#[from] TranscriptError),
}

impl RunRequest {
    /// What the model reads as the user's message.
    pub(super) fn message(&self) -> String {
        match &self.input {
            None => self.task.clone(),
            Some(input) => {
                // As JSON may be written: no text in it can end the section.
                let input = format!("{input:#}").replace("</", "<\\/");
                format!("{}\n\n<input>\n{input}\n</input>", self.task)
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), RunError> {
        let input = self.input.as_ref().map(|input| input.to_string().len());
        if let Some(len) = input.filter(|len| *len > MAX_TASK) {
            return Err(RunError::InvalidTask {
                problem: format!("has an input of {len} bytes of JSON; the limit is {MAX_TASK}"),
            });
        }
        if let (Some(run_id), "") = (&self.resume, self.task.trim()) {
            return Err(RunError::NotResumable {
                run_id: run_id.clone(),
                problem: "it was killed before its task was written down: start it anew".to_owned(),
            });
        }
        let problem = if self.task.trim().is_empty() {
            "is blank: say what to do".to_owned()
        } else if self.task.len() > MAX_TASK {
            format!(
                "has {} bytes; the limit is {MAX_TASK}: put long material into a file of the workspace",
                self.task.len()
            )
        } else {
            return Ok(());
        };
        Err(RunError::InvalidTask { problem })
    }
}
