//! How a refusal and a failure look to programs inside: HTTP with a header that no upstream can fake, and JSON.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{Response, StatusCode, header};
use sixb_sandbox::DenialReason;

use super::dial::Fault;

/// Marks what the relay refused; the value is the reason.
pub(super) const DENIED: &str = "x-sixb-denied";
/// Marks what failed beyond the relay; the value says where.
pub(super) const FAILED: &str = "x-sixb-failed";

/// The body of an answer.
pub(super) type Body = BoxBody<Bytes, hyper::Error>;

/// 403.
pub(super) fn denied(target: &str, reason: DenialReason) -> Response<Body> {
    let error = explain(target, reason);
    json(StatusCode::FORBIDDEN, DENIED, reason.as_str(), &error)
}

/// 502: the relay allows it, but it did not work.
pub(super) fn failed(target: &str, fault: Fault) -> Response<Body> {
    let what = match fault {
        Fault::Resolve => "the name has no address",
        Fault::Connect => "nobody takes the connection",
        Fault::Timeout => "no connection within 10 s",
        Fault::Response => "it gave no valid answer",
    };
    let error = format!("{target} is allowed, but cannot be reached: {what}");
    json(StatusCode::BAD_GATEWAY, FAILED, &fault.to_string(), &error)
}

fn explain(target: &str, reason: DenialReason) -> String {
    let why = match reason {
        DenialReason::Origin => "host and port are not in its list of allowed origins",
        DenialReason::Scheme => {
            "the list allows another scheme there (http for cleartext, https for TLS)"
        }
        DenialReason::Address => "the name leads to an address that names may not lead to",
        DenialReason::Authority => "the request names another host inside",
        DenialReason::Request => "it is not a request that is relayed",
        DenialReason::Limit => "it has too many connections open",
        _ => "the policy forbids it",
    };
    format!("this sandbox may not reach {target}: {why}")
}

fn json(status: StatusCode, mark: &'static str, code: &str, error: &str) -> Response<Body> {
    let body = content(code, error);
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
    let mut response = Response::new(body.boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let json = header::HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    if let Ok(code) = header::HeaderValue::from_str(code) {
        headers.insert(mark, code);
    }
    response
}

fn content(code: &str, error: &str) -> String {
    format!("{}\n", serde_json::json!({ "error": error, "code": code }))
}

/// The whole answer to a connection that is one too many.
pub(super) fn over_limit() -> Vec<u8> {
    let reason = DenialReason::Limit;
    let body = content(reason.as_str(), &explain("anything more", reason));
    format!(
        "HTTP/1.1 403 Forbidden\r\n{DENIED}: {reason}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// TLS alerts, fatal: what a client that speaks TLS can be told.
pub(super) mod alert {
    /// `access_denied`.
    pub(in crate::relay) const DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];
    /// `internal_error`.
    pub(in crate::relay) const FAILED: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];
}
