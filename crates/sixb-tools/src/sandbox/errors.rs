//! Sandbox errors as tool errors: one table.

use sixb_sandbox::SandboxError;

use crate::{ToolError, ToolErrorKind};

/// A sandbox error, in the words a model may read. The error itself stays with the operator.
///
/// ```
/// use sixb_sandbox::SandboxPath;
/// use sixb_tools::{ToolErrorKind, sandbox::tool_error};
/// let error = tool_error(SandboxPath::parse("../etc/passwd").unwrap_err());
/// assert_eq!(error.kind(), ToolErrorKind::PermissionDenied);
/// ```
pub fn tool_error(error: SandboxError) -> ToolError {
    use ToolErrorKind as Kind;
    let kind = match &error {
        SandboxError::NotRunning { .. }
        | SandboxError::Lost { .. }
        | SandboxError::Provider { .. } => Kind::Provider,
        SandboxError::IsolationUnavailable { .. } => Kind::PolicyDenied,
        SandboxError::PathEscape { .. } | SandboxError::PermissionDenied { .. } => {
            Kind::PermissionDenied
        }
        SandboxError::NotFound { .. } => Kind::NotFound,
        SandboxError::WrongKind { .. } | SandboxError::InvalidInput { .. } => Kind::InvalidInput,
        SandboxError::LimitExceeded { .. } => Kind::LimitExceeded,
        SandboxError::Timeout { .. } => Kind::Timeout,
        SandboxError::Cancelled { .. } => Kind::Cancelled,
        _ => Kind::Internal,
    };
    let text = match &error {
        // What the backend says may name the host: only that it failed is for the model.
        SandboxError::Provider { op, .. } => format!("the sandbox failed: {op}"),
        SandboxError::IsolationUnavailable { .. } => {
            "refused: this machine cannot give the isolation that this run asks for; trying again does not help".to_owned()
        }
        SandboxError::NotRunning { status, .. } => format!("the sandbox of this run is {status}: nothing more can run in it"),
        error => error.to_string(),
    };
    ToolError::new(kind, text).with_source(error)
}
