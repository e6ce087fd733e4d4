//! One request: the key, one POST, and an answer of bounded size, all within one deadline.

use std::time::{Duration, Instant};

use reqwest::{
    Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::Value;
use url::Url;

use crate::{ApiError, ApiKey, ExaError, MAX_BODY_BYTES, redact};

/// The body of an error.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Most parts of an answer. Each takes a hundred times the memory that its text does, so bytes alone are no bound; a large
/// answer of Exa has some thousands.
const MAX_PARTS: usize = 200_000;
/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept: shorter than servers do, for a request on one that was just closed would fail, and is
/// not made again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

pub(crate) struct Http {
    client: reqwest::Client,
    key: ApiKey,
    timeout: Duration,
}

impl Http {
    pub(crate) fn new(key: ApiKey, timeout: Duration, plain: bool) -> Result<Self, ExaError> {
        let builder = reqwest::Client::builder();
        // Plain http checks no certificate: it must not fail on a machine that has none.
        let builder = match plain {
            true => builder.tls_certs_only([]),
            false => builder,
        };
        let client = builder
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .pool_idle_timeout(IDLE_TIMEOUT)
            // A key must not travel further than to the server that was named.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            // One call is one request.
            .retry(reqwest::retry::never())
            .user_agent(concat!("sixb-connector-exa/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ExaError::Client {
                source: error.into(),
            })?;
        Ok(Self {
            client,
            key,
            timeout,
        })
    }

    /// Dropping the future drops the connection.
    pub(crate) async fn post(&self, url: &Url, body: &impl Serialize) -> Result<Value, ExaError> {
        let body = serde_json::to_vec(body).map_err(|_| ExaError::Request {
            problem: "cannot be written as JSON",
        })?;
        let begun = Instant::now();
        let answer = match tokio::time::timeout(self.timeout, self.ask(url, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(ExaError::Timeout {
                after: self.timeout,
            }),
        };
        let elapsed_ms = begun.elapsed().as_millis() as u64;
        match &answer {
            Ok(_) => tracing::debug!(path = url.path(), elapsed_ms, "Exa answered"),
            Err(error) => tracing::debug!(path = url.path(), elapsed_ms, %error, "Exa failed"),
        }
        answer
    }

    async fn ask(&self, url: &Url, body: Vec<u8>) -> Result<Value, ExaError> {
        let key = self.key.resolve().await.map_err(|error| ExaError::Key {
            problem: error.problem,
            source: error.source,
        })?;
        // Files of keys end with a line end. What is sent is what is looked for in the answer.
        let key = SecretString::from(key.expose_secret().trim().to_owned());
        let request = self
            .client
            .post(url.clone())
            .header("x-api-key", header(&key)?)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(body);
        let response = request.send().await.map_err(connection)?;
        if !response.status().is_success() {
            return Err(told(response, &key).await);
        }
        let declared = response.content_length().unwrap_or(0);
        let body = match declared > MAX_BODY_BYTES as u64 {
            true => None,
            false => read(response, MAX_BODY_BYTES).await?,
        };
        let Some(body) = body else {
            return Err(ExaError::TooLarge {
                limit: MAX_BODY_BYTES,
            });
        };
        if parts(&body) > MAX_PARTS {
            return Err(ExaError::Malformed {
                problem: "has too many parts",
            });
        }
        // What the parser says may quote the text, so it is not passed on.
        let mut answer: Value = serde_json::from_slice(&body).map_err(|_| ExaError::Malformed {
            problem: "is no JSON",
        })?;
        redact::value(&mut answer, &key);
        Ok(answer)
    }
}

fn header(key: &SecretString) -> Result<HeaderValue, ExaError> {
    let wrong = |problem: &str| ExaError::Key {
        problem: problem.to_owned(),
        source: None,
    };
    let text = key.expose_secret();
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| wrong("it has characters that no header may hold"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The whole body; `None` when it is larger than `most`: what is left is not read, and the connection ends.
async fn read(mut response: Response, most: usize) -> Result<Option<Vec<u8>>, ExaError> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(connection)? {
        if body.len() + piece.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

/// How many parts a JSON text has at most: what stands between the punctuation outside of strings.
fn parts(json: &[u8]) -> usize {
    let (mut parts, mut in_string, mut escaped) = (1, false, false);
    for byte in json {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b',' | b':' | b'{' | b'[') => parts += 1,
            _ => {}
        }
    }
    parts
}

/// The causes of such an error know addresses, but no header.
fn connection(error: reqwest::Error) -> ExaError {
    ExaError::Connection {
        source: error.without_url().into(),
    }
}

/// What an answer says that is no success. A body that is cut, too large or no JSON leaves the status.
async fn told(response: Response, key: &SecretString) -> ExaError {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = match (300..400).contains(&status) {
        true => None,
        false => read(response, MAX_ERROR_BYTES).await.ok().flatten(),
    };
    let mut body: Value = body
        .and_then(|body| serde_json::from_slice(&body).ok())
        .unwrap_or_default();
    redact::value(&mut body, key);
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let message = text("error").or_else(|| text("message"));
    ExaError::Api(Box::new(ApiError {
        status,
        tag: text("tag").and_then(|tag| redact::token(tag, 64)),
        request_id: text("requestId").and_then(|id| redact::token(id, 128)),
        retry_after: retry_after(&headers),
        message: message
            .map(|message| redact::line(message, 500))
            .filter(|message| !message.is_empty()),
    }))
}

/// Whole seconds; Exa sends no dates.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("retry-after")?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn punctuation_inside_of_strings_is_no_part() {
        for (json, expect) in [
            ("", 1),
            ("7", 1),
            ("[1, 2]", 3),
            (r#"{"a": {"b,:[{": 1}}"#, 5),
            (r#"["\",,,\\", ","]"#, 3),
            (r#"["\\\", [{"#, 2),
        ] {
            assert_eq!(parts(json.as_bytes()), expect, "{json}");
        }
    }
}
