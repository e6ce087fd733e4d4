//! The chunks of a streamed chat completion, and how they add up to a step. Pure.
//!
//! The types are our own and read only what is needed, because servers that call themselves compatible differ in the
//! rest: fields that are missing, `null` where a list belongs, finish reasons that nobody has documented.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::failure::Failure;
use crate::model::{FinishReason, ModelEvent, ToolCall, Usage};

/// Names and arguments of one step's calls, in bytes.
const MAX_CALLS: usize = 4 << 20;
/// Calls of one step.
const MAX_CALL_COUNT: usize = 256;

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default, deserialize_with = "or_default")]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    /// `message` is what a server sends that does not stream.
    #[serde(default, alias = "message", deserialize_with = "or_default")]
    delta: Delta,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Delta {
    /// Text, or a list of parts.
    #[serde(default)]
    content: Value,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    tool_calls: Vec<CallPiece>,
}

#[derive(Debug, Deserialize)]
struct CallPiece {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    function: FunctionPiece,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionPiece {
    #[serde(default)]
    name: Option<String>,
    /// Text in pieces; some servers send an object.
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens: u64,
    #[serde(default, deserialize_with = "or_default")]
    completion_tokens: u64,
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A call whose pieces still come.
#[derive(Debug, Default)]
struct Open {
    id: String,
    name: String,
    arguments: String,
}

impl Open {
    /// Whether its arguments are complete.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }
}

/// Text as a string, or as a list of parts of which some are text; thoughts are not the answer.
fn text_of(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(parts) => parts
            .iter()
            .filter(|part| part["type"] == "text")
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

/// What came of a stream so far.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// By place; the order of the keys is the order of the calls.
    calls: BTreeMap<u64, Open>,
    /// Where the pieces of an index belong, if not to its own place.
    moved: BTreeMap<u64, u64>,
    bytes: usize,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    done: bool,
    begun: bool,
}

impl Step {
    /// Whether the model has begun to answer: from then on the request is not made again.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Whether the server said that nothing follows.
    pub(super) fn done(&self) -> bool {
        self.done
    }

    /// Takes the data of one event; returns the text in it.
    pub(super) fn take(&mut self, data: &[u8]) -> Result<Option<String>, Failure> {
        if data.trim_ascii() == b"[DONE]" {
            self.done = true;
            return Ok(None);
        }
        let chunk: Value = serde_json::from_slice(data).map_err(|error| {
            Failure::malformed(format!(
                "a chunk of {} bytes is no JSON: {error}",
                data.len()
            ))
        })?;
        // By way of a `Value`, because numbers may have arbitrary precision (a feature of serde_json).
        let chunk: Chunk = serde_json::from_value(chunk).map_err(|error| {
            Failure::malformed(format!(
                "a chunk of {} bytes is no completion: {error}",
                data.len()
            ))
        })?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Failure::told(&error, None));
        }
        if let Some(usage) = chunk.usage {
            // Some servers send it with each chunk, counted from the start: the last one holds.
            self.usage = Some(Usage::new(usage.prompt_tokens, usage.completion_tokens));
        }
        // Only one choice is asked for.
        let Some(choice) = chunk.choices.into_iter().next() else {
            return Ok(None);
        };
        if let Some(reason) = choice.finish_reason {
            self.finish = Some(finish_reason(&reason));
        }
        for piece in choice.delta.tool_calls {
            self.piece(piece)?;
        }
        let mut text = text_of(choice.delta.content);
        text.push_str(&choice.delta.refusal.unwrap_or_default());
        self.begun |= !text.is_empty();
        Ok((!text.is_empty()).then_some(text))
    }

