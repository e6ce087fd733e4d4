//! A model behind an OpenAI-compatible server: chat completions, streamed over HTTP.

mod chunk;
mod endpoint;
mod failure;
mod http;
mod request;
mod retry;
mod sse;

use std::{fmt, sync::Arc, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use serde_json::{Map, Value};
use sixb_tools::Credential;
use tokio_util::sync::CancellationToken;

pub use endpoint::{AI_GATEWAY_BASE_URL, Endpoint, OPENAI_BASE_URL};

use crate::model::{Model, ModelError, ModelEvent, ModelRequest};
use http::Client;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may be silent. A model that thinks says nothing, often for minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(180);
/// How often a request is made, the first time included.
const MAX_ATTEMPTS: u32 = 4;

/// A model of an OpenAI-compatible server. Cheap to clone; clones share their connections.
///
/// - **Wire.** `POST <base URL>/chat/completions` with `stream: true`. Tool calls come in any number at once. Images go
///   as data URLs, to models that take them.
/// - **Retries.** 429, 5xx and failed connections, at most 4 attempts, with growing pauses or as `retry-after` says (up
///   to 60 s), and only before the model has begun to answer. Each is a [`ModelEvent::Retry`].
/// - **Limits.** 10 s to connect, 180 s of silence, 4 MiB an event, 64 MiB a stream.
/// - **Secrets.** The key is in the header of the request and nowhere else: not in `Debug`, errors or logs; where a
///   server quotes it, it is taken out. Redirects are not followed and proxies of the environment not used, so that it
///   reaches the named server only. Plain http is for loopback.
/// - **Cancellation.** Dropping the stream, or the token, drops the connection at once.
///
/// ```
/// use sixb_agent::{Endpoint, OpenAiModel};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::of(|name| match name {
///     "OPENAI_BASE_URL" => Some("http://127.0.0.1:8080/v1".to_owned()),
///     _ => None,
/// });
/// let model = OpenAiModel::builder("qwen/qwen3-8b").endpoint(endpoint.ok_or("set OPENAI_BASE_URL")?).build()?;
/// assert_eq!(model.to_string(), "qwen/qwen3-8b");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct OpenAiModel {
    name: String,
    takes_images: bool,
    client: Arc<Client>,
}

impl OpenAiModel {
    /// A model of the [endpoint that the environment names](Endpoint::from_env).
    ///
    /// # Errors
    /// No endpoint is named, or its address is not acceptable.
    pub fn from_env(model: impl Into<String>) -> Result<Self, OpenAiError> {
        Self::builder(model).build()
    }

    /// Begins a model: `openai/gpt-5.5`, or whatever the server calls it.
    pub fn builder(model: impl Into<String>) -> OpenAiModelBuilder {
        OpenAiModelBuilder {
            model: model.into(),
            endpoint: None,
            options: request::Options::default(),
            images: None,
            connect_timeout: CONNECT_TIMEOUT,
            idle_timeout: IDLE_TIMEOUT,
            attempts: MAX_ATTEMPTS,
        }
    }
}

/// What an OpenAI-compatible server is sent for a request to `model`. It holds no key. Fields that a builder adds are not in it.
pub(crate) fn chat_completions_body(model: &dyn Model, request: &ModelRequest) -> Value {
    let options = request::Options {
        model: model.name().to_owned(),
        images: model.takes_images(),
        ..request::Options::default()
    };
    request::body(request, &options)
}

/// Builds an [`OpenAiModel`].
#[derive(Debug)]
#[must_use]
pub struct OpenAiModelBuilder {
    model: String,
    endpoint: Option<Endpoint>,
    options: request::Options,
    images: Option<bool>,
    connect_timeout: Duration,
    idle_timeout: Duration,
    attempts: u32,
}

impl OpenAiModelBuilder {
    /// Sets where requests go. Default: [`Endpoint::from_env`].
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    /// Sets the address, without `/chat/completions`, and the key; `None` sends none.
    pub fn base_url(self, base_url: impl Into<String>, key: Option<Credential>) -> Self {
        let base_url = base_url.into();
        self.endpoint(Endpoint {
            base_url,
            key,
            source: "base_url",
        })
    }

    /// Sets how hard it thinks: passed through as `reasoning_effort` (`low`, `medium`, `high`, …).
    pub fn reasoning_effort(mut self, effort: impl Into<String>) -> Self {
        self.options.reasoning_effort = Some(effort.into());
        self
    }

    /// Adds a field to the body of each request, as it is: `temperature`, a gateway's own options, ….
    pub fn field(mut self, name: impl Into<String>, value: Value) -> Self {
        self.options.extra.insert(name.into(), value);
        self
    }

    /// Says whether it takes images. Default: by its name.
    pub fn images(mut self, takes: bool) -> Self {
        self.images = Some(takes);
        self
    }

    /// Sets how long a connection may take. Default: 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long the server may be silent. Default: 180 s.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets how often a request is made, the first time included; at least 1. Default: 4.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The model. Connects to nothing yet.
    ///
    /// # Errors
    /// No endpoint is named, its address is not acceptable, the model's name is blank, or TLS cannot be set up.
    pub fn build(self) -> Result<OpenAiModel, OpenAiError> {
        if self.model.trim().is_empty() {
            return Err(OpenAiError::NoName);
        }
        let endpoint = self
            .endpoint
            .or_else(Endpoint::from_env)
            .ok_or(OpenAiError::NoEndpoint)?;
        let url = endpoint.completions()?;
        let takes_images = self
            .images
            .unwrap_or_else(|| request::takes_images(&self.model));
        let mut options = self.options;
        options.model = endpoint.model_name(&url, &self.model).to_owned();
        options.images = takes_images;
        let client = Client::new(
            url,
            endpoint.key,
            options,
            self.connect_timeout,
            self.idle_timeout,
            self.attempts,
        )?;
        Ok(OpenAiModel {
            name: self.model,
            takes_images,
            client: Arc::new(client),
        })
    }
}

/// A model cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenAiError {
    /// Nothing says where to ask.
    #[error(
        "no model server is named: set AI_GATEWAY_API_KEY (Vercel AI Gateway), OPENAI_API_KEY (OpenAI) or OPENAI_BASE_URL (any \
         compatible server)"
    )]
    NoEndpoint,
    /// The address cannot be used. Its text is left out: it may hold a secret.
    #[error("the base URL of the model server {problem}")]
    BaseUrl {
        /// What is wrong.
        problem: String,
    },
    /// The model has no name.
    #[error("the model's name is blank: name one, such as openai/gpt-5.5")]
    NoName,
    /// TLS cannot be set up.
    #[error(
        "the HTTPS client cannot be set up{problem}; if certificates are missing, install the package ca-certificates"
    )]
    Client {
        /// What is wrong.
        problem: String,
        /// The private cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Model for OpenAiModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn takes_images(&self) -> bool {
        self.takes_images
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        http::stream(self.client.clone(), request, cancel).boxed()
    }
}

impl fmt::Display for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiModel")
            .field("name", &self.name)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// The fields that a host added, for `Debug`: their values may be private.
fn names(extra: &Map<String, Value>) -> Vec<&str> {
    extra.keys().map(String::as_str).collect()
}
