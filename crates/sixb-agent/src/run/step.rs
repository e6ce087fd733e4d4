//! One request to the model: reads its stream within bounds and keeps what came when it is cut.

use std::collections::HashSet;

use futures::StreamExt;

use super::{
    Diagnostic, RunEvent,
    feed::Feed,
    stop::{Stop, StopReason},
};
use crate::model::{FinishReason, Model, ModelError, ModelEvent, ModelRequest, ToolCall, Usage};

/// Text of one step, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// Names and arguments of one step's calls, in bytes.
const MAX_CALLS: usize = 4 << 20;

/// What came of a request; partial unless `end` says it is whole.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) usage: Usage,
    pub(super) end: TurnEnd,
}

#[derive(Debug)]
pub(super) enum TurnEnd {
    Whole(FinishReason),
    Stopped(StopReason),
    Failed(ModelError),
}

pub(super) async fn ask(
    model: &dyn Model,
    request: ModelRequest,
    step: u32,
    stop: &Stop,
    feed: &Feed,
) -> Turn {
    let mut turn = Turn {
        text: String::new(),
        calls: Vec::new(),
        usage: Usage::default(),
        end: TurnEnd::Failed(ModelError::Malformed {
            detail: "the stream ended before the step did".to_owned(),
        }),
    };
    let cancel = stop.cancel.child_token();
    // Dropping it on return drops the connection, also when only the time is over.
    let _connection = cancel.clone().drop_guard();
    let mut stream = model.stream(request, cancel);
    let mut call_bytes = 0;
    loop {
        let next = tokio::select! {
            biased;
            reason = stop.fired() => {
                turn.end = TurnEnd::Stopped(reason);
                return turn;
            }
            next = stream.next() => next,
        };
        match next {
            None => return turn,
            Some(Err(error)) => {
                turn.end = match stop.reason() {
                    Some(reason) => TurnEnd::Stopped(reason),
                    None => TurnEnd::Failed(error),
                };
                return turn;
            }
            Some(Ok(ModelEvent::TextDelta(delta))) => {
                if turn.text.len() + delta.len() > MAX_TEXT {
                    turn.end = TurnEnd::Failed(ModelError::TooLong {
                        what: "text",
                        limit: MAX_TEXT,
                    });
                    return turn;
                }
                turn.text.push_str(&delta);
                feed.send(RunEvent::TextDelta { step, text: delta }).await;
            }
            Some(Ok(ModelEvent::ToolCall(call))) => {
                call_bytes += call.name.len() + call.arguments.len() + call.id.len();
                if call_bytes > MAX_CALLS {
                    turn.end = TurnEnd::Failed(ModelError::TooLong {
                        what: "tool calls",
                        limit: MAX_CALLS,
                    });
                    return turn;
                }
                turn.calls.push(call);
            }
            Some(Ok(ModelEvent::Usage(usage))) => turn.usage.add(usage),
            Some(Ok(ModelEvent::Retry {
                attempt,
                wait,
                reason,
            })) => {
                let text = format!(
                    "step {step}: {reason}; attempt {attempt} follows in {} ms",
                    wait.as_millis()
                );
                feed.diagnostic(Diagnostic::warning("model", "model_retry", text))
                    .await;
            }
            Some(Ok(ModelEvent::Finished { reason })) => {
                turn.end = TurnEnd::Whole(reason);
                return turn;
            }
        }
    }
}

/// Gives every call an id of its own in the run: transcripts, spools and results go by it. Returns the ids that changed.
pub(super) fn unique_ids(
    calls: &mut [ToolCall],
    taken: &mut HashSet<String>,
) -> Vec<(String, String)> {
    let mut changed = Vec::new();
    for call in calls {
        let wanted = if call.id.trim().is_empty() {
            "call".to_owned()
        } else {
            call.id.clone()
        };
        let mut id = wanted.clone();
        let mut n = 2;
        while !taken.insert(id.clone()) {
            id = format!("{wanted}_{n}");
            n += 1;
        }
        if id != call.id {
            changed.push((std::mem::replace(&mut call.id, id.clone()), id));
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_become_unique_in_the_run() {
        let mut taken = HashSet::from(["old".to_owned()]);
        let mut calls: Vec<_> = ["a", "a", "", "old", "a_2", " "]
            .map(|id| ToolCall::new(id, "bash", "{}"))
            .into();
        let changed = unique_ids(&mut calls, &mut taken);
        let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["a", "a_2", "call", "old_2", "a_2_2", "call_2"]);
        assert_eq!(changed.len(), 5);
    }
}
