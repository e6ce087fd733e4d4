//! One line of a transcript.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sixb_artifacts::{FileRef, Provenance};

use crate::{
    model::{ToolFailure, Usage},
    run::{CallStatus, Diagnostic, RunState, SavedFile},
};

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Record {
    /// When it was written: RFC 3339, UTC, milliseconds.
    pub at: String,
    /// The run.
    pub run_id: String,
    /// Its place in the transcript, from 0, without gaps.
    pub seq: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: RecordBody,
}

/// What a record tells. The key `type` holds the kind: `user`, `assistant`, `tool-call`, `tool-result`, `run-file`, `file`,
/// `diagnostic`, `usage`, `state`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum RecordBody {
    /// The user said this.
    User {
        /// The text.
        text: String,
        /// The runtime said it in the user's place: that a run was resumed, that an output does not fit, ….
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        runtime: bool,
    },
    /// The model wrote this in a step.
    Assistant {
        /// The step, from 1.
        step: u32,
        /// The text; may be empty when it only called tools.
        text: String,
        /// The step was cut: this is what there is of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
        /// How many tools it called: as many `tool-call` records follow at once.
        #[serde(default, skip_serializing_if = "is_zero")]
        calls: u32,
        /// The text was written beforehand, by a script.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        scripted: bool,
    },
    /// The model called a tool.
    ToolCall {
        /// The step.
        step: u32,
        /// Names the call, uniquely in its run.
        call_id: String,
        /// The tool.
        name: String,
        /// The arguments; a JSON string where they are malformed.
        arguments: Value,
    },
    /// What came of a call. Every `tool-call` of a run that ended has one.
    ToolResult {
        /// The step.
        step: u32,
        /// The call.
        call_id: String,
        /// The tool.
        name: String,
        /// How it ended.
        status: CallStatus,
        /// The result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why there is none, in the words the model read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolFailure>,
    },
    /// The run came to a file: the user attached it, or a tool kept it or looked at it.
    RunFile {
        /// How.
        provenance: Provenance,
        /// The file, in the project's store.
        file_ref: FileRef,
        /// Where it lies in the sandbox: absolute, or relative to the working directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        /// The call that it comes from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
    },
    /// A file was saved at the end: what tools made, and outputs.
    File {
        /// Which.
        file: SavedFile,
    },
    /// A record of a file that this version cannot read: one of a newer version, or damaged. What else the transcript says
    /// holds. Never written.
    Unread {
        /// What is wrong with it.
        problem: String,
    },
    /// Something a person should know.
    Diagnostic {
        /// What.
        diagnostic: Diagnostic,
    },
    /// What a step used.
    Usage {
        /// The step.
        step: u32,
        /// Its tokens.
        usage: Usage,
    },
    /// The run or its sandbox entered a state.
    State {
        /// Which. The first record of a run is `started`, and names the model.
        state: RunState,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
