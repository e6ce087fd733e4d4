//! Keeps the conversation that is sent to a model within its bound. Pure.

use serde_json::json;

use crate::model::Message;

/// What was left out of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Results of tools, each replaced by a note.
    pub(super) results: usize,
    /// Messages of earlier turns.
    pub(super) messages: usize,
}

/// Leaves out the oldest tool results until `messages` fit into `limit` bytes, and then earlier turns, which are the
/// messages before `turn`.
///
/// The task, the model's own text since then and the results after its last message stay: the model could not go on
/// without them. Each result that is left out becomes a note, so that every call still has its result.
pub(super) fn bound(messages: &mut Vec<Message>, turn: usize, limit: usize) -> LeftOut {
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
                (result.result, result.shown) = (Ok(note), None);
                size -= before - size_of(message).min(before);
                omitted += 1;
            }
        }
    }
    // Whole turns: a result without its call is an error for a provider.
    let mut gone = 0;
    while size > limit && gone < turn {
        let said_next = messages[gone + 1..turn]
            .iter()
            .position(|message| matches!(message, Message::User { .. }));
        let next = said_next.map_or(turn, |at| gone + 1 + at);
        size -= messages[gone..next].iter().map(size_of).sum::<usize>();
        gone = next;
    }
    messages.drain(..gone);
    LeftOut {
        results: omitted,
        messages: gone,
    }
}

/// Bytes of text and JSON in a message. Images have a budget of their own.
fn size_of(message: &Message) -> usize {
    match message {
        Message::User { text, .. } => text.len(),
        Message::Assistant { text, calls } => {
            text.len()
                + calls
                    .iter()
                    .map(|call| call.name.len() + call.arguments.len())
                    .sum::<usize>()
        }
        Message::Tool(result) => result.model_text().len(),
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
            Message::user("u".repeat(100)),
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
            assert_eq!(
                bound(&mut messages, 0, limit),
                LeftOut {
                    results: expect,
                    messages: 0
                },
                "{limit}"
            );
            let whole: Vec<_> = messages
                .iter()
                .filter(|message| size_of(message) >= 1_000)
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

    #[test]
    fn earlier_turns_go_whole_and_the_present_one_never() {
        for (limit, messages) in [(10_000, 0), (120, 7), (0, 9)] {
            let mut said = conversation();
            said.extend([Message::user("short"), Message::user("short")]);
            let turn = said.len();
            said.push(Message::user("now"));
            let left = bound(&mut said, turn, limit);
            assert_eq!(left.messages, messages, "{limit}");
            assert_eq!(said.last(), Some(&Message::user("now")));
            assert!(matches!(said[0], Message::User { .. }));
        }
    }
}
