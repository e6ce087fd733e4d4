//! What a running call shows before it ends.

/// Which output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgressStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A sign of life of a running call. For people: a result never depends on it, and a slow reader loses pieces.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum ToolProgress {
    /// A command wrote this.
    Output {
        /// The call.
        tool_call_id: String,
        /// Where it was written.
        stream: ProgressStream,
        /// What was written; cut anywhere between characters.
        text: String,
    },
    /// The tool says this.
    Note {
        /// The call.
        tool_call_id: String,
        /// What it says.
        text: String,
    },
}
