//! What `bash` takes: checked once, before anything runs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{ToolError, ToolSpec, schema, validate::typed};

/// Deadline of a command that names none, in milliseconds.
const DEFAULT_TIMEOUT_MS: i64 = 30_000;
/// Longest deadline, in milliseconds.
const MAX_TIMEOUT_MS: i64 = 120_000;
/// Longest command, in bytes: Linux takes 128 KiB in one argument.
const MAX_COMMAND: usize = 127 << 10;

const DESCRIPTION: &str = "Runs a command with `bash -lc` in the sandbox of this run and returns its exit code and output. \
    Files and background processes persist between calls; shell variables and the current directory do not. There is no \
    terminal: stdin is empty unless given, and editors and password prompts fail. Output over 20000 characters is shown \
    in part; `fullOutput` then names files that `read` can page through.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The command: one line or a whole script.
    #[schemars(length(min = 1))]
    pub(super) command: String,
    /// Directory to run in, relative to the working directory. Default: the working directory.
    pub(super) cwd: Option<String>,
    /// Milliseconds after which the command is killed. Default 30000, at most 120000; for more use `background`.
    #[schemars(range(max = MAX_TIMEOUT_MS))]
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
    pub(super) fn parse(input: Value) -> Result<Self, ToolError> {
        let input: Self = typed(&input)?;
        let refuse = |text: String| Err(ToolError::invalid_input(text));
        if input.command.trim().is_empty() {
            return refuse("`command` is blank: give the command to run".into());
        }
        if input.command.contains('\0') || input.cwd.as_ref().is_some_and(|cwd| cwd.contains('\0'))
        {
            return refuse("`command` and `cwd` cannot hold a NUL character; write it as an escape, like \\0 in printf".into());
        }
        if input.command.len() > MAX_COMMAND {
            return refuse(format!(
                "`command` is {} bytes, over the limit of {MAX_COMMAND}: pass the data by `stdin`",
                input.command.len()
            ));
        }
        if input.timeout_ms.is_some_and(|ms| ms > MAX_TIMEOUT_MS) {
            return refuse(format!(
                "`timeoutMs` is over its maximum of {MAX_TIMEOUT_MS}: split the work or use `background`"
            ));
        }
        Ok(input)
    }

    /// The deadline from the start of the command.
    pub(super) fn timeout(&self) -> Duration {
        let ms = self
            .timeout_ms
            .filter(|ms| *ms > 0)
            .unwrap_or(DEFAULT_TIMEOUT_MS);
        Duration::from_millis(ms.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_deadline_has_a_default_and_a_maximum() {
        let ms = |value: Value| {
            let input = Input::parse(json!({"command": "x", "timeoutMs": value}));
            input
                .map(|input| input.timeout().as_millis())
                .map_err(|error| error.model_text().to_owned())
        };
        for (value, expect) in [
            (json!(null), 30_000),
            (json!(0), 30_000),
            (json!(-5), 30_000),
            (json!(1), 1),
            (json!(120_000), 120_000),
        ] {
            assert_eq!(ms(value.clone()), Ok(expect), "{value}");
        }
        assert!(ms(json!(120_001)).expect_err("too long").contains("120000"));
    }

    #[test]
    fn a_command_without_meaning_is_refused() {
        let long = "x".repeat(MAX_COMMAND + 1);
        for (command, part) in [
            ("", "blank"),
            (" \n\t", "blank"),
            ("a\0b", "NUL"),
            (long.as_str(), "stdin"),
        ] {
            let error = Input::parse(json!({"command": command})).expect_err("refused");
            assert!(error.model_text().contains(part), "{error}");
        }
    }
}
