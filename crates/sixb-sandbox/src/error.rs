//! What can go wrong at the sandbox boundary, grouped by what the caller can do about it.

use std::{fmt, sync::Arc, time::Duration};

use crate::{FileKind, SandboxStatus};

/// Result of a sandbox operation.
pub type Result<T, E = SandboxError> = std::result::Result<T, E>;

/// A shared, private cause. Shared so that one failed boot can be told to every waiter.
pub type Cause = Arc<dyn std::error::Error + Send + Sync + 'static>;

/// An operation of a [`Sandbox`](crate::Sandbox) failed.
///
/// A command that exits with a non-zero code, is killed or runs into its deadline is *not* an error:
/// that is a [`CommandOutput`](crate::CommandOutput).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The sandbox was stopped, destroyed or has failed. Create another one.
    #[error("sandbox {id} is {status}, not running: create another one")]
    NotRunning {
        /// The sandbox.
        id: String,
        /// What it is instead of running.
        status: SandboxStatus,
    },
    /// This machine or provider cannot give the isolation that was asked for.
    #[error("isolation unavailable: {what}. {remedy}")]
    IsolationUnavailable {
        /// What is missing.
        what: String,
        /// What the operator can do.
        remedy: String,
    },
    /// A path does not stay below the working directory.
    #[error("path {path:?} {reason}; use a path inside the working directory")]
    PathEscape {
        /// The path as given.
        path: String,
        /// How it leaves.
        reason: String,
    },
    /// A file, directory, output or background process does not exist.
    #[error("{what} not found: {name:?}")]
    NotFound {
        /// The kind of thing: `file`, `working directory`, `output`, …
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The path names something of another kind than the operation needs.
    #[error("{path:?} is a {found}, not a {expected}")]
    WrongKind {
        /// The path as given.
        path: String,
        /// What is there.
        found: FileKind,
        /// What was needed.
        expected: FileKind,
    },
    /// The sandbox's user may not do this with the file.
    #[error("permission denied: {path:?}")]
    PermissionDenied {
        /// The path as given.
        path: String,
    },
    /// A bound of this crate or of the sandbox was hit.
    #[error("{what} is over its limit of {limit}{}", Actual(*.actual))]
    LimitExceeded {
        /// What was measured, with its unit.
        what: String,
        /// The limit.
        limit: u64,
        /// The size asked for, where known.
        actual: Option<u64>,
    },
    /// A provider operation (boot, stop, a file call) did not finish in time. Never a command's own deadline.
    #[error("{op} did not finish within {} ms", .after.as_millis())]
    Timeout {
        /// The operation.
        op: &'static str,
        /// The deadline it had.
        after: Duration,
    },
    /// The caller's cancellation token fired.
    #[error("{op} was cancelled")]
    Cancelled {
        /// The operation.
        op: &'static str,
    },
    /// The background process cannot be known any more, since its sandbox is gone.
    #[error("background process {id} is lost: {reason}")]
    Lost {
        /// The handle's id.
        id: String,
        /// What happened to the sandbox.
        reason: String,
    },
    /// An argument has no meaning here.
    #[error("{field}: {value:?} {reason}")]
    InvalidInput {
        /// The option or field.
        field: &'static str,
        /// The value that was given.
        value: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The backend itself failed.
    #[error("{op} failed: {detail}")]
    Provider {
        /// The operation.
        op: &'static str,
        /// What the backend says.
        detail: String,
        /// The private cause.
        #[source]
        source: Option<Cause>,
    },
}

impl SandboxError {
    /// A backend failure with a private cause.
    pub fn provider(op: &'static str, detail: impl fmt::Display, source: Option<Cause>) -> Self {
        Self::Provider {
            op,
            detail: detail.to_string(),
            source,
        }
    }

    /// A backend failure that is an I/O error: its text becomes the detail.
    pub fn io(op: &'static str, error: std::io::Error) -> Self {
        Self::Provider {
            op,
            detail: error.to_string(),
            source: Some(Arc::new(error)),
        }
    }
}

struct Actual(Option<u64>);

impl fmt::Display for Actual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(actual) => write!(f, " (it is {actual})"),
            None => Ok(()),
        }
    }
}
