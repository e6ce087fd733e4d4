//! The seam: a described action that a model may call.

use std::{any::Any, fmt::Debug, time::Duration};

use async_trait::async_trait;
use serde_json::Value;

use crate::{ToolBuildError, ToolContext, ToolError, ToolName, ToolOutput, schema};

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolSpec {
    /// What the model calls it.
    pub name: ToolName,
    /// What people call it.
    pub title: Option<String>,
    /// What it does and when to use it. Never blank.
    pub description: String,
    /// JSON Schema of the input. Flat: root `type: object`, `properties` present, `additionalProperties: false`, no
    /// references, no root `oneOf`/`anyOf`/`allOf`. The [`schema`] module renders it for each provider.
    pub input_schema: Value,
}

impl ToolSpec {
    /// A description; `input_schema` is flattened.
    ///
    /// # Errors
    /// A bad name, a blank description, or a schema that cannot be made flat.
    pub fn new(
        name: &str,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Result<Self, ToolBuildError> {
        let name: ToolName = name.parse()?;
        let description = description.into();
        if description.trim().is_empty() {
            return Err(ToolBuildError::BlankDescription {
                tool: name.to_string(),
            });
        }
        let input_schema =
            schema::flatten(input_schema).map_err(|source| ToolBuildError::Schema {
                tool: name.to_string(),
                source,
            })?;
        Ok(Self {
            name,
            title: None,
            description,
            input_schema,
        })
    }

    /// Sets what people call it.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

/// A described action. Most tools are built from a closure by [`AgentTool`](crate::AgentTool); implement this for tools
/// whose schema is known only at run time.
///
/// # Semantics
/// - **Input.** [`ToolRegistry::call`](crate::ToolRegistry::call) checks `input` against the schema first; `call` may
///   rely on it.
/// - **Concurrency.** Calls of one step run at the same time.
/// - **Cancellation.** When the run is cancelled or the deadline passes the future of `call` is dropped, after
///   [`cancel_grace`](Self::cancel_grace). Hold nothing that a drop would leave half done.
/// - **Panics** become an `internal` error of that call only.
#[async_trait]
pub trait Tool: Any + Debug + Send + Sync {
    /// What a model is told. The same at every call.
    fn spec(&self) -> &ToolSpec;

    /// Does it.
    async fn call(&self, cx: ToolContext, input: Value) -> Result<ToolOutput, ToolError>;

    /// How long a call may go on after cancellation, to return what it has so far. Default: not at all.
    fn cancel_grace(&self) -> Duration {
        Duration::ZERO
    }
}
