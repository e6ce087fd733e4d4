//! What went wrong in a tool call: one table of kinds, and two texts, one for the model and one for the operator.

use std::{error::Error, fmt};

use serde_json::{Value, json};

type Source = Box<dyn Error + Send + Sync + 'static>;

/// What kind of failure, by what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The arguments are wrong: call again with other ones.
    InvalidInput,
    /// The thing named does not exist.
    NotFound,
    /// This caller may not do that.
    PermissionDenied,
    /// A rule of the run or of the machine forbids it, for every caller.
    PolicyDenied,
    /// It did not finish in time.
    Timeout,
    /// The run was cancelled.
    Cancelled,
    /// Too many calls: wait.
    RateLimited,
    /// A service or backend failed.
    Provider,
    /// The connection failed.
    Network,
    /// A size, count or budget is used up.
    LimitExceeded,
    /// A defect of the tool.
    Internal,
}

/// One line of the table of kinds.
struct Row {
    name: &'static str,
    retryable: bool,
    /// What a model reads when the tool gives no text of its own.
    model_text: &'static str,
}

impl ToolErrorKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::InvalidInput,
        Self::NotFound,
        Self::PermissionDenied,
        Self::PolicyDenied,
        Self::Timeout,
        Self::Cancelled,
        Self::RateLimited,
        Self::Provider,
        Self::Network,
        Self::LimitExceeded,
        Self::Internal,
    ];

    #[rustfmt::skip]
    const fn row(self) -> Row {
        const fn row(name: &'static str, retryable: bool, model_text: &'static str) -> Row {
            Row { name, retryable, model_text }
        }
        match self {
            Self::InvalidInput     => row("invalid_input",     false, "The input is not valid."),
            Self::NotFound         => row("not_found",         false, "What was asked for does not exist."),
            Self::PermissionDenied => row("permission_denied", false, "Permission denied."),
            Self::PolicyDenied     => row("policy_denied",     false, "This is not allowed here."),
            Self::Timeout          => row("timeout",           true,  "The call did not finish in time."),
            Self::Cancelled        => row("cancelled",         false, "The call was cancelled."),
            Self::RateLimited      => row("rate_limited",      true,  "Too many requests. Wait before the next one."),
            Self::Provider         => row("provider",          true,  "The service behind this tool failed."),
            Self::Network          => row("network",           true,  "The network connection failed."),
            Self::LimitExceeded    => row("limit_exceeded",    false, "A limit was exceeded."),
            Self::Internal         => row("internal",          false, "An error occurred."),
        }
    }

    /// The kind as it is written: `invalid_input`, `not_found`, ….
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Whether the same call may succeed later.
    pub const fn retryable(self) -> bool {
        self.row().retryable
    }

    /// What a model reads when the tool gives no text of its own.
    pub const fn default_model_text(self) -> &'static str {
        self.row().model_text
    }

    /// Whether the call was refused rather than that it failed.
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::PermissionDenied | Self::PolicyDenied)
    }
}

impl fmt::Display for ToolErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A tool call that gave no result.
///
/// The model's text and the operator's are apart: [`Display`](fmt::Display) and [`to_json`](Self::to_json) carry only
/// what a model may read. Any other error turns into an *unmarked* one with `?`: the model then reads `internal` and
/// "An error occurred.", while the operator has the error itself.
///
/// Like `anyhow::Error` it is no [`std::error::Error`] itself: that is what lets `?` convert.
///
/// ```
/// use sixb_tools::{ToolError, ToolErrorKind};
///
/// let marked = ToolError::new(ToolErrorKind::NotFound, "no city called \"Atlantis\"").operator("geo index v3, 0 rows");
/// assert_eq!(marked.model_text(), "no city called \"Atlantis\"");
///
/// let unmarked: ToolError = std::io::Error::other("token sk-test-000 expired").into();
/// assert_eq!(unmarked.to_string(), "internal: An error occurred.");
/// ```
pub struct ToolError {
    kind: ToolErrorKind,
    model: Option<String>,
    operator: Option<String>,
    source: Option<Source>,
}

impl ToolError {
    /// An error with the text that the model reads.
    pub fn new(kind: ToolErrorKind, model_text: impl Into<String>) -> Self {
        Self {
            model: Some(model_text.into()),
            ..Self::of(kind)
        }
    }

    /// An error with the kind's default text.
    pub fn of(kind: ToolErrorKind) -> Self {
        Self {
            kind,
            model: None,
            operator: None,
            source: None,
        }
    }

    /// `invalid_input` with a text for the model.
    pub fn invalid_input(model_text: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidInput, model_text)
    }

    /// Adds what only the operator may read.
    pub fn operator(mut self, message: impl Into<String>) -> Self {
        self.operator = Some(message.into());
        self
    }

    /// Adds the cause; only the operator may read it.
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of failure.
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// What a model may read.
    pub fn model_text(&self) -> &str {
        self.model
            .as_deref()
            .unwrap_or(self.kind.default_model_text())
    }

    /// Whether the call was refused rather than that it failed.
    pub fn is_refusal(&self) -> bool {
        self.kind.is_refusal()
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.kind.retryable()
    }

    /// Everything known, causes included, on one line: for logs, never for a model.
    pub fn operator_text(&self) -> String {
        let mut text = format!("{}: {}", self.kind, self.model_text());
        if let Some(operator) = &self.operator {
            text.push_str(&format!(" ({operator})"));
        }
        let mut cause = self.source.as_deref().map(|source| source as &dyn Error);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        text
    }

    /// The cause, where there is one.
    pub fn source(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    /// As a model and a transcript see it: `{"error":{"kind":"not_found","message":"…"}}`.
    pub fn to_json(&self) -> Value {
        json!({"error": {"kind": self.kind.as_str(), "message": self.model_text()}})
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.model_text())
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operator_text())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::of(ToolErrorKind::Internal).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_and_serde_agree_on_every_name() {
        for kind in ToolErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("kind"), kind.as_str());
            assert!(kind.default_model_text().ends_with('.'), "{kind}");
        }
    }

    #[test]
    fn an_unmarked_error_keeps_its_text_from_the_model() {
        fn tool() -> Result<(), ToolError> {
            Err(std::io::Error::other("password=hunter2"))?
        }
        let error = tool().expect_err("fails");
        assert_eq!(error.kind(), ToolErrorKind::Internal);
        assert_eq!(error.model_text(), "An error occurred.");
        assert!(
            !error.to_string().contains("hunter2")
                && !error.to_json().to_string().contains("hunter2")
        );
        assert!(error.operator_text().contains("hunter2"));
    }

    #[test]
    fn a_refusal_is_not_a_failure() {
        let refusals: Vec<_> = ToolErrorKind::ALL
            .into_iter()
            .filter(|kind| kind.is_refusal())
            .collect();
        assert_eq!(
            refusals,
            [ToolErrorKind::PermissionDenied, ToolErrorKind::PolicyDenied]
        );
    }
}
