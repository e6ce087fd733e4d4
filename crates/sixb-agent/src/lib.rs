#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod agent;
pub mod model;
mod outputs;
mod project;
mod prompt;
mod run;
mod scripted;
mod timestamp;
pub mod transcript;
mod workspace;

pub use agent::{Agent, AgentBuilder, DEFAULT_MAX_CONTEXT, DEFAULT_MAX_STEPS, DEFAULT_TIMEOUT};
#[doc(no_inline)]
pub use model::{Model, ModelError, ModelLabel, Usage};
pub use project::{BuildError, Sixb, SixbBuilder};
pub use run::{
    CallStatus, Diagnostic, FailureKind, Outcome, Run, RunError, RunEvent, RunRequest, RunState,
    RunStatus, SavedFile, Severity,
};
pub use scripted::ScriptedModel;
#[doc(no_inline)]
pub use sixb_tools::RunKind;
#[doc(no_inline)]
pub use tokio_util::sync::CancellationToken;
pub use workspace::{SweptWorkspace, state_folder, sweep_workspaces};