    fn piece(&mut self, piece: CallPiece) -> Result<(), Failure> {
        self.begun = true;
        let id = piece.id.clone().unwrap_or_default();
        let name = piece.function.name.clone().unwrap_or_default();
        let place = self.place(&piece, &id, &name);
        if place >= MAX_CALL_COUNT as u64 || self.calls.len() > MAX_CALL_COUNT {
            return Err(Failure::malformed(format!(
                "more than {MAX_CALL_COUNT} tool calls in one step"
            )));
        }
        let arguments = match piece.function.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
        };
        self.bytes += id.len() + name.len() + arguments.len();
        if self.bytes > MAX_CALLS {
            return Err(Failure::too_long("tool calls", MAX_CALLS));
        }
        let open = self.calls.entry(place).or_default();
        // Some servers repeat id and name in each piece.
        if open.id.is_empty() {
            open.id = id;
        }
        if open.name.is_empty() {
            open.name = name;
        }
        open.arguments.push_str(&arguments);
        Ok(())
    }

    /// Where a piece belongs. By its index, unless its id or name says that a new call begins: there are servers that give
    /// every call the same index, or none, and servers that give no ids.
    fn place(&mut self, piece: &CallPiece, id: &str, name: &str) -> u64 {
        let last = self.calls.last_key_value().map(|(place, _)| *place);
        let new = last.map_or(0, |place| place + 1);
        let same_id = |(_, open): &(&u64, &Open)| !id.is_empty() && open.id == id;
        if let Some((place, _)) = self.calls.iter().find(same_id) {
            return *place;
        }
        let place = match piece.index {
            Some(index) => *self.moved.get(&index).unwrap_or(&index),
            None => last.unwrap_or(0),
        };
        let begins = self
            .calls
            .get(&place)
            .is_some_and(|open| match id.is_empty() {
                false => !open.id.is_empty(),
                true => !name.is_empty() && open.is_whole(),
            });
        if !begins {
            return place;
        }
        if let Some(index) = piece.index {
            self.moved.insert(index, new);
        }
        new
    }

    /// The end of the stream: calls, usage and the reason.
    pub(super) fn end(self) -> Result<Vec<ModelEvent>, Failure> {
        if self.finish.is_none() && !(self.done && self.begun) {
            return Err(Failure::cut(match self.begun {
                true => "the connection ended in the middle of the answer",
                false => "the connection ended before an answer began",
            }));
        }
        let reason = match self.finish {
            Some(FinishReason::Stop) | None if !self.calls.is_empty() => FinishReason::ToolCalls,
            Some(reason) => reason,
            None => FinishReason::Stop,
        };
        let mut events = Vec::with_capacity(self.calls.len() + 2);
        for open in self.calls.into_values() {
            events.push(ModelEvent::ToolCall(ToolCall::new(
                open.id,
                open.name,
                open.arguments,
            )));
        }
        events.extend(self.usage.map(ModelEvent::Usage));
        events.push(ModelEvent::Finished { reason });
        Ok(events)
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "length" | "max_tokens" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        // `stop`, and what a server made up.
        _ => FinishReason::Stop,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Plays chunks; the text, and the events of the end or its error.
    fn play(chunks: &[Value]) -> (String, Result<Vec<ModelEvent>, String>) {
        let mut step = Step::default();
        let mut text = String::new();
        for chunk in chunks {
            let data = match chunk {
                Value::String(raw) => raw.clone(),
                chunk => chunk.to_string(),
            };
            match step.take(data.as_bytes()) {
                Ok(delta) => text.extend(delta),
                Err(failure) => return (text, Err(failure.error.to_string())),
            }
        }
        (
            text,
            step.end().map_err(|failure| failure.error.to_string()),
        )
    }

    fn delta(delta: Value) -> Value {
        json!({"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    fn finish(reason: &str) -> Value {
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    }

    fn calls(events: Result<Vec<ModelEvent>, String>) -> Vec<(String, String, String)> {
        let events = events.expect("whole").into_iter();
        events
            .filter_map(|event| match event {
                ModelEvent::ToolCall(call) => Some((call.id, call.name, call.arguments)),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn text_usage_and_reason() {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": null}});
        let (text, events) = play(&[
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"content": "Hel"})),
            delta(json!({"content": "lo", "tool_calls": null})),
            finish("stop"),
            usage,
            json!("[DONE]"),
        ]);
        assert_eq!(text, "Hello");
        let expect = vec![
            ModelEvent::Usage(Usage::new(7, 2)),
            ModelEvent::Finished {
                reason: FinishReason::Stop,
            },
        ];
        assert_eq!(events, Ok(expect));
    }

    #[test]
    fn calls_in_pieces_as_servers_send_them() {
        let piece = |piece: Value| delta(json!({"tool_calls": [piece]}));
        let call =
            |id: &str, arguments: &str| (id.to_owned(), "bash".to_owned(), arguments.to_owned());
        let expect = [call("a", "{\"x\":1}"), call("b", "{}")];
        let table: &[(&str, &[Value])] = &[
            (
                "OpenAI: id and name once, pieces interleaved",
                &[
                    piece(
                        json!({"index": 0, "id": "a", "type": "function", "function": {"name": "bash", "arguments": ""}}),
                    ),
                    piece(
                        json!({"index": 1, "id": "b", "function": {"name": "bash", "arguments": "{"}}),
                    ),
                    piece(json!({"index": 0, "function": {"arguments": "{\"x\""}})),
                    piece(json!({"index": 0, "function": {"arguments": ":1}"}})),
                    piece(json!({"index": 1, "function": {"arguments": "}"}})),
                ],
            ),
            (
                "id and name in each piece",
                &[
                    piece(
                        json!({"index": 0, "id": "a", "function": {"name": "bash", "arguments": "{\"x\""}}),
                    ),
                    piece(
                        json!({"index": 0, "id": "a", "function": {"name": "bash", "arguments": ":1}"}}),
                    ),
                    piece(
                        json!({"index": 1, "id": "b", "function": {"name": "bash", "arguments": "{}"}}),
                    ),
                ],
            ),
            (
                "whole calls, all with index 0",
                &[
                    piece(
                        json!({"index": 0, "id": "a", "function": {"name": "bash", "arguments": "{\"x\":1}"}}),
                    ),
                    piece(
                        json!({"index": 0, "id": "b", "function": {"name": "bash", "arguments": "{}"}}),
                    ),
                ],
            ),
            (
                "all with index 0, in pieces",
                &[
                    piece(
                        json!({"index": 0, "id": "a", "function": {"name": "bash", "arguments": ""}}),
                    ),
                    piece(json!({"index": 0, "function": {"arguments": "{\"x\":1}"}})),
                    piece(
                        json!({"index": 0, "id": "b", "function": {"name": "bash", "arguments": "{"}}),
                    ),
                    piece(json!({"index": 0, "function": {"arguments": "}"}})),
                ],
            ),
            (
                "no index, arguments as an object",
                &[
                    piece(json!({"id": "a", "function": {"name": "bash", "arguments": {"x": 1}}})),
                    piece(json!({"id": "b", "function": {"name": "bash"}})),
                    piece(json!({"function": {"arguments": "{}"}})),
                ],
            ),
        ];
        for (name, chunks) in table {
            for last in ["tool_calls", "stop"] {
                let mut chunks = chunks.to_vec();
                chunks.push(finish(last));
                let (_, events) = play(&chunks);
                let reason = events.clone().expect(name).pop();
                assert_eq!(calls(events), expect, "{name}");
                assert_eq!(
                    reason,
                    Some(ModelEvent::Finished {
                        reason: FinishReason::ToolCalls
                    }),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn calls_without_ids_are_told_apart_and_parts_are_text() {
        let call = |arguments: &str| {
            delta(
                json!({"tool_calls": [{"index": 0, "id": "", "function": {"name": "bash", "arguments": arguments}}]}),
            )
        };
        let parts = json!({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hi"}]});
        let (text, events) = play(&[
            delta(parts),
            call("{\"x\""),
            call(":1}"),
            call("{}"),
            finish("stop"),
        ]);
        let arguments: Vec<_> = calls(events)
            .into_iter()
            .map(|(.., arguments)| arguments)
            .collect();
        assert_eq!(
            (text.as_str(), &arguments[..]),
            ("Hi", &["{\"x\":1}".to_owned(), "{}".to_owned()][..])
        );
    }

    #[test]
    fn a_completion_that_is_not_streamed_counts_too() {
        let whole = json!({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "length"}],
                           "usage": {"prompt_tokens": 1, "completion_tokens": null}});
        let (text, events) = play(&[whole]);
        assert_eq!(text, "hi");
        assert_eq!(
            events.expect("whole").pop(),
            Some(ModelEvent::Finished {
                reason: FinishReason::Length
            })
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (chunks, expect) in [
            (vec![], "ended before an answer began"),
            (
                vec![delta(json!({"content": "Hel"}))],
                "ended in the middle of the answer",
            ),
            (vec![json!("[DONE]")], "ended before an answer began"),
            (
                vec![json!("{\"choices\": [")],
                "a chunk of 13 bytes is no JSON",
            ),
            (vec![json!({"choices": 7})], "is no completion"),
            (
                vec![json!({"error": {"message": "Overloaded", "type": "overloaded_error"}})],
                "Overloaded",
            ),
            (
                vec![delta(
                    json!({"tool_calls": [{"index": 999_999, "id": "a"}]}),
                )],
                "more than 256 tool calls",
            ),
        ] {
            let (_, events) = play(&chunks);
            let error = events.expect_err(expect);
            assert!(error.contains(expect), "{error}");
        }
    }

    #[test]
    fn arguments_are_bounded() {
        let mut step = Step::default();
        let piece = delta(
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "x".repeat(1 << 20)}}]}),
        )
        .to_string();
        let failed = (0..5).find_map(|_| step.take(piece.as_bytes()).err());
        assert!(
            failed
                .expect("bounded")
                .error
                .to_string()
                .contains("tool calls")
        );
    }
}
