#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod agent;
mod files;
pub mod model;
#[cfg(feature = "openai")]
mod openai;
mod outputs;
mod project;
mod prompt;
mod run;
mod scripted;
mod telemetry;
mod timestamp;
pub mod transcript;
mod workspace;

pub use agent::{Agent, AgentBuilder, DEFAULT_MAX_CONTEXT, DEFAULT_MAX_STEPS, DEFAULT_TIMEOUT};
pub use files::{Attachment, PastFile};
#[doc(no_inline)]
pub use model::{Model, ModelError, ModelLabel, Usage};
#[cfg(feature = "openai")]
use openai::chat_completions_body;
#[cfg(feature = "openai")]
pub use openai::{
    AI_GATEWAY_BASE_URL, Endpoint, OPENAI_BASE_URL, OpenAiError, OpenAiModel, OpenAiModelBuilder,
};
pub use project::{BuildError, Sixb, SixbBuilder};
pub use run::{
    CallStatus, Diagnostic, FailureKind, Outcome, Run, RunError, RunEvent, RunRequest, RunState,
    RunStatus, SavedFile, Severity, check_store,
};
pub use scripted::ScriptedModel;
#[doc(no_inline)]
pub use sixb_tools::RunKind;
#[doc(no_inline)]
pub use tokio_util::sync::CancellationToken;
pub use workspace::{SweptWorkspace, state_folder, sweep_workspaces};
