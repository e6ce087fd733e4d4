//! The seam to a language model: one streaming request.

use std::{
    fmt::{Debug, Display},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
#[doc(no_inline)]
pub use sixb_artifacts::images::AcceptedFormats;
use sixb_tools::{ToolErrorKind, ToolSpec};
use tokio_util::sync::CancellationToken;

/// A language model, or something that plays one.
///
/// # Semantics
/// - **One request, one stream.** [`stream`](Self::stream) returns at once; the work happens as the stream is polled.
/// - **Order.** Text deltas in reading order; each tool call once, complete; [`ModelEvent::Finished`] last. An error
///   ends the stream.
/// - **Cancellation.** When `cancel` fires, or the stream is dropped, the connection is dropped too. A stream that ends
///   because of `cancel` ends with [`ModelError::Cancelled`].
/// - **Memory between requests: none.** All a model knows of a run is in the request.
/// - **Retries** are the model's own, bounded, told as [`ModelEvent::Retry`], and only before anything of the answer.
/// - `Display` shows the name, and no secret.
pub trait Model: Debug + Display + Send + Sync + 'static {
    /// What it is called: `openai/gpt-5.5`, `scripted`, ….
    fn name(&self) -> &str;

    /// Whether its answers are written beforehand. Shown wherever the model is named.
    fn is_scripted(&self) -> bool {
        false
    }

    /// Whether it understands images in a request. One that does not is told that there was one.
    fn takes_images(&self) -> bool {
        false
    }

    /// The image formats it understands. Images in others are encoded anew. Default: PNG, JPEG, GIF and WebP.
    fn image_formats(&self) -> AcceptedFormats {
        AcceptedFormats::default()
    }

    /// Asks for one step.
    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>>;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn is_scripted(&self) -> bool {
        (**self).is_scripted()
    }

    fn takes_images(&self) -> bool {
        (**self).takes_images()
    }

    fn image_formats(&self) -> AcceptedFormats {
        (**self).image_formats()
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        (**self).stream(request, cancel)
    }
}

/// How a model is named in events, transcripts and outcomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelLabel {
    /// [`Model::name`].
    pub name: String,
    /// [`Model::is_scripted`].
    pub scripted: bool,
}

impl ModelLabel {
    /// The label of `model`.
    pub fn of(model: &dyn Model) -> Self {
        Self {
            name: model.name().to_owned(),
            scripted: model.is_scripted(),
        }
    }
}

impl Display for ModelLabel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)?;
        if self.scripted {
            f.write_str(" (scripted)")
        } else {
            Ok(())
        }
    }
}

/// All a model knows when it is asked for a step.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// The conversation so far, oldest first.
    pub messages: Vec<Message>,
    /// What it may call; in the last step, what it could call before.
    pub tools: Arc<[ToolSpec]>,
    /// No step follows: it has to answer now, and may call nothing.
    pub last_step: bool,
}

impl ModelRequest {
    /// A request without tools.
    pub fn new(system: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            system: system.into(),
            messages,
            tools: Arc::from([]),
            last_step: false,
        }
    }

    /// Offers tools.
    pub fn tools(mut self, tools: Arc<[ToolSpec]>) -> Self {
        self.tools = tools;
        self
    }

    /// Says that no step follows.
    pub fn last_step(mut self, last: bool) -> Self {
        self.last_step = last;
        self
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// Said by the user, or by the runtime on its behalf.
    User {
        /// The text.
        text: String,
        /// What it shows besides.
        images: Vec<ImagePart>,
    },
    /// Said by the model: one step.
    Assistant {
        /// The text; may be empty.
        text: String,
        /// The tools it called, in its order.
        calls: Vec<ToolCall>,
    },
    /// What came of one call.
    Tool(ToolResult),
}

impl Message {
    /// What the user says, without images.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            text: text.into(),
            images: Vec::new(),
        }
    }
}

/// An image that goes to a model.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImagePart {
    /// `image/png`, `image/jpeg`, ….
    pub media_type: String,
    /// The encoded image.
    pub data: Bytes,
}

impl ImagePart {
    /// An image. Whoever makes one has checked that type and size suit models.
    pub fn new(media_type: impl Into<String>, data: impl Into<Bytes>) -> Self {
        Self {
            media_type: media_type.into(),
            data: data.into(),
        }
    }
}

