//! The `read` tool: text of a file, in pages.

mod input;

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde_json::Value;

use crate::{Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolSpec};

/// The `read` tool.
pub fn read() -> Arc<dyn Tool> {
    Arc::new(Read)
}

/// See [`read`].
#[derive(Debug)]
pub(crate) struct Read;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(input::spec);

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, _cx: ToolContext, _input: Value) -> Result<ToolOutput, ToolError> {
        Err(ToolError::of(ToolErrorKind::Internal))
    }
}
