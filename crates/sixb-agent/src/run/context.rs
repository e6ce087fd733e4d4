//! Keeps the conversation that is sent to a model within its bound. Pure.

use serde_json::json;

use crate::model::Message;

/// Leaves out the oldest tool results until `messages` fit into `limit` bytes; returns how many were left out.
///
/// The task, the model's own text and the results after its last message stay: the model could not go on without them.
/// Each result that is left out becomes a note, so that every call still has its result.
pub(super) fn bound(messages: &mut [Message], limit: usize) -> usize {
    let mut size: usize = messages.iter().map(size_of).sum();
    let last_answer = messages
        .iter()
        .rposition(|message| matches!(message, Message::Assistant { .. }))
        .unwrap_or(0);
    let mut omitted = 0;
    for message in &mut messages[..last_answer] {
        if size <= limit {
            break;
        }
        let before = size_of(message);
        if let Message::Tool(result) = message {
            let note = json!({"omitted": format!("this result of {before} bytes was left out to save room; call the tool again if you need it")});
            if note.to_string().len() < before {
                result.result = Ok(note);
                size -= before - size_of(message).min(before);
                omitted += 1;
            }
        }
    }
    omitted
}

/// Bytes of text and JSON in a message.
fn size_of(message: &Message) -> usize {
    match message {
        Message::User { text } => text.len(),
        Message::Assistant { text, calls } => {
            text.len()
                + calls
                    .iter()
                    .map(|call| call.name.len() + call.arguments.len())
                    .sum::<usize>()
        }
        Message::Tool(result) => result.to_json().to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ToolCall, ToolResult};

    fn conversation() -> Vec<Message> {
        let call = |id: &str| ToolCall::new(id, "bash", "{}");
        let answer = |id: &str| Message::Assistant {
            text: "t".into(),
            calls: vec![call(id)],
        };
        let result = |id: &str| Message::Tool(ToolResult::ok(&call(id), json!("x".repeat(1_000))));
        vec![
            Message::User {
                text: "u".repeat(100),
            },
            answer("a"),
            result("a"),
            answer("b"),
            result("b"),
            answer("c"),
            result("c"),
        ]
    }

    #[test]
    fn the_oldest_results_are_left_out_first_and_the_latest_never() {
        for (limit, expect) in [(10_000, 0), (2_500, 1), (1_500, 2), (0, 2)] {
            let mut messages = conversation();
            assert_eq!(bound(&mut messages, limit), expect, "{limit}");
            let whole: Vec<_> = messages
                .iter()
                .filter(|message| size_of(message) > 1_000)
                .count()
                .to_string()
                .into_bytes();
            assert_eq!(whole, (3 - expect).to_string().into_bytes(), "{limit}");
            assert_eq!(messages.len(), 7, "every call keeps a result");
            assert!(
                matches!(&messages[6], Message::Tool(result) if result.result == Ok(json!("x".repeat(1_000))))
            );
        }
    }
}
