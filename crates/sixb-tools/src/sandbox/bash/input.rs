//! What `bash` takes: checked once, before anything runs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ToolError, ToolSpec, schema};

/// Deadline of a command that names none, in milliseconds.
pub(super) const DEFAULT_TIMEOUT_MS: i64 = 30_000;
/// Longest deadline, in milliseconds.
pub(super) const MAX_TIMEOUT_MS: i64 = 120_000;

const DESCRIPTION: &str = "Runs a command with `bash -lc` in the sandbox of this run and returns its exit code and output. \
    Files and background processes persist between calls; shell variables and the current directory do not. There is no \
    terminal: stdin is empty unless given, and editors and password prompts fail. Output over 20000 characters is shown \
    in part; `fullOutput` then names files that `read` can page through.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The command: one line or a whole script.
    pub(super) command: String,
    /// Directory to run in, relative to the working directory. Default: the working directory.
    pub(super) cwd: Option<String>,
    /// Milliseconds after which the command and its children are killed. Default 30000, at most 120000. A command that
    /// needs longer belongs into the background.
    pub(super) timeout_ms: Option<i64>,
    /// Text that the command reads from stdin. Default: nothing.
    pub(super) stdin: Option<String>,
    /// Return at once and let the command run on, until the end of the run. Its output can be read while it runs.
    pub(super) background: Option<bool>,
}

pub(super) fn spec() -> ToolSpec {
    crate::sandbox::builtin_spec("bash", "Run a command", DESCRIPTION, schema::of::<Input>())
}

impl Input {
    /// Refuses what has no meaning.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.command.trim().is_empty() {
            return Err(ToolError::invalid_input("`command` is blank: give the command to run"));
        }
        if self.timeout_ms.is_some_and(|ms| ms > MAX_TIMEOUT_MS) {
            return Err(ToolError::invalid_input(format!(
                "`timeoutMs` is over its maximum of {MAX_TIMEOUT_MS}: split the work, or run it with `background`"
            )));
        }
        Ok(())
    }

    /// The deadline from the start of the command.
    pub(super) fn timeout(&self) -> Duration {
        let ms = self.timeout_ms.filter(|ms| *ms > 0).unwrap_or(DEFAULT_TIMEOUT_MS);
        Duration::from_millis(ms.unsigned_abs())
    }
}
