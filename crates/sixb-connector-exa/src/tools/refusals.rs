//! Errors of the client and of the policy, as a model may read them. Nothing that a provider wrote is among its words.

use sixb_tools::{ToolError, ToolErrorKind as Kind};

use crate::{
    ApiError, ExaError,
    policy::{InvalidUrl, Refusal, WebUrl},
};

/// An error of the client.
pub(super) fn of(error: ExaError) -> ToolError {
    let (kind, text) = match &error {
        ExaError::BaseUrl { .. } | ExaError::Client { .. } => {
            (Kind::Internal, "The web service is not set up correctly.")
        }
        ExaError::Request { .. } => (Kind::InvalidInput, "The request makes no sense."),
        ExaError::Key { .. } => (
            Kind::Internal,
            "The key of the web service is not available.",
        ),
        ExaError::Timeout { .. } => (Kind::Timeout, "The web service did not answer in time."),
        ExaError::Connection { .. } => (Kind::Network, "The web service cannot be reached."),
        ExaError::TooLarge { .. } => (
            Kind::LimitExceeded,
            "The answer of the web service is too large.",
        ),
        ExaError::Malformed { .. } => (
            Kind::Provider,
            "The answer of the web service makes no sense.",
        ),
        ExaError::Api(told) => (kind_of(told), text_of(told)),
    };
    let told = error.api().and_then(|told| told.message.clone());
    let mapped = ToolError::new(kind, text);
    let mapped = match told {
        Some(message) => mapped.operator(format!("the provider says: {message}")),
        None => mapped,
    };
    mapped.with_source(error)
}

fn kind_of(error: &ApiError) -> Kind {
    match error.status {
        400 | 413 | 422 => Kind::InvalidInput,
        401 | 403 => Kind::PermissionDenied,
        402 => Kind::LimitExceeded,
        408 | 504 => Kind::Timeout,
        429 => Kind::RateLimited,
        _ => Kind::Provider,
    }
}

fn text_of(error: &ApiError) -> &'static str {
    match kind_of(error) {
        Kind::InvalidInput => "The web service did not accept the request.",
        Kind::PermissionDenied => "The web service did not accept the key of this project.",
        Kind::LimitExceeded => "The account of this project at the web service is used up.",
        Kind::Timeout => "The web service did not answer in time.",
        Kind::RateLimited => "The web service is asked too often. Wait before the next call.",
        _ => "The web service failed.",
    }
}

/// A text that is no URL which can be read.
pub(super) fn invalid(error: &InvalidUrl) -> ToolError {
    ToolError::invalid_input(format!("`url`: {error}."))
}

/// A URL of the model that may not be read.
pub(super) fn refused(url: &WebUrl, refusal: Refusal) -> ToolError {
    ToolError::new(
        Kind::PolicyDenied,
        format!("{} may not be read here: {refusal}.", url.host()),
    )
    .operator(format!("{url}: {refusal:?}"))
}

/// An address that a page or the provider chose, and that may not be read: its host would be their word to the model.
pub(super) fn led_astray(url: &WebUrl, refusal: Refusal) -> ToolError {
    denied("The page led to an address that may not be read here.")
        .operator(format!("{url}: {refusal:?}"))
}

/// A result of a search that may not be shown.
pub(super) fn off_policy(url: &WebUrl, refusal: Refusal) -> ToolError {
    denied(OFF_POLICY).operator(format!("{url}: {refusal:?}"))
}

/// A result of a search whose address no rule can be applied to.
pub(super) fn unreadable(error: InvalidUrl) -> ToolError {
    denied(OFF_POLICY).with_source(error)
}

const OFF_POLICY: &str = "A result of this search lies at an address that may not be read here.";

fn denied(text: &str) -> ToolError {
    ToolError::new(Kind::PolicyDenied, text)
}
