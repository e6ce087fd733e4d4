//! What can go wrong with a request, by what the caller can do about it. No text holds the key.

use std::{error::Error, fmt, time::Duration};

/// A request that gave no answer, or a client that cannot be made.
///
/// `Display` and `Debug` are safe to show: they hold neither the key nor the provider's prose.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExaError {
    /// The base URL cannot be used. Its text is left out: it may hold a secret.
    #[error("the base URL of Exa {problem}")]
    BaseUrl {
        /// What is wrong.
        problem: String,
    },
    /// TLS cannot be set up.
    #[error(
        "the HTTPS client cannot be set up; if certificates are missing, install the package ca-certificates"
    )]
    Client {
        /// The private cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The request makes no sense; nothing was sent.
    #[error("the request to Exa {problem}")]
    Request {
        /// What is wrong.
        problem: &'static str,
    },
    /// There is no key to send.
    #[error("the key of Exa is not available: {problem}")]
    Key {
        /// What is wrong, without any secret.
        problem: String,
        /// The private cause.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// It took too long, getting the key included. The connection was dropped.
    #[error("Exa did not answer within {} ms", .after.as_millis())]
    Timeout {
        /// How long was waited.
        after: Duration,
    },
    /// The connection failed.
    #[error("the connection to Exa failed")]
    Connection {
        /// The private cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The answer is larger than the client reads. The connection was dropped.
    #[error("the answer of Exa is larger than {limit} bytes")]
    TooLarge {
        /// Most bytes that are read.
        limit: usize,
    },
    /// The answer is not what Exa documents.
    #[error("the answer of Exa {problem}")]
    Malformed {
        /// What is wrong.
        problem: &'static str,
    },
    /// Exa answered with an error.
    #[error("{0}")]
    Api(Box<ApiError>),
}

/// An error that Exa itself told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// Exa's machine-readable name of the error, such as `INVALID_API_KEY`: at most 64 letters, digits and underscores.
    pub tag: Option<String>,
    /// What Exa's support asks for.
    pub request_id: Option<String>,
    /// How long to wait, if it said so.
    pub retry_after: Option<Duration>,
    /// Exa's own words: one line of at most 500 characters, without the key. For operators; never show it to a model.
    pub message: Option<String>,
}

impl ExaError {
    /// The HTTP status, where Exa answered.
    pub fn status(&self) -> Option<u16> {
        self.api().map(|error| error.status)
    }

    /// Whether it is certain that no request reached Exa.
    #[cfg(feature = "agent-tools")]
    pub(crate) fn is_before_sending(&self) -> bool {
        match self {
            Self::BaseUrl { .. }
            | Self::Client { .. }
            | Self::Request { .. }
            | Self::Key { .. } => true,
            Self::Connection { source } => source
                .downcast_ref::<reqwest::Error>()
                .is_some_and(reqwest::Error::is_connect),
            _ => false,
        }
    }

    /// What Exa itself told.
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exa answered HTTP {}", self.status)?;
        if (300..400).contains(&self.status) {
            f.write_str(", a redirect, which is not followed: correct the base URL")?;
        }
        if let Some(tag) = &self.tag {
            write!(f, ", {tag}")?;
        }
        if let Some(id) = &self.request_id {
            write!(f, ", request {id}")?;
        }
        Ok(())
    }
}
