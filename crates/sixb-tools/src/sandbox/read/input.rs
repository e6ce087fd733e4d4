//! What `read` takes: checked once, before anything is opened.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sixb_sandbox::{FileSource, SandboxError, SandboxPath};

use super::page::MAX_LINES;
use crate::{
    ToolError, ToolSpec,
    sandbox::{spool_source, tool_error},
    schema,
    validate::typed,
};

/// Where a run's own files lie, below the working directory.
const RUN_FILES: &str = ".sixb/agent/";

const DESCRIPTION: &str = "Reads a text file of the working directory, at most 2000 lines or 50 KiB at a time. When \
    `truncated` is true, go on with `offset` = `nextOffset` (and `column` = `nextColumn` where given). Also reads the \
    paths that bash gives in `fullOutput` and `log`, and of attachments and artifacts.";

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
    /// The working directory that an absolute path names.
    root: Option<String>,
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
        let (root, relative) = handed_out(&input.path);
        let path = SandboxPath::parse(relative).map_err(tool_error)?;
        if root.is_some() && !path.as_bytes().starts_with(RUN_FILES.as_bytes()) {
            return Err(absolute(&input.path));
        }
        Ok(Self {
            root: root.map(str::to_owned),
            source: spool_source(&path).unwrap_or(FileSource::Path(path)),
            path: input.path,
            offset,
            limit,
            column: input.column.unwrap_or(0),
        })
    }
}

impl Request {
    /// Refuses an absolute path that is not one of this sandbox.
    pub(super) fn check_root(&self, working_directory: &str) -> Result<(), ToolError> {
        match &self.root {
            Some(root) if root != working_directory.trim_end_matches('/') => {
                Err(absolute(&self.path))
            }
            _ => Ok(()),
        }
    }
}

/// The paths of artifacts, attachments and skills are handed out as absolute ones; others are not taken.
fn handed_out(path: &str) -> (Option<&str>, &str) {
    match path.find(&format!("/{RUN_FILES}")) {
        Some(at) if at > 0 && path.starts_with('/') => (Some(&path[..at]), &path[at + 1..]),
        _ => (None, path),
    }
}

fn absolute(path: &str) -> ToolError {
    tool_error(SandboxError::PathEscape {
        path: path.to_owned(),
        reason: "is absolute".into(),
    })
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
    fn absolute_paths_that_the_run_handed_out_are_taken_in_this_sandbox_only() {
        let artifact = "/workspace/.sixb/agent/artifacts/ab/cd-a.txt";
        let request = Request::parse(json!({"path": artifact})).expect("handed out");
        let path = SandboxPath::parse(&artifact["/workspace/".len()..]).expect("path");
        assert_eq!(request.source, FileSource::Path(path));
        assert!(request.check_root("/workspace/").is_ok());
        for root in ["/other", "/workspace/.sixb", "/"] {
            let error = request.check_root(root).expect_err(root);
            assert_eq!(error.kind(), ToolErrorKind::PermissionDenied, "{root}");
        }
        for path in [
            "/workspace/a",
            "/.sixb/agent/a",
            "/w/.sixb/agent/../../a",
            "/w/.sixb/agent/../../../a",
        ] {
            let error = Request::parse(json!({"path": path})).expect_err(path);
            assert_eq!(error.kind(), ToolErrorKind::PermissionDenied, "{path}");
        }
        let spooled = Request::parse(json!({"path": "/w/.sixb/agent/spool/b/stdout"}));
        assert!(matches!(
            spooled.expect("spooled").source,
            FileSource::Output(..)
        ));
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
