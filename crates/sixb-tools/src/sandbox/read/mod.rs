//! The `read` tool: text of a file, in pages.

mod index;
mod input;
mod page;
mod sniff;

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use sixb_sandbox::{
    ByteRange, FileKind, FileSource, FileStat, LinePosition, Sandbox, SandboxError, SeekLine,
};

use self::{index::LineIndex, input::Request, page::WINDOW};
use super::tool_error;
use crate::{Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolSpec};

/// The `read` tool.
///
/// `content` is the file's own bytes, line ends and byte order mark included: pages put together are the file. An empty
/// file has `startLine` and `endLine` 0.
pub fn read() -> Arc<dyn Tool> {
    Arc::new(Read {
        index: Mutex::default(),
    })
}

/// See [`read`].
#[derive(Debug)]
pub(crate) struct Read {
    index: Mutex<LineIndex>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(input::spec);

/// The result of `read`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Text<'a> {
    path: &'a str,
    content: &'a str,
    start_line: u64,
    end_line: u64,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_column: Option<u64>,
    total_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_lines: Option<u64>,
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, cx: ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let request = Request::parse(input)?;
        let sandbox = cx.sandbox().await?;
        request.check_root(sandbox.working_directory())?;
        let stat = sandbox
            .stat(&request.source)
            .await
            .map_err(|error| explain(error, &request))?;
        if stat.kind != FileKind::File {
            return Err(wrong_kind(&request.path, stat.kind));
        }
        let open = Open {
            sandbox: &*sandbox,
            request: &request,
            stat,
            index: &self.index,
        };
        Ok(ToolOutput::Json(open.read().await?))
    }
}

/// A file that can be read.
struct Open<'a> {
    sandbox: &'a dyn Sandbox,
    request: &'a Request,
    stat: FileStat,
    index: &'a Mutex<LineIndex>,
}