impl Debug for ImagePart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ImagePart({}, {} bytes)",
            self.media_type,
            self.data.len()
        )
    }
}

/// A tool call as the model made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCall {
    /// Names the call, uniquely in its run.
    pub id: String,
    /// The tool.
    pub name: String,
    /// JSON text; may be malformed.
    pub arguments: String,
}

impl ToolCall {
    /// A call.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    /// The arguments as JSON; a JSON string of the raw text where they are malformed.
    pub fn arguments_json(&self) -> Value {
        serde_json::from_str(&self.arguments)
            .unwrap_or_else(|_| Value::String(self.arguments.clone()))
    }
}

/// What came of one tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// The result, or why there is none.
    pub result: Result<Value, ToolFailure>,
    /// What the model reads instead, where the result has files: its text, and what is known of each file. Not kept: it is
    /// made anew from the files.
    pub shown: Option<String>,
}

/// Why a tool call has no result, in the words that a model may read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolFailure {
    /// What kind of failure.
    pub kind: ToolErrorKind,
    /// The text for the model.
    pub message: String,
}

impl ToolResult {
    /// A result.
    pub fn ok(call: &ToolCall, value: Value) -> Self {
        Self {
            call_id: call.id.clone(),
            name: call.name.clone(),
            result: Ok(value),
            shown: None,
        }
    }

    /// A failure.
    pub fn failed(call: &ToolCall, kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self {
            call_id: call.id.clone(),
            name: call.name.clone(),
            result: Err(ToolFailure {
                kind,
                message: message.into(),
            }),
            shown: None,
        }
    }

    /// What a model reads: text as it is, other results as JSON.
    pub fn model_text(&self) -> String {
        match (&self.shown, self.to_json()) {
            (Some(shown), _) => shown.clone(),
            (None, Value::String(text)) => text,
            (None, other) => other.to_string(),
        }
    }

    /// As it is kept: the result itself, or `{"error":{"kind":…,"message":…}}`.
    pub fn to_json(&self) -> Value {
        match &self.result {
            Ok(value) => value.clone(),
            Err(failure) => json!({"error": failure}),
        }
    }
}

/// What a model's stream yields.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// More text.
    TextDelta(String),
    /// A complete tool call.
    ToolCall(ToolCall),
    /// What the request used; several are summed.
    Usage(Usage),
    /// The request is made again after a pause; nothing of the answer has come yet.
    Retry {
        /// Which attempt follows, from 2.
        attempt: u32,
        /// How long the pause is.
        wait: Duration,
        /// Why.
        reason: String,
    },
    /// The step is over.
    Finished {
        /// Why.
        reason: FinishReason,
    },
}

/// Why a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model said all it wanted.
    Stop,
    /// It waits for tool results.
    ToolCalls,
    /// Its answer was cut at its length limit.
    Length,
    /// Its provider withheld the rest.
    ContentFilter,
}

/// Tokens used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

impl Usage {
    /// A count.
    pub fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
        }
    }

    /// Adds `other`.
    pub fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}

/// A model gave no complete step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The request is wrong, or its sender may not make it: the same request fails again.
    #[error("the model refused the request: {detail}")]
    Refused {
        /// What the provider says.
        detail: String,
    },
    /// The provider is busy or cannot be reached, after the model's own retries: later may work.
    #[error("the model is unavailable: {detail}")]
    Unavailable {
        /// What was seen.
        detail: String,
        /// The private cause.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The answer is not what the protocol allows.
    #[error("the model's answer is malformed: {detail}")]
    Malformed {
        /// What is wrong.
        detail: String,
    },
    /// The answer is longer than the run accepts.
    #[error("the model's {what} is over its limit of {limit} bytes")]
    TooLong {
        /// `text`, `tool calls`, `stream` or `event` of one step.
        what: &'static str,
        /// In bytes.
        limit: usize,
    },
    /// A script cannot go on: fix the script.
    #[error("script {at}: {problem}")]
    Script {
        /// JSON path in the script: `steps[1].toolCalls[0].arguments.command`.
        at: String,
        /// What is wrong there.
        problem: String,
    },
    /// The cancellation token fired.
    #[error("the model request was cancelled")]
    Cancelled,
}
