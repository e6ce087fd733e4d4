//! What a run's steps begin with: the conversation before it, the task, and what an interrupted run has done already.

use std::collections::HashSet;

use super::{RunEvent, RunState, calls, feed::Feed};
use crate::{
    model::{ImagePart, Message, Usage},
    transcript::{self, RecordBody, Replay},
};

/// What the model reads when a run goes on.
const RESUMED: &str = "[runtime] This run was interrupted and goes on now. Results above hold. The sandbox is a new one: \
                       files that were not published are gone, and so are running commands.";

/// What came with the task: what the model gets of it, and what is recorded.
#[derive(Debug, Default)]
pub(super) struct Brought {
    pub(super) text: String,
    pub(super) images: Vec<ImagePart>,
    pub(super) records: Vec<RecordBody>,
}

#[derive(Debug)]
pub(super) struct Start {
    pub(super) messages: Vec<Message>,
    /// Where the present turn begins in `messages`.
    pub(super) turn: usize,
    /// The run was interrupted after the model had answered: this is what it said, the last of `messages`.
    pub(super) answered: bool,
    /// Ids of all calls so far.
    pub(super) call_ids: HashSet<String>,
    /// Steps that were begun before.
    pub(super) steps: u32,
    /// Tokens used before.
    pub(super) usage: Usage,
}

impl Start {
    /// Tells and records that the run began, and with which task.
    pub(super) fn new(
        history: Vec<Message>,
        task: String,
        brought: Brought,
        started: RunState,
        feed: &Feed,
    ) -> Self {
        let turn = history.len();
        // At once: a run without a task cannot be resumed.
        let begun = [
            RecordBody::State {
                state: started.clone(),
            },
            RecordBody::User {
                text: task.clone(),
                runtime: false,
            },
        ];
        feed.record_all(begun.into_iter().chain(brought.records));
        feed.try_send(RunEvent::State { state: started });
        let call_ids = ids(&history);
        let mut messages = history;
        messages.push(Message::User {
            text: format!("{task}{}", brought.text),
            images: brought.images,
        });
        Self {
            messages,
            turn,
            answered: false,
            call_ids,
            steps: 0,
            usage: Usage::default(),
        }
    }

    /// Records results for interrupted calls, and then that the run goes on: read again, the transcript gives the same
    /// conversation.
    pub(super) fn resumed(
        history: Vec<Message>,
        mut past: Replay,
        brought: Brought,
        resumed: RunState,
        feed: &Feed,
    ) -> Self {
        for call in &past.interrupted {
            calls::record(past.steps, &transcript::interrupted(call), feed);
        }
        feed.state_now(resumed);
        past.drop_partial_step();
        let answered = answer_stands(&past.messages);
        let on = (!answered).then(|| RecordBody::User {
            text: RESUMED.to_owned(),
            runtime: true,
        });
        feed.record_all(on.into_iter().chain(brought.records));
        let turn = history.len();
        let mut call_ids = ids(&history);
        call_ids.extend(past.call_ids);
        // The files that came with the task are shown as they were.
        if let Some(Message::User { text, images }) = past.messages.first_mut() {
            text.push_str(&brought.text);
            *images = brought.images;
        }
        let mut messages = history;
        messages.extend(past.messages);
        if !answered {
            messages.push(Message::user(RESUMED));
        }
        Self {
            messages,
            turn,
            answered,
            call_ids,
            steps: past.steps,
            usage: past.usage,
        }
    }
}

/// Whether the model had said all it wanted: its last step is whole and calls nothing. Where commands ran in the sandbox it is
/// asked once more all the same, since outputs that were not collected yet are gone with it.
fn answer_stands(messages: &[Message]) -> bool {
    let ran_commands = messages.iter().any(|message| match message {
        Message::Assistant { calls, .. } => calls.iter().any(|call| call.name == "bash"),
        _ => false,
    });
    let last = messages.last();
    !ran_commands && matches!(last, Some(Message::Assistant { calls, .. }) if calls.is_empty())
}

fn ids(messages: &[Message]) -> HashSet<String> {
    let calls = messages.iter().filter_map(|message| match message {
        Message::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    calls.flatten().map(|call| call.id.clone()).collect()
}
