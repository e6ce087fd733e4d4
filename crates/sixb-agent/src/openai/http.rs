//! Asks: one request, its retries, and the stream that comes back.

use std::{
    borrow::Cow,
    fmt,
    time::{Duration, SystemTime},
};

use async_stream::stream;
use bytes::Bytes;
use futures::Stream;
use reqwest::{
    Response, StatusCode, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use serde_json::Value;
use sixb_tools::{Credential, ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use super::{
    OpenAiError,
    chunk::Step,
    failure::{Failure, clean},
    names, request, retry,
    sse::Events,
};
use crate::model::{ModelError, ModelEvent, ModelRequest};

/// One event.
const MAX_EVENT: usize = 4 << 20;
/// One stream: some servers send a kilobyte around each token.
const MAX_STREAM: usize = 64 << 20;
/// The body of an error.
const MAX_ERROR: usize = 64 << 10;

pub(super) struct Client {
    http: reqwest::Client,
    url: Url,
    key: Option<Credential>,
    options: request::Options,
    idle: Duration,
    attempts: u32,
}

impl Client {
    pub(super) fn new(
        url: Url,
        key: Option<Credential>,
        options: request::Options,
        connect: Duration,
        idle: Duration,
        attempts: u32,
    ) -> Result<Self, OpenAiError> {
        let builder = reqwest::Client::builder();
        // Plain http checks no certificate: it must not fail on a machine that has none.
        let builder = match url.scheme() {
            "http" => builder.tls_certs_only([]),
            _ => builder,
        };
        let http = builder
            .connect_timeout(connect)
            // A key must not travel further than to the server that was named.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .user_agent(concat!("sixb-agent/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| OpenAiError::Client {
                problem: causes(&error),
                source: error.into(),
            })?;
        Ok(Self {
            http,
            url,
            key,
            options,
            idle,
            attempts,
        })
    }

    /// Sends the request; the response has status 2xx.
    async fn send(&self, body: &Bytes, key: Option<&SecretString>) -> Result<Response, Failure> {
        let mut request = self
            .http
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .body(body.clone());
        if let Some(key) = key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret()))
                .map_err(|_| Failure::refused("the key has characters that no header may hold: check the variable it comes from"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let response = match tokio::time::timeout(self.idle, request.send()).await {
            Err(_) => return Err(self.silent()),
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Ok(Ok(response)) => response,
        };
        match response.status() {
            status if status.is_success() => Ok(response),
            status if status.is_redirection() => Err(Failure::refused(format!(
                "HTTP {}: the server sends elsewhere, and redirects are not followed: correct the base URL",
                status.as_u16()
            ))),
            status => Err(self.told(status, response, key).await),
        }
    }

    async fn told(
        &self,
        status: StatusCode,
        response: Response,
        key: Option<&SecretString>,
    ) -> Failure {
        let header = |name: &str| {
            response
                .headers()
                .get(name)?
                .to_str()
                .ok()
                .map(str::to_owned)
        };
        let (millis, after) = (header("retry-after-ms"), header("retry-after"));
        let asked = retry::asked(millis.as_deref(), after.as_deref(), SystemTime::now());
        let body = self.body(response, MAX_ERROR).await.unwrap_or_default();
        let body = scrub(&body, key);
        let error = match serde_json::from_slice::<Value>(&body) {
            // Some servers wrap it in a list.
            Ok(Value::Array(mut list)) if !list.is_empty() => list.swap_remove(0),
            Ok(value) => value,
            Err(_) => Value::String(String::from_utf8_lossy(&body).into_owned()),
        };
        let error = match error.get("error") {
            Some(inner) if inner.is_object() || inner.is_string() => inner,
            _ => &error,
        };
        Failure::told(error, Some(status.as_u16())).after(asked)
    }

    /// What there is of a body, up to a bound.
    async fn body(&self, mut response: Response, most: usize) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        while body.len() < most {
            match self.next(&mut response).await? {
                Some(piece) => body.extend_from_slice(&piece[..piece.len().min(most - body.len())]),
                None => break,
            }
        }
        Ok(body)
    }

    /// The next piece of a body.
    async fn next(&self, response: &mut Response) -> Result<Option<Bytes>, Failure> {
        match tokio::time::timeout(self.idle, response.chunk()).await {
            Err(_) => Err(self.silent()),
            Ok(Err(error)) => Err(self.unreachable(&error)),
            Ok(Ok(piece)) => Ok(piece),
        }
    }

    fn silent(&self) -> Failure {
        Failure::unavailable(format!(
            "the server was silent for {} ms",
            self.idle.as_millis()
        ))
    }

    /// A connection that failed, with its causes: their texts know addresses, but no header.
    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let mut text = match (error.is_connect(), error.is_timeout()) {
            (true, true) => "the connection took too long".to_owned(),
            (true, false) => format!(
                "no connection to {}",
                self.url.host_str().unwrap_or_default()
            ),
            _ => "the connection failed".to_owned(),
        };
        text.push_str(&causes(error));
        Failure::unavailable(clean(&text))
    }
}

/// The causes of an error, each after a colon. Its own text would repeat the URL.
fn causes(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("url", &self.url.as_str())
            .field("key", &self.key)
            .field("model", &self.options.model)
            .field("reasoning_effort", &self.options.reasoning_effort)
            .field("fields", &names(&self.options.extra))
            .finish_non_exhaustive()
    }
}

