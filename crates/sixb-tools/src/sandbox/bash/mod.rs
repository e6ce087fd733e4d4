//! The `bash` tool: one command in the run's sandbox.

mod input;
mod live;
mod outcome;
mod view;

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use serde_json::Value;
use sixb_sandbox::{Command, OutputId};

use self::{
    input::Input,
    outcome::{Outcome, Started},
};
use super::tool_error;
use crate::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};

/// The `bash` tool.
///
/// A command that fails, is killed or runs out of time is a result. Errors are for what did not run: blank input
/// (`invalid_input`), a missing directory (`not_found`), a refused sandbox (`policy_denied`), a boot failure.
pub fn bash() -> Arc<dyn Tool> {
    Arc::new(Bash)
}

/// See [`bash`].
#[derive(Debug)]
pub(crate) struct Bash;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(input::spec);

/// Nothing here may wait for a person: there is no terminal, so prompts, pagers and editors must end at once. The
/// editors fail rather than succeed: `true` as editor lets `git rebase -i` rewrite history unseen.
const ENV: [(&str, &str); 8] = [
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

/// A background command lives as long as the run, whatever the sandbox's default for other commands is.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, cx: ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let input = Input::parse(input)?;
        let sandbox = cx.sandbox().await?;
        let id = OutputId::for_call(cx.tool_call_id());
        let command = command(&input, id.clone());
        let result = if input.background == Some(true) {
            let id = sandbox
                .start(command.timeout(BACKGROUND_TIMEOUT))
                .await
                .map_err(tool_error)?;
            serde_json::to_value(Started::new(&id))
        } else {
            let command = command
                .timeout(deadline(&input, &cx))
                .cancel(cx.cancel().clone());
            let output = live::run(&*sandbox, command, &cx)
                .await
                .map_err(tool_error)?;
            serde_json::to_value(Outcome::new(output, &id))
        };
        Ok(ToolOutput::Json(result?))
    }

    /// A cancelled command returns what it wrote so far: time to kill its processes and drain their pipes.
    fn cancel_grace(&self) -> Duration {
        Duration::from_secs(2)
    }
}

fn command(input: &Input, id: OutputId) -> Command {
    let mut command = Command::script(&input.command).output_id(id);
    for (key, value) in ENV {
        command = command.env(key, value);
    }
    if let Some(cwd) = &input.cwd {
        command = command.cwd(cwd);
    }
    if let Some(stdin) = &input.stdin {
        command = command.stdin_bytes(stdin.clone());
    }
    command
}

/// The command's own deadline, or the run's where that comes first: then the output so far is still returned.
fn deadline(input: &Input, cx: &ToolContext) -> Duration {
    let left = cx.deadline().map_or(Duration::MAX, |deadline| {
        deadline.saturating_duration_since(Instant::now())
    });
    input.timeout().min(left)
}
