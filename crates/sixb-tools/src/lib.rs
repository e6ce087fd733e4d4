#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod agent_tool;
mod bound;
mod build_error;
mod connector;
mod context;
mod error;
mod name;
mod output;
mod progress;
mod registry;
mod run;
#[cfg(feature = "sandbox-tools")]
pub mod sandbox;
pub mod schema;
mod tool;
mod validate;

pub use agent_tool::AgentTool;
pub use bound::MAX_RESULT_BYTES;
pub use build_error::ToolBuildError;
pub use connector::{
    Connector, ConnectorHandle, Connectors, Credential, CredentialError, CredentialProvider,
    DuplicateConnector,
};
pub use context::{ToolContext, ToolContextBuilder};
pub use error::{ToolError, ToolErrorKind};
pub use name::{InvalidToolName, RESERVED_NAMES, ToolName};
pub use output::{ContentPart, ToolOutput};
pub use progress::{ProgressStream, ToolProgress};
pub use registry::{ToolRegistry, ToolRegistryBuilder};
pub use run::{LogLine, RunInfo, RunKind};
#[cfg(feature = "sandbox-tools")]
pub use sandbox::{Artifacts, bash, read, sandbox_tools, view_file};
pub use tool::{Tool, ToolSpec};

#[doc(no_inline)]
pub use async_trait::async_trait;
#[doc(no_inline)]
pub use schemars;
#[doc(no_inline)]
pub use secrecy::{ExposeSecret, SecretString};
#[doc(no_inline)]
pub use tokio_util::sync::CancellationToken;
