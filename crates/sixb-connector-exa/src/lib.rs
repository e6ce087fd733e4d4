#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod api_key;
mod client;
mod error;
mod http;
pub mod policy;
mod redact;
pub mod request;
pub mod response;
#[cfg(feature = "agent-tools")]
pub mod tools;
mod unseen;

/// What the fuzz target in `fuzz/` calls; the same function runs on stable as a property test.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzz {
    pub use crate::policy::check::domain_policy;
}

pub use api_key::{ApiKey, ApiKeyError};
pub use client::{DEFAULT_BASE_URL, DEFAULT_TIMEOUT, Exa, ExaOptions, MAX_BODY_BYTES};
pub use error::{ApiError, ExaError};
pub use policy::{DomainPolicy, DomainRule, WebUrl};
pub use request::{ContentsRequest, SearchRequest};
pub use response::{ContentsResponse, SearchResponse};
#[cfg(feature = "agent-tools")]
pub use tools::{
    EXA, WebBudget, WebFetchOptions, WebSearchOptions, exa_connector, exa_web_fetch, exa_web_search,
};

#[doc(no_inline)]
pub use secrecy::SecretString;
