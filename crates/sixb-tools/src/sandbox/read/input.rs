//! What `read` takes: checked once, before anything is opened.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{ToolSpec, schema};

const DESCRIPTION: &str = "Reads a text file of the working directory, at most 2000 lines or 50 KiB at a time. When \
    `truncated` is true, go on with `offset` = `nextOffset` (and `column` = `nextColumn` where given). Also reads the \
    paths that `fullOutput` of bash names.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The file, relative to the working directory.
    pub(super) path: String,
    /// First line to read, from 1. Default 1.
    pub(super) offset: Option<u64>,
    /// How many lines to read. Default 2000, at most 2000.
    pub(super) limit: Option<u64>,
    /// Byte of the first line to begin at, from 0: pages through one huge line. Default 0.
    pub(super) column: Option<u64>,
}

pub(super) fn spec() -> ToolSpec {
    crate::sandbox::builtin_spec("read", "Read a file", DESCRIPTION, schema::of::<Input>())
}
