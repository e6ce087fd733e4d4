//! What `read` takes: checked once, before anything is opened.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sixb_sandbox::{FileSource, SandboxPath};

use super::page::MAX_LINES;
use crate::{
    ToolError, ToolSpec,
    sandbox::{spool_source, tool_error},
    schema,
    validate::typed,
};

const DESCRIPTION: &str = "Reads a text file of the working directory, at most 2000 lines or 50 KiB at a time. When \
    `truncated` is true, go on with `offset` = `nextOffset` (and `column` = `nextColumn` where given). Also reads the \
    paths that bash gives in `fullOutput` and `log`.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The file, relative to the working directory.
    #[schemars(length(min = 1))]
    pub(super) path: String,
    /// First line to read, from 1. Default 1.
    #[schemars(range(min = 1))]
    offset: Option<u64>,
    /// How many lines to read. Default 2000, at most 2000.
    #[schemars(range(min = 1, max = MAX_LINES))]
    limit: Option<u64>,
    /// Byte of the first line to begin at, from 0: pages through one huge line. Default 0.
    column: Option<u64>,
}

/// Where to read, and how much.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) source: FileSource,
    pub(super) offset: u64,
    pub(super) limit: u64,
    pub(super) column: u64,
}

pub(super) fn spec() -> ToolSpec {
    crate::sandbox::builtin_spec("read", "Read a file", DESCRIPTION, schema::of::<Input>())
}

impl Request {
    /// Refuses what has no meaning, and paths that leave the working directory.
    pub(super) fn parse(input: Value) -> Result<Self, ToolError> {
        let input: Input = typed(&input)?;
        let (offset, limit) = (input.offset.unwrap_or(1), input.limit.unwrap_or(MAX_LINES));
        if offset == 0 {
            return Err(ToolError::invalid_input("`offset` counts lines from 1"));
        }
        if !(1..=MAX_LINES).contains(&limit) {
            return Err(ToolError::invalid_input(format!(
                "`limit` is from 1 to {MAX_LINES} lines: read on by `offset`"
            )));
        }
        let path = SandboxPath::parse(&input.path).map_err(tool_error)?;
        Ok(Self {
            source: spool_source(&path).unwrap_or(FileSource::Path(path)),
            path: input.path,
            offset,
            limit,
            column: input.column.unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sixb_sandbox::{OutputId, OutputStream};

    use super::*;
    use crate::ToolErrorKind;

    #[test]
    fn case_44_a_path_that_leaves_is_denied() {
        for path in [
            "..",
            "a/..//../b",
            "../etc/passwd",
            "/etc/passwd",
            ".sixb/agent/spool/../../../../x",
        ] {
            let error = Request::parse(json!({"path": path})).expect_err(path);
            assert_eq!(
                error.kind(),
                ToolErrorKind::PermissionDenied,
                "{path}: {error}"
            );
        }
        for path in ["", "a\0b"] {
            let error = Request::parse(json!({"path": path})).expect_err("no path");
            assert_eq!(
                error.kind(),
                ToolErrorKind::InvalidInput,
                "{path:?}: {error}"
            );
        }
    }

    #[test]
    fn spool_paths_lead_to_the_spool() {
        let output = |stream| Some((OutputId::for_call("b"), stream));
        for (path, expect) in [
            (".sixb/agent/spool/b/stdout", output(OutputStream::Stdout)),
            (
                "./.sixb//agent/spool/x/../b/stderr",
                output(OutputStream::Stderr),
            ),
            (".sixb/agent/spool/b/other", None),
            (".sixb/agent/spool/b/stdout/x", None),
            (".sixb/agent/spool/b b/stdout", None),
            ("x/.sixb/agent/spool/b/stdout", None),
        ] {
            let request = Request::parse(json!({"path": path})).expect(path);
            let got = match request.source {
                FileSource::Output(id, stream) => Some((id, stream)),
                _ => None,
            };
            assert_eq!(got, expect, "{path}");
        }
    }

    #[test]
    fn line_numbers_have_bounds() {
        for (input, part) in [
            (json!({"path": "a", "offset": 0}), "from 1"),
            (json!({"path": "a", "limit": 2001}), "2000"),
            (json!({"path": "a", "limit": 0}), "2000"),
        ] {
            let error = Request::parse(input).expect_err("refused");
            assert!(error.model_text().contains(part), "{error}");
        }
    }
}
