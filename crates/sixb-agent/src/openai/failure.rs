//! What went wrong with a request, whether it may be made again, and how it is told without a secret. Pure.

use std::time::Duration;

use serde_json::Value;

use crate::model::ModelError;

/// Longest text of a provider that is told, in characters.
const MAX_TOLD: usize = 500;

/// A request that gave no answer.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// The same request may succeed later.
    pub(super) again: bool,
    /// The provider asks to wait that long.
    pub(super) after: Option<Duration>,
}

impl Failure {
    pub(super) fn refused(detail: impl Into<String>) -> Self {
        Self {
            error: ModelError::Refused {
                detail: detail.into(),
            },
            again: false,
            after: None,
        }
    }

    pub(super) fn malformed(detail: impl Into<String>) -> Self {
        Self {
            error: ModelError::Malformed {
                detail: detail.into(),
            },
            again: false,
            after: None,
        }
    }

    pub(super) fn too_long(what: &'static str, limit: usize) -> Self {
        Self {
            error: ModelError::TooLong { what, limit },
            again: false,
            after: None,
        }
    }

    /// Busy or out of reach.
    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self {
            error: ModelError::Unavailable {
                detail: detail.into(),
                source: None,
            },
            again: true,
            after: None,
        }
    }

    /// The connection ended early.
    pub(super) fn cut(detail: &str) -> Self {
        Self::unavailable(detail)
    }

    pub(super) fn cancelled() -> Self {
        Self {
            error: ModelError::Cancelled,
            again: false,
            after: None,
        }
    }

    pub(super) fn after(mut self, wait: Option<Duration>) -> Self {
        self.after = wait;
        self
    }

    /// An error that the provider tells, in a stream (no status) or as an answer: `{"message", "type", "code"}`, or text.
    pub(super) fn told(error: &Value, status: Option<u16>) -> Self {
        let text = |key: &str| match error.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let code = text("code");
        let kind = text("type");
        let said = text("message").or_else(|| error.as_str().map(str::to_owned));
        let said = said.unwrap_or_else(|| "no message".to_owned());
        let marks: Vec<&str> = [&code, &kind]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let status = status.or_else(|| code.as_deref().and_then(|code| code.parse().ok()));
        let again = match status {
            // No money left: waiting does not help.
            Some(429) => !marks.contains(&"insufficient_quota"),
            Some(status) => (500..600).contains(&status),
            None => marks.iter().any(|mark| BUSY.contains(mark)),
        };
        let mut detail = match status {
            Some(status) => format!("HTTP {status}: {}", clean(&said)),
            None => clean(&said),
        };
        if let Some(code) = code
            .or(kind)
            .filter(|code| Some(code.as_str()) != status.map(|s| s.to_string()).as_deref())
        {
            detail.push_str(&format!(" ({})", clean(&code)));
        }
        match again {
            true => Self::unavailable(detail),
            false => Self::refused(detail),
        }
    }
}

/// What providers call a failure that passes, in a stream that has begun with status 200.
const BUSY: &[&str] = &[
    "api_error",
    "internal_error",
    "internal_server_error",
    "overloaded",
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "server_error",
    "service_unavailable",
    "timeout",
];

/// Text of a provider on one line, short, and unable to move a cursor.
pub(super) fn clean(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut told: String = text.trim().chars().take(MAX_TOLD).map(plain).collect();
    if text.trim().chars().nth(MAX_TOLD).is_some() {
        told.push('…');
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_told_error_says_status_text_and_code_and_whether_to_try_again() {
        for (error, status, expect, again) in [
            (
                json!({"message": "Bad key", "type": "invalid_request_error", "code": "invalid_api_key"}),
                Some(401),
                "the model refused the request: HTTP 401: Bad key (invalid_api_key)",
                false,
            ),
            (
                json!({"message": "Slow down", "code": "rate_limit_exceeded"}),
                Some(429),
                "the model is unavailable: HTTP 429: Slow down (rate_limit_exceeded)",
                true,
            ),
            (
                json!({"message": "Pay", "code": "insufficient_quota"}),
                Some(429),
                "the model refused the request: HTTP 429: Pay (insufficient_quota)",
                false,
            ),
            (
                json!("plain\u{1b}[2J text"),
                Some(503),
                "the model is unavailable: HTTP 503: plain [2J text",
                true,
            ),
            (
                json!({"message": "Busy", "type": "overloaded_error"}),
                None,
                "the model is unavailable: Busy (overloaded_error)",
                true,
            ),
            (
                json!({"message": "Upstream", "code": 502}),
                None,
                "the model is unavailable: HTTP 502: Upstream",
                true,
            ),
            (
                json!({"message": "Too many tokens", "code": "context_length_exceeded"}),
                None,
                "the model refused the request: Too many tokens (context_length_exceeded)",
                false,
            ),
            (
                json!({}),
                Some(404),
                "the model refused the request: HTTP 404: no message",
                false,
            ),
        ] {
            let failure = Failure::told(&error, status);
            assert_eq!(
                (failure.error.to_string().as_str(), failure.again),
                (expect, again)
            );
        }
    }

    #[test]
    fn long_text_is_cut() {
        let failure = Failure::told(&json!({"message": "é".repeat(2_000)}), Some(401));
        let text = failure.error.to_string();
        assert!(text.chars().count() < 600 && text.ends_with('…'), "{text}");
    }
}
