//! The `bash` tool: one command in the run's sandbox.

mod input;

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde_json::Value;

use crate::{Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolSpec};

/// The `bash` tool.
pub fn bash() -> Arc<dyn Tool> {
    Arc::new(Bash)
}

/// See [`bash`].
#[derive(Debug)]
pub(crate) struct Bash;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(input::spec);

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, _cx: ToolContext, _input: Value) -> Result<ToolOutput, ToolError> {
        Err(ToolError::of(ToolErrorKind::Internal))
    }
}