impl Open<'_> {
    async fn read(&self) -> Result<Value, ToolError> {
        let (offset, column) = (self.request.offset, self.request.column);
        let line_start = self.line_start().await?;
        if column > 0 {
            self.check_column(line_start).await?;
        }
        let start = line_start + column;
        let bytes = self.bytes(start, WINDOW).await?;
        if bytes.first().is_some_and(|byte| byte & 0xc0 == 0x80) && column > 0 {
            return Err(ToolError::invalid_input(format!(
                "`column` {column} of line {offset} is inside a character; use the `nextColumn` of the page before"
            )));
        }
        let Ok(page) = page::page(&bytes, self.request.limit) else {
            let start = self.bytes(0, sniff::SNIFF).await?;
            return Err(ToolError::invalid_input(sniff::refusal(
                &self.request.path,
                self.stat.size,
                &start,
            )));
        };
        let end = start + page.text.len() as u64;
        let next_line = offset + page.lines;
        let total_lines = match page.more {
            false => Some(next_line - 1),
            true => self.with_index(|index| {
                index
                    .known(self.sandbox.id(), &self.request.source, &self.stat, offset)
                    .total_lines
            }),
        };
        if !page.more {
            self.with_index(|index| {
                index.learn_total(
                    self.sandbox.id(),
                    &self.request.source,
                    &self.stat,
                    next_line - 1,
                )
            });
        } else if !page.clipped {
            self.learn(next_line, end);
        }
        let text = Text {
            path: &self.request.path,
            content: page.text,
            start_line: if page.lines == 0 { 0 } else { offset },
            end_line: next_line - 1,
            truncated: page.more,
            next_offset: page
                .more
                .then_some(if page.clipped { offset } else { next_line }),
            next_column: page.clipped.then_some(column + page.text.len() as u64),
            total_bytes: self.stat.size.max(end),
            total_lines,
        };
        Ok(serde_json::to_value(text)?)
    }

    /// Where the first line wanted starts.
    async fn line_start(&self) -> Result<u64, ToolError> {
        let line = self.request.offset;
        match self.seek(line).await? {
            LinePosition::At { offset } => Ok(offset),
            // An empty file can be read: it is empty.
            LinePosition::PastEnd { total_lines: 0 } if line == 1 => Ok(0),
            LinePosition::PastEnd { total_lines } => {
                let lines = if total_lines == 1 {
                    "1 line".to_owned()
                } else {
                    format!("{total_lines} lines")
                };
                let text = format!(
                    "`offset` {line} is past the end of {:?}, which has {lines}",
                    self.request.path
                );
                Err(ToolError::invalid_input(text))
            }
            _ => Err(ToolError::of(ToolErrorKind::Internal)
                .operator("a line position of a kind not known here")),
        }
    }

    /// Finds a line from the nearest one known; the sandbox counts, so the file does not travel.
    async fn seek(&self, line: u64) -> Result<LinePosition, ToolError> {
        let known = self.with_index(|index| {
            index.known(self.sandbox.id(), &self.request.source, &self.stat, line)
        });
        if known.before.0 == line {
            return Ok(LinePosition::At {
                offset: known.before.1,
            });
        }
        if let Some(total_lines) = known.total_lines.filter(|total| line > *total) {
            return Ok(LinePosition::PastEnd { total_lines });
        }
        let seek = SeekLine::new(line).from(known.before.0, known.before.1);
        let position = self.sandbox.seek_line(&self.request.source, seek).await;
        let position = position.map_err(|error| explain(error, self.request))?;
        match position {
            LinePosition::At { offset } => self.learn(line, offset),
            LinePosition::PastEnd { total_lines } => self.with_index(|index| {
                index.learn_total(
                    self.sandbox.id(),
                    &self.request.source,
                    &self.stat,
                    total_lines,
                )
            }),
            _ => {}
        }
        Ok(position)
    }

    /// A column must lie within its line: else it would silently show another one.
    async fn check_column(&self, line_start: u64) -> Result<(), ToolError> {
        let line = self.request.offset;
        let line_end = match self.seek(line + 1).await? {
            LinePosition::At { offset } => offset,
            _ => self.stat.size,
        };
        let length = line_end.saturating_sub(line_start);
        if self.request.column < length {
            return Ok(());
        }
        let text = format!(
            "`column` {} is past the end of line {line}, which has {length} bytes",
            self.request.column
        );
        Err(ToolError::invalid_input(text))
    }

    /// Up to `len` bytes; fewer only at the end of the file.
    async fn bytes(&self, offset: u64, len: usize) -> Result<bytes::Bytes, ToolError> {
        let bytes = self
            .sandbox
            .read_range(&self.request.source, ByteRange::new(offset, len))
            .await;
        bytes.map_err(|error| explain(error, self.request))
    }

    fn learn(&self, line: u64, offset: u64) {
        self.with_index(|index| {
            index.learn(
                self.sandbox.id(),
                &self.request.source,
                &self.stat,
                line,
                offset,
            )
        });
    }

    fn with_index<R>(&self, f: impl FnOnce(&mut LineIndex) -> R) -> R {
        // Numbers only: a panic elsewhere cannot leave it inconsistent.
        f(&mut self.index.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn wrong_kind(path: &str, found: FileKind) -> ToolError {
    let way_out = match found {
        FileKind::Directory => "list it with bash: ls",
        _ => "read takes regular files only",
    };
    ToolError::invalid_input(format!("{path:?} is a {found}, not a file; {way_out}"))
}

fn explain(error: SandboxError, request: &Request) -> ToolError {
    match &error {
        SandboxError::WrongKind { found, .. } => wrong_kind(&request.path, *found).with_source(error),
        SandboxError::NotFound { .. } if matches!(request.source, FileSource::Output(..)) => ToolError::new(
            ToolErrorKind::NotFound,
            format!("nothing is spooled at {:?}: only output that bash shows in part, or a background log, is", request.path),
        )
        .with_source(error),
        _ => tool_error(error),
    }
}

#[cfg(test)]
mod tests;
