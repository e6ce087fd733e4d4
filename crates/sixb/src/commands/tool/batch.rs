//! `sixb tool --batch`: JSON lines in, one answer line each, all in one sandbox.

use std::collections::HashSet;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use sixb_tools::ToolError;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};

use super::Calls;
use crate::{failure::Exit, stdout};

/// Longest line, in bytes.
const MAX_LINE: usize = 8 << 20;

/// One line of the input.
#[derive(Debug, PartialEq)]
struct Call {
    id: Option<String>,
    tool: String,
    input: Value,
}

impl Call {
    /// What is wrong with a line is told in the words of its form.
    fn read(line: Value) -> Result<Self, String> {
        let Value::Object(mut line) = line else {
            return Err("is no JSON object".into());
        };
        let id = match line.remove("id") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id),
            Some(other) => {
                return Err(format!(
                    "has the id {other}, which is no string; write \"id\": {:?}",
                    other.to_string()
                ));
            }
        };
        let tool = match line.remove("tool") {
            Some(Value::String(tool)) => tool,
            Some(other) => return Err(format!("has the tool {other}, which is no string")),
            None => return Err("names no tool".into()),
        };
        let input = line.remove("input").unwrap_or_else(|| Map::new().into());
        match line.keys().next() {
            Some(key) => Err(format!(
                "has the unknown key {key:?}; the keys are id, tool and input"
            )),
            None => Ok(Self { id, tool, input }),
        }
    }
}

/// What some editors and shells put before the first line of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Answers line after line. Blank lines are no calls.
pub(super) async fn run(calls: &Calls) -> Result<Exit> {
    // Without a sandbox every line would get the same answer: one message says more.
    tokio::select! {
        sandbox = calls.sandbox.get() => { sandbox.with_context(|| calls.starting.clone())?; }
        () = calls.cancel.cancelled() => return Ok(Exit::CANCELLED),
    }
    let mut input = BufReader::new(tokio::io::stdin());
    let mut ids = Ids::default();
    for number in 1.. {
        let line = tokio::select! {
            line = read_line(&mut input, MAX_LINE) => line.context("reading the lines of stdin")?,
            () = calls.cancel.cancelled() => return Ok(Exit::CANCELLED),
        };
        let (id, result) = match line {
            Line::End => break,
            Line::Blank => continue,
            Line::TooLong => (
                None,
                Err(invalid(
                    number,
                    format!("is longer than {MAX_LINE} bytes; send long material in pieces"),
                )),
            ),
            Line::Text(line) => {
                let line = match number {
                    1 => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line),
                    _ => &line,
                };
                answer(calls, &mut ids, number, line).await
            }
        };
        let mut answer = Map::new();
        if let Some(id) = id {
            answer.insert("id".into(), id);
        }
        match result {
            Ok(result) => {
                answer.insert("result".into(), result);
            }
            Err(error) => answer.extend(error.to_json().as_object().cloned().unwrap_or_default()),
        }
        stdout::json(&answer)?;
    }
    Ok(if calls.cancel.is_cancelled() {
        Exit::CANCELLED
    } else {
        Exit::OK
    })
}

/// The id to answer with, as the line has it where it has one, and the answer.
async fn answer(
    calls: &Calls,
    ids: &mut Ids,
    number: usize,
    line: &[u8],
) -> (Option<Value>, Result<Value, ToolError>) {
    let line: Value = match serde_json::from_slice(line) {
        Ok(line) => line,
        Err(error) => {
            let text = format!("is no JSON: {}; write {}", problem(&error), form());
            return (None, Err(invalid(number, text)));
        }
    };
    let id = line.get("id").filter(|id| !id.is_null()).cloned();
    let call = match Call::read(line) {
        Ok(call) => call,
        Err(problem) => {
            let text = format!("{problem}; write {}", form());
            return (id, Err(invalid(number, text)));
        }
    };
    let id = match call.id {
        None => ids.generate(number),
        Some(id) if id.is_empty() => {
            return (
                Some(id.into()),
                Err(invalid(number, "has an empty id; give one or leave it out")),
            );
        }
        Some(id) if !ids.take(&id) => {
            let error = invalid(
                number,
                format!("repeats the id {id:?} of an earlier line; give each line its own"),
            );
            return (Some(id.into()), Err(error));
        }
        Some(id) => id,
    };
    let result = calls
        .registry
        .call(&call.tool, calls.context(&id), call.input)
        .await;
    (Some(id.into()), result.map(|output| output.to_json()))
}

/// serde says `at line 1 column 7`, but the line is the one of our own message.
fn problem(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
}

fn form() -> Value {
    json!({"id": "a", "tool": "bash", "input": {"command": "ls"}})
}

fn invalid(number: usize, problem: impl AsRef<str>) -> ToolError {
    ToolError::invalid_input(format!("line {number} {}", problem.as_ref()))
}

/// The ids of this batch: they name spool files, so each may be used once.
#[derive(Default)]
struct Ids(HashSet<String>);

impl Ids {
    fn take(&mut self, id: &str) -> bool {
        self.0.insert(id.to_owned())
    }

    fn generate(&mut self, number: usize) -> String {
        let mut id = format!("line_{number}");
        while !self.take(&id) {
            id.push('_');
        }
        id
    }
}

#[derive(Debug, PartialEq)]
enum Line {
    Text(Vec<u8>),
    Blank,
    TooLong,
    End,
}

/// Reads a line without holding more than `max` bytes of it.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin), max: usize) -> std::io::Result<Line> {
    let mut line = Vec::new();
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() && line.is_empty() {
            return Ok(Line::End);
        }
        let newline = available.iter().position(|byte| *byte == b'\n');
        let piece = &available[..newline.unwrap_or(available.len())];
        // One byte more than fits tells that it did not.
        line.extend_from_slice(&piece[..piece.len().min(max + 1 - line.len())]);
        let used = newline.map_or(available.len(), |at| at + 1);
        input.consume(used);
        if newline.is_some() || used == 0 {
            break;
        }
    }
    Ok(match line {
        line if line.len() > max => Line::TooLong,
        line if line.trim_ascii().is_empty() => Line::Blank,
        line => Line::Text(line),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded_and_the_last_one_may_lack_its_end() {
        let text = b"one\n\n  \r\ntoo long a line\n12345\nlast";
        for buffer in [1, 3, 64] {
            let mut input = BufReader::with_capacity(buffer, &text[..]);
            let mut lines = Vec::new();
            loop {
                match read_line(&mut input, 5).await.expect("line") {
                    Line::End => break,
                    line => lines.push(line),
                }
            }
            let text = |text: &str| Line::Text(text.into());
            assert_eq!(
                lines,
                [
                    text("one"),
                    Line::Blank,
                    Line::Blank,
                    Line::TooLong,
                    text("12345"),
                    text("last")
                ]
            );
        }
    }

    #[test]
    fn a_generated_id_avoids_those_given() {
        let mut ids = Ids::default();
        assert!(ids.take("line_2"));
        assert_eq!(ids.generate(2), "line_2_");
        assert!(!ids.take("line_2"));
    }
}
