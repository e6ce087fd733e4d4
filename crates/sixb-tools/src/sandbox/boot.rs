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
    // A refusal has its own words, and a sandbox that has ended did start.
    if matches!(
        error,
        SandboxError::IsolationUnavailable { .. } | SandboxError::NotRunning { .. }
    ) {
        return tool_error(error);
    }
    let cause = tool_error(error.clone());
    let text = format!(
        "the sandbox of this run could not start, so nothing was run: {}",
        cause.model_text()
    );
    ToolError::new(cause.kind(), text).with_source(error)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_boot_failure_a_refusal_and_an_ended_sandbox_are_told_apart() {
        let denied = SandboxError::IsolationUnavailable {
            what: "no user namespaces".into(),
            remedy: "sysctl".into(),
        };
        let ended = SandboxError::NotRunning {
            id: "s".into(),
            status: sixb_sandbox::SandboxStatus::Stopped,
        };
        let late = SandboxError::Timeout {
            op: "boot",
            after: Duration::from_secs(5),
        };
        for (error, kind, part) in [
            (denied, ToolErrorKind::PolicyDenied, "refused: this machine"),
            (
                ended,
                ToolErrorKind::Provider,
                "the sandbox of this run is stopped",
            ),
            (
                late,
                ToolErrorKind::Timeout,
                "could not start, so nothing was run: boot did not finish",
            ),
            (
                SandboxError::provider("boot", "exec /secret/path: ENOENT", None),
                ToolErrorKind::Provider,
                "could not start, so nothing was run: the sandbox failed: boot",
            ),
        ] {
            let text = error.to_string();
            let error = boot_error(error);
            assert_eq!(error.kind(), kind, "{error:?}");
            assert!(error.model_text().contains(part), "{error}");
            assert!(
                error.operator_text().contains(&text) && !error.model_text().contains("secret"),
                "{error:?}"
            );
        }
    }
}
