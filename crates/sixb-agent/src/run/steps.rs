//! The step loop: model, tool calls, model, …, until the model has said all it wanted or something ends the run.

use std::{any::Any, collections::HashSet};

use futures::FutureExt;
use serde_json::Value;
use sixb_tools::ToolErrorKind;
use tracing::Instrument;

use super::{
    CallStatus, Diagnostic, FailureKind, RunEvent, RunState, RunStatus, calls,
    context::{self, LeftOut},
    engine::{Engine, millis},
    step::{self, Turn, TurnEnd},
    stop::StopReason,
};
use crate::{
    model::{FinishReason, Message, ModelRequest, ToolCall, ToolResult, Usage},
    prompt::{self, PromptParts},
    telemetry,
    transcript::RecordBody,
};

/// What the model said and used in all steps.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// The answer, or the last text there is.
    pub(super) text: String,
    /// The answer, where it has to fit a schema.
    pub(super) output: Option<Value>,
    /// Steps that were begun.
    pub(super) steps: u32,
    pub(super) usage: Usage,
}

/// The conversation of one run.
struct Steps<'a> {
    run: &'a Engine,
    messages: Vec<Message>,
    /// Ids of all calls so far.
    call_ids: HashSet<String>,
    /// Images that tools made in the last step: for the next request only.
    seen: Option<Message>,
    /// The reader knows already that old results are left out.
    trimmed: bool,
    said: Said,
}

pub(super) async fn run(engine: &Engine) -> (RunStatus, Said) {
    let start = &engine.start;
    let mut messages = start.messages.clone();
    let seen = engine.lent.files.recall(&mut messages).await;
    let mut steps = Steps {
        run: engine,
        messages,
        seen,
        call_ids: start.call_ids.clone(),
        trimmed: false,
        said: Said {
            steps: start.steps,
            usage: start.usage,
            ..Said::default()
        },
    };
    let status = steps.go_on().await;
    (status, steps.said)
}

/// What is left when the loop or its model panicked.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> (RunStatus, Said) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let reason = format!(
        "the model or the run loop panicked: {}",
        text.unwrap_or("(no text)")
    );
    (failed(FailureKind::Internal, reason), Said::default())
}

