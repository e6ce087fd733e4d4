//! What a run tells while it goes on.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sixb_tools::{ProgressStream, RunKind};

use super::outcome::{Diagnostic, Outcome, SavedFile};
use crate::model::{ModelLabel, ToolFailure, Usage};

/// Something happened in a run. As JSON: an object with `type`, keys in camel case.
#[derive(Debug, Clone, Serialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum RunEvent {
    /// The run or its sandbox entered a state.
    State {
        /// Which.
        state: RunState,
    },
    /// The model wrote more text.
    TextDelta {
        /// In this step, from 1.
        step: u32,
        /// The text.
        text: String,
    },
    /// A tool call begins.
    ToolCallStarted {
        /// In this step.
        step: u32,
        /// The call.
        call_id: String,
        /// The tool.
        name: String,
        /// The arguments; a JSON string where they are malformed.
        arguments: Value,
    },
    /// A command of a running call wrote something. For live display: pieces are dropped when nobody reads fast enough.
    ToolCallOutput {
        /// The call.
        call_id: String,
        /// Which output.
        stream: ProgressStream,
        /// What; not sanitised: it may hold terminal control sequences.
        text: String,
    },
    /// A running call says something for people.
    ToolCallNote {
        /// The call.
        call_id: String,
        /// What.
        text: String,
    },
    /// A tool call ended.
    ToolCallFinished {
        /// In this step.
        step: u32,
        /// The call.
        call_id: String,
        /// The tool.
        name: String,
        /// How it ended.
        status: CallStatus,
        /// From its start, in milliseconds.
        elapsed_ms: u64,
        /// The result, when it succeeded.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ToolFailure>,
    },
    /// A file is saved: what a tool made, or an output file.
    FileSaved {
        /// Which.
        file: SavedFile,
    },
    /// What a step used.
    Usage {
        /// The step.
        step: u32,
        /// Its tokens.
        usage: Usage,
    },
    /// Something a person should know; never part of the answer.
    Diagnostic {
        /// What.
        diagnostic: Diagnostic,
    },
    /// The run is over. The last event; the stream ends once its sandbox is gone.
    Finished {
        /// What came of it.
        outcome: Outcome,
    },
}

/// A state of a run or of its sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "name",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum RunState {
    /// The run began.
    Started {
        /// The run.
        run_id: String,
        /// The project.
        project_id: String,
        /// The agent.
        agent_id: String,
        /// The conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thread_id: Option<String>,
        /// What kind of run.
        kind: RunKind,
        /// The model, labelled when it is scripted.
        model: ModelLabel,
        /// Steps it may take.
        max_steps: u32,
        /// Time it may take, in milliseconds.
        timeout_ms: u64,
        /// The schema that its output has to fit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_schema: Option<Value>,
    },
    /// The run goes on after an interruption, in a new sandbox.
    Resumed {
        /// The run.
        run_id: String,
        /// The agent.
        agent_id: String,
        /// The model, labelled when it is scripted.
        model: ModelLabel,
        /// Steps that were begun before.
        steps: u32,
        /// Calls that had no result when it was interrupted.
        interrupted: u32,
        /// Time it may take from now on, in milliseconds.
        timeout_ms: u64,
    },
    /// The sandbox boots, while the model is asked already.
    Booting {
        /// The backend.
        provider: String,
    },
    /// The sandbox is up and its files are in place.
    SandboxReady {
        /// The sandbox.
        id: String,
        /// From the start of the boot, in milliseconds.
        elapsed_ms: u64,
    },
    /// The sandbox could not boot. Fails the run only if a call needs it.
    SandboxFailed {
        /// Why.
        reason: String,
    },
    /// The model is asked.
    Step {
        /// Step, from 1.
        step: u32,
        /// Steps it may take.
        max: u32,
    },
    /// Output files are collected.
    Collecting,
    /// The run is over.
    Finished {
        /// `completed`, `failed`, `cancelled` or `timed-out`.
        status: String,
        /// Why, unless it completed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CallStatus {
    /// With a result.
    Ok,
    /// With an error.
    Error,
    /// It was cut by cancellation, a time limit or the step limit.
    Cancelled,
}