/// Text that a server sent, without the key: some quote it.
fn scrub<'a>(text: &'a [u8], key: Option<&SecretString>) -> Cow<'a, [u8]> {
    let Some(key) = key
        .map(|key| key.expose_secret().as_bytes())
        .filter(|key| !key.is_empty())
    else {
        return Cow::Borrowed(text);
    };
    let mut clean = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(key.len()).position(|window| window == key) {
        clean.extend_from_slice(&rest[..at]);
        clean.extend_from_slice(b"[redacted]");
        rest = &rest[at + key.len()..];
    }
    if clean.is_empty() && rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    clean.extend_from_slice(rest);
    Cow::Owned(clean)
}

/// One step: attempts until the model begins to answer, then its answer.
pub(super) fn stream(
    client: std::sync::Arc<Client>,
    request: ModelRequest,
    cancel: CancellationToken,
) -> impl Stream<Item = Result<ModelEvent, ModelError>> + Send {
    stream! {
        let body = Bytes::from(request::body(&request, &client.options).to_string());
        drop(request);
        for attempt in 1.. {
            let mut step = Step::default();
            let mut failed = None;
            {
                let answer = answer(&client, &body, &mut step, cancel.clone());
                let mut answer = std::pin::pin!(answer);
                while let Some(delta) = futures::StreamExt::next(&mut answer).await {
                    match delta {
                        Ok(text) => yield Ok(ModelEvent::TextDelta(text)),
                        Err(failure) => failed = Some(failure),
                    }
                }
            }
            let begun = step.begun();
            let failure = match failed {
                Some(failure) => failure,
                None => match step.end() {
                    Ok(events) => {
                        for event in events {
                            yield Ok(event);
                        }
                        return;
                    }
                    Err(failure) => failure,
                },
            };
            let wait = match begun {
                true => None,
                false => retry::wait(&failure, attempt + 1, client.attempts),
            };
            let Some(wait) = wait else {
                yield Err(told_last(failure, attempt));
                return;
            };
            tracing::warn!(attempt, wait_ms = wait.as_millis() as u64, "the model request is made again: {}", failure.error);
            yield Ok(ModelEvent::Retry { attempt: attempt + 1, wait, reason: failure.error.to_string() });
            if cancel.run_until_cancelled(tokio::time::sleep(wait)).await.is_none() {
                yield Err(ModelError::Cancelled);
                return;
            }
        }
    }
}

/// The last error says how often was tried, and how long the provider wants to be left alone.
fn told_last(failure: Failure, attempts: u32) -> ModelError {
    let Failure {
        mut error, after, ..
    } = failure;
    if let ModelError::Unavailable { detail, .. } = &mut error {
        if attempts > 1 {
            detail.push_str(&format!("; tried {attempts} times"));
        }
        if let Some(after) = after {
            detail.push_str(&format!(
                "; the provider asks to wait {} s",
                after.as_secs_f64().ceil()
            ));
        }
    }
    error
}

/// One attempt: the text as it comes; calls and usage add up in `step`. Dropping it drops the connection.
fn answer<'a>(
    client: &'a Client,
    body: &'a Bytes,
    step: &'a mut Step,
    cancel: CancellationToken,
) -> impl Stream<Item = Result<String, Failure>> + Send + 'a {
    stream! {
        macro_rules! or_end {
            ($work:expr) => {
                match cancel.run_until_cancelled($work).await {
                    None => { yield Err(Failure::cancelled()); return }
                    Some(Err(failure)) => { yield Err(failure); return }
                    Some(Ok(value)) => value,
                }
            };
        }
        let key = match &client.key {
            None => None,
            // A vault that hangs is as good as a server that does.
            Some(key) => Some(or_end!(async {
                match tokio::time::timeout(client.idle, key.resolve()).await {
                    Ok(Ok(key)) => Ok(key),
                    Ok(Err(error)) => Err(Failure::refused(error.to_string())),
                    Err(_) => Err(Failure::refused("the key's provider did not answer")),
                }
            })),
        };
        let key = key.as_ref();
        let mut response = or_end!(client.send(body, key));
        match kind(&response, key) {
            Kind::Events => {}
            Kind::Json => {
                let whole = or_end!(client.body(response, MAX_EVENT));
                match step.take(&scrub(&whole, key)) {
                    Ok(Some(text)) => yield Ok(text),
                    Ok(None) => {}
                    Err(failure) => yield Err(failure),
                }
                return;
            }
            Kind::Other(name) => {
                yield Err(Failure::malformed(format!(
                    "the server sent {name} where an event stream was asked for: check the base URL"
                )));
                return;
            }
        }
        let mut parser = Events::new(MAX_EVENT);
        let mut events = Vec::new();
        let mut total = 0;
        while !step.done() {
            let piece = or_end!(client.next(&mut response));
            let over = piece.is_none();
            let parsed = match piece {
                Some(piece) => {
                    total += piece.len();
                    if total > MAX_STREAM {
                        yield Err(Failure::too_long("stream", MAX_STREAM));
                        return;
                    }
                    parser.push(&piece, &mut events)
                }
                None => parser.end().map(|last| events.extend(last)),
            };
            for event in events.drain(..) {
                match step.take(&scrub(&event, key)) {
                    Ok(Some(text)) => yield Ok(text),
                    Ok(None) => {}
                    Err(failure) => { yield Err(failure); return }
                }
            }
            if parsed.is_err() {
                yield Err(Failure::too_long("event", MAX_EVENT));
                return;
            }
            if over {
                return;
            }
        }
    }
}

enum Kind {
    Events,
    Json,
    Other(String),
}

fn kind(response: &Response, key: Option<&SecretString>) -> Kind {
    let Some(value) = response.headers().get(CONTENT_TYPE) else {
        return Kind::Events;
    };
    let text = scrub(value.as_bytes(), key);
    let text = String::from_utf8_lossy(&text);
    let essence = text
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "text/event-stream" => Kind::Events,
        "application/json" => Kind::Json,
        _ => Kind::Other(clean(&essence)),
    }
}
