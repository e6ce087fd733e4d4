//! What came of a run.

use std::{fmt, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use sixb_artifacts::{FileRef, Provenance};

use crate::model::{ModelLabel, Usage};

/// What came of a run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Outcome {
    /// The run.
    pub run_id: String,
    /// How it ended.
    #[serde(flatten)]
    pub status: RunStatus,
    /// The answer; what there is of it when the run did not complete. Empty when the model wrote nothing.
    pub text: String,
    /// The answer as JSON that fits the output schema, of a completed run that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// Steps that were begun.
    pub steps: u32,
    /// The model, labelled when it is scripted.
    pub model: ModelLabel,
    /// Tokens of all steps.
    pub usage: Usage,
    /// What the answer comes with: files that tools made, and output files.
    pub files: Vec<SavedFile>,
    /// What a person should know.
    pub diagnostics: Vec<Diagnostic>,
    /// The transcript.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "path_text")]
    pub transcript: Option<PathBuf>,
    /// From the start to the collected outputs.
    #[serde(rename = "elapsedMs", serialize_with = "millis")]
    pub elapsed: Duration,
}

impl Outcome {
    /// The outcome of a run whose own task panicked.
    pub(super) fn crashed(run_id: String, model: ModelLabel) -> Self {
        Self {
            run_id,
            status: RunStatus::Failed {
                kind: FailureKind::Internal,
                reason: "the run's own task panicked: please report this as a defect of sixb-agent"
                    .to_owned(),
            },
            text: String::new(),
            output: None,
            steps: 0,
            model,
            usage: Usage::default(),
            files: Vec::new(),
            diagnostics: Vec::new(),
            transcript: None,
            elapsed: Duration::ZERO,
        }
    }

    /// Whether the model said all it wanted.
    pub fn completed(&self) -> bool {
        self.status == RunStatus::Completed
    }
}

/// A guest names its files as it likes: what is no text is replaced, as in `path`.
fn path_text<S: serde::Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref()
        .map(|path| path.to_string_lossy())
        .serialize(serializer)
}

fn millis<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "status",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum RunStatus {
    /// The model said all it wanted.
    Completed,
    /// It could not go on.
    Failed {
        /// What failed.
        kind: FailureKind,
        /// Why, naming the cause.
        reason: String,
    },
    /// It was cancelled.
    Cancelled {
        /// What was cut.
        cut: String,
    },
    /// Its time was over.
    TimedOut {
        /// The limit, in milliseconds.
        limit_ms: u64,
        /// What was cut.
        cut: String,
    },
}

impl RunStatus {
    /// `completed`, `failed`, `cancelled` or `timed-out`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed { .. } => "failed",
            Self::Cancelled { .. } => "cancelled",
            Self::TimedOut { .. } => "timed-out",
        }
    }

    /// Why it did not complete.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Completed => None,
            Self::Failed { reason, .. } => Some(reason.clone()),
            Self::Cancelled { cut } => Some(cut.clone()),
            Self::TimedOut { limit_ms, cut } => {
                Some(format!("the time limit of {limit_ms} ms passed; {cut}"))
            }
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        match self.reason() {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

/// What made a run fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The model.
    Model,
    /// The sandbox that a call needed.
    Sandbox,
    /// The model still called tools in its last step.
    StepLimit,
    /// The answer of the last step does not fit the output schema.
    Output,
    /// A defect of this crate.
    Internal,
}

/// A file that comes with the answer: a tool made it, or it stood in the output directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SavedFile {
    /// Its path below the output directory, or its name, for people: bytes that are no text are replaced, control characters
    /// escaped.
    pub path: String,
    /// Where it is on the host; `None` without a folder for outputs.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "path_text"
    )]
    pub host_path: Option<PathBuf>,
    /// In bytes.
    pub size_bytes: u64,
    /// How the run came to it: `created` by a tool, or `output`.
    pub provenance: Provenance,
    /// The file in the project's store, with name and type; `None` if it could not be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_ref: Option<FileRef>,
}

/// Something a person should know about a run; never part of the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What kind: `output_too_large`, `sandbox_boot_failed`, ….
    pub code: String,
    /// How bad.
    pub severity: Severity,
    /// About what: `output`, `attachment`, `sandbox`, `model`, `context`, `transcript`.
    pub scope: String,
    /// The file, escaped for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// For people.
    pub message: String,
}

impl Diagnostic {
    /// A warning.
    pub fn warning(scope: &str, code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            severity: Severity::Warning,
            scope: scope.to_owned(),
            path: None,
            message: message.into(),
        }
    }

    /// An error.
    pub fn error(scope: &str, code: &str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            ..Self::warning(scope, code, message)
        }
    }

    /// Names the file.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}

/// How bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something was left out.
    Warning,
    /// Something failed.
    Error,
}