impl Steps<'_> {
    async fn go_on(&mut self) -> RunStatus {
        let run = self.run;
        let agent = &run.agent;
        let system = prompt::system_prompt(&PromptParts {
            agent_name: &agent.name,
            instructions: &agent.instructions,
            has_sandbox_tools: agent.tools.get("bash").is_some(),
            has_outputs: self.run.has_outputs,
            max_steps: agent.max_steps,
            kind: run.kind,
            follows: run.start.turn > 0,
            output_schema: run.output.as_ref().map(|output| &output.schema),
        });
        if run.start.answered
            && let Some(Message::Assistant { text, .. }) = self.messages.pop()
            && let Some(status) = self.answered(text, FinishReason::Stop, false).await
        {
            return status;
        }
        let first = run.start.steps.saturating_add(1);
        let most = run.start.steps.saturating_add(agent.max_steps);
        for step in first..=most {
            if let Some(reason) = self.run.stop.reason() {
                return self.cut(reason, format!("before step {step}"));
            }
            self.said.steps = step;
            let last = step == most;
            self.run
                .feed
                .state(RunState::Step { step, max: most })
                .await;
            let request = self.request(&system, last).await;
            let mut turn = self.ask(request, step).await;
            self.take_in(step, &mut turn).await;
            let Turn {
                text, calls, end, ..
            } = turn;
            match end {
                TurnEnd::Whole(reason) if calls.is_empty() => {
                    match self.answered(text, reason, last).await {
                        Some(status) => return status,
                        None => continue,
                    }
                }
                TurnEnd::Whole(_) if last => return self.over_the_limit(step, &calls).await,
                TurnEnd::Whole(_) => {}
                TurnEnd::Stopped(reason) => {
                    let results = calls::skip(step, &calls, &self.run.feed, |call| {
                        calls::cut(call, reason)
                    })
                    .await;
                    return self.cut(reason, cut_in_step(step, &text, &results));
                }
                TurnEnd::Failed(error) => {
                    let why = "The model failed before this call could run.";
                    let skipped =
                        |call: &ToolCall| ToolResult::failed(call, ToolErrorKind::Cancelled, why);
                    calls::skip(step, &calls, &self.run.feed, skipped).await;
                    return failed(FailureKind::Model, format!("step {step}: {error}"));
                }
            }
            let mut results =
                calls::run(&self.run.lent, step, &calls, &self.run.stop, &self.run.feed).await;
            tokio::select! {
                biased;
                // The run ends below.
                _ = self.run.stop.fired() => {}
                seen = self.run.lent.files.show(&mut results, &self.messages) => self.seen = seen,
            }
            let because = self
                .run
                .stop
                .reason()
                .map(|reason| (reason, cut_in_step(step, "", &results)));
            self.messages.push(Message::Assistant { text, calls });
            self.messages.extend(results.into_iter().map(Message::Tool));
            if let Some((reason, what)) = because {
                return self.cut(reason, what);
            }
            if let Some(cause) = self.boot_failure() {
                return failed(
                    FailureKind::Sandbox,
                    format!("step {step} needed the sandbox, which could not boot: {cause}"),
                );
            }
        }
        failed(
            FailureKind::Internal,
            "the last step did not end the run".to_owned(),
        )
    }

    async fn ask(&self, request: ModelRequest, step: u32) -> Turn {
        let span = telemetry::chat_span(&self.run.model, step);
        #[cfg(feature = "openai")]
        if let Some(requests) = &self.run.requests {
            requests.write(self.run.agent.model.clone(), &request).await;
        }
        let (model, stop, feed) = (&*self.run.agent.model, &self.run.stop, &self.run.feed);
        let asked = step::ask(model, request, step, stop, feed).instrument(span.clone());
        let turn = asked.await;
        telemetry::used(&span, turn.usage);
        match &turn.end {
            TurnEnd::Whole(reason) => telemetry::finished(&span, *reason),
            TurnEnd::Stopped(StopReason::Cancelled) => telemetry::failed_in(&span, "cancelled"),
            TurnEnd::Stopped(StopReason::TimedOut) => telemetry::failed_in(&span, "timeout"),
            TurnEnd::Failed(error) => telemetry::failed_in(&span, telemetry::model_error(error)),
        }
        turn
    }

    /// An answer without calls: the end of the run, unless it does not fit the schema and a step is left to correct it.
    async fn answered(
        &mut self,
        text: String,
        reason: FinishReason,
        last: bool,
    ) -> Option<RunStatus> {
        self.said.text.clone_from(&text);
        let problem = match &self.run.output {
            None => return Some(self.completed(reason).await),
            Some(output) => match output.read(&text) {
                Ok(value) => {
                    self.said.output = Some(value);
                    return Some(self.completed(reason).await);
                }
                Err(problem) => problem,
            },
        };
        if last {
            let reason =
                format!("the answer of the last step does not fit the output schema: {problem}");
            return Some(failed(FailureKind::Output, reason));
        }
        let note = format!(
            "[runtime] Your answer does not fit the output schema: {problem}. Give the corrected JSON value and no other text."
        );
        self.run.feed.record(RecordBody::User {
            text: note.clone(),
            runtime: true,
        });
        self.messages.push(Message::Assistant {
            text,
            calls: Vec::new(),
        });
        self.messages.push(Message::user(note));
        None
    }

    async fn request(&mut self, system: &str, last: bool) -> ModelRequest {
        let mut messages = self.messages.clone();
        let limit = self.run.agent.max_context;
        let left_out = context::bound(&mut messages, self.run.start.turn, limit);
        if left_out != LeftOut::default() && !std::mem::replace(&mut self.trimmed, true) {
            let what = match left_out.messages {
                0 => "the oldest tool results are",
                _ => "the oldest tool results and the earliest turns are",
            };
            let text = format!(
                "the conversation is over {limit} bytes: {what} left out of what the model reads"
            );
            self.run
                .feed
                .diagnostic(Diagnostic::warning("context", "context_trimmed", text))
                .await;
        }
        messages.extend(self.seen.take());
        if last {
            let text = "This is the last step: tools are not available any more. Finish now with what you have.";
            messages.push(Message::user(text));
        }
        ModelRequest::new(system, messages)
            .tools(self.run.agent.specs.clone())
            .last_step(last)
    }

    /// Keeps what the model said in a step, whole or not.
    async fn take_in(&mut self, step: u32, turn: &mut Turn) {
        for (old, new) in step::unique_ids(&mut turn.calls, &mut self.call_ids) {
            let text = format!(
                "step {step}: the call id {old:?} is blank or taken; the call goes by {new:?}"
            );
            self.run
                .feed
                .diagnostic(Diagnostic::warning("model", "call_id_changed", text))
                .await;
        }
        let partial = !matches!(turn.end, TurnEnd::Whole(_));
        if !partial || !turn.text.is_empty() || !turn.calls.is_empty() {
            let said = RecordBody::Assistant {
                step,
                text: turn.text.clone(),
                partial,
                calls: u32::try_from(turn.calls.len()).unwrap_or(u32::MAX),
                scripted: self.run.model.scripted,
            };
            // At once, and before the first of them begins: a call that had an effect is always known.
            let calls = turn.calls.iter().map(|call| RecordBody::ToolCall {
                step,
                call_id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments_json(),
            });
            self.run.feed.record_all(std::iter::once(said).chain(calls));
        }
        if !turn.text.is_empty() {
            self.said.text.clone_from(&turn.text);
        }
        if turn.usage != Usage::default() {
            self.said.usage.add(turn.usage);
            self.run.feed.record(RecordBody::Usage {
                step,
                usage: turn.usage,
            });
            self.run
                .feed
                .send(RunEvent::Usage {
                    step,
                    usage: turn.usage,
                })
                .await;
        }
    }

    async fn completed(&mut self, reason: FinishReason) -> RunStatus {
        let text = match reason {
            FinishReason::Length => "the answer was cut at the model's length limit",
            FinishReason::ContentFilter => "the model's provider withheld the rest of the answer",
            _ => return RunStatus::Completed,
        };
        self.run
            .feed
            .diagnostic(Diagnostic::warning("model", "answer_cut", text))
            .await;
        RunStatus::Completed
    }

    async fn over_the_limit(&mut self, step: u32, calls: &[ToolCall]) -> RunStatus {
        let skipped = |call: &ToolCall| {
            ToolResult::failed(
                call,
                ToolErrorKind::Cancelled,
                "The step limit was reached before this call could run.",
            )
        };
        calls::skip(step, calls, &self.run.feed, skipped).await;
        let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
        failed(
            FailureKind::StepLimit,
            format!(
                "the model still called {} in step {step} of {step}: raise the agent's max_steps",
                names.join(", ")
            ),
        )
    }

    fn cut(&self, reason: StopReason, what: String) -> RunStatus {
        match reason {
            StopReason::Cancelled => RunStatus::Cancelled {
                cut: format!("cancelled {what}"),
            },
            StopReason::TimedOut => RunStatus::TimedOut {
                limit_ms: millis(self.run.stop.limit),
                cut: format!("cut {what}"),
            },
        }
    }

    /// Why the sandbox could not boot, if a call needed it.
    fn boot_failure(&self) -> Option<String> {
        if !self.run.lent.sandbox.used() {
            return None;
        }
        let booted = self.run.lent.sandbox.get().now_or_never()?;
        booted.err().map(|error| error.to_string())
    }
}

/// What was cut in a step: text, or calls without a result.
fn cut_in_step(step: u32, text: &str, results: &[ToolResult]) -> String {
    let mut what = format!("in step {step}");
    if !text.is_empty() {
        what.push_str(&format!(
            ", after {} characters of the answer",
            text.chars().count()
        ));
    }
    let open = results
        .iter()
        .filter(|result| calls::status(result) == CallStatus::Cancelled);
    let open: Vec<_> = open
        .map(|result| format!("{} ({})", result.name, result.call_id))
        .collect();
    if !open.is_empty() {
        what.push_str(&format!("; without a result: {}", open.join(", ")));
    }
    what
}

fn failed(kind: FailureKind, reason: String) -> RunStatus {
    RunStatus::Failed { kind, reason }
}
