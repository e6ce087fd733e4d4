//! The tools that work in a sandbox: `bash`, `read` and `view_file`; and where calls keep files.

mod artifacts;
mod bash;
mod boot;
mod errors;
mod materialise;
mod read;
mod spool;
mod view;

use std::{any::Any, sync::Arc};

pub use artifacts::Artifacts;
pub use bash::bash;
pub use errors::tool_error;
pub use materialise::materialise_in;
pub use read::read;
pub use view::view_file;

pub(crate) use artifacts::artifacts;
pub(crate) use boot::booted;
pub(crate) use spool::{spool_path, spool_source};

use serde_json::Value;

use crate::{Tool, ToolSpec, schema::SchemaError};

/// The tools of this crate that need a sandbox: `bash`, `read` and `view_file`.
///
/// The host lends the sandbox as a [`LazySandbox`](sixb_sandbox::LazySandbox) extension of the call's context, and the
/// call's [`CallArtifacts`](sixb_artifacts::store::CallArtifacts) for `view_file`.
pub fn sandbox_tools() -> Vec<Arc<dyn Tool>> {
    vec![bash(), read(), view_file()]
}

pub(crate) fn is_builtin(tool: &dyn Tool) -> bool {
    let tool: &dyn Any = tool;
    tool.is::<bash::Bash>() || tool.is::<read::Read>() || tool.is::<view::ViewFile>()
}

fn builtin_spec(
    name: &str,
    title: &str,
    description: &str,
    schema: Result<Value, SchemaError>,
) -> ToolSpec {
    let schema = schema.expect("a struct with named fields, by its definition");
    ToolSpec::new(name, description, schema)
        .expect("a good name and a flat schema, by their definition")
        .title(title)
}
