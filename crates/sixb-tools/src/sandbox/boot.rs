//! The run's sandbox, awaited: what a call is told when there is none.

use std::{sync::Arc, time::Instant};

use sixb_sandbox::{LazySandbox, Sandbox, SandboxError};

use super::tool_error;
use crate::{ToolContext, ToolError, ToolErrorKind};

/// Waits for the boot, not longer than the call may last.
pub(crate) async fn booted(cx: &ToolContext) -> Result<Arc<dyn Sandbox>, ToolError> {
    let Some(lazy) = cx.extension::<LazySandbox>() else {
        return Err(ToolError::new(
            ToolErrorKind::NotFound,
            "there is no sandbox in this run: commands and files are not available",
        ));
    };
    let late = async {
        match cx.deadline() {
            Some(deadline) => {
                tokio::time::sleep(deadline.saturating_duration_since(Instant::now())).await
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        sandbox = lazy.get() => sandbox.map_err(boot_error),
        () = cx.cancel().cancelled() => Err(ToolError::new(
            ToolErrorKind::Cancelled,
            "The call was cancelled while the sandbox was starting; nothing was run.",
        )),
        () = late => Err(ToolError::new(
            ToolErrorKind::Timeout,
            "The sandbox was not up before the deadline of the run; nothing was run.",
        )),
    }
}

/// A failed boot, told apart from a failed command: nothing ran.
fn boot_error(error: SandboxError) -> ToolError {
    if matches!(error, SandboxError::IsolationUnavailable { .. }) {
        return tool_error(error);
    }
    let cause = tool_error(error.clone());
    let text = format!(
        "the sandbox of this run could not start, so nothing was run: {}",
        cause.model_text()
    );
    ToolError::new(cause.kind(), text).with_source(error)
}
