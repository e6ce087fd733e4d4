//! One run from its first state to its last: boot beside the first step, the step loop, outputs, the end of the sandbox.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use futures::FutureExt;
use sixb_sandbox::{CreateOptions, LazySandbox};
use sixb_tools::{RunInfo, ToolErrorKind};
use tokio::sync::oneshot;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    CallStatus, Diagnostic, FailureKind, Job, Outcome, RunEvent, RunState, RunStatus, SavedFile,
    calls::{self, Lent},
    context,
    feed::Feed,
    step::{self, Turn, TurnEnd},
    stop::{Stop, StopReason},
};
use crate::{
    agent::Agent,
    model::{FinishReason, Message, ModelLabel, ModelRequest, ToolCall, ToolResult, Usage},
    outputs,
    prompt::{self, PromptParts},
    transcript::RecordBody,
    workspace::{ForeignOutputs, RunSandboxes, layout::Identity},
};

/// How long outputs may take to collect; of a cancelled run, whose user wants to leave, less.
const COLLECT: Duration = Duration::from_secs(30);
const COLLECT_CANCELLED: Duration = Duration::from_secs(5);

pub(super) struct Engine {
    run_id: String,
    agent: Arc<Agent>,
    model: ModelLabel,
    task: String,
    outputs: Option<PathBuf>,
    has_outputs: bool,
    lent: Lent,
    /// Boots that were given up and still clean up.
    boots: TaskTracker,
    foreign: Arc<OnceLock<ForeignOutputs>>,
    feed: Feed,
    stop: Stop,
    begun: Instant,
    messages: Vec<Message>,
    call_ids: HashSet<String>,
    text: String,
    steps: u32,
    usage: Usage,
    trimmed: bool,
}

impl Engine {
    /// Begins the boot: needs a tokio runtime.
    pub(super) fn new(run_id: String, job: Job, feed: Feed, cancel: CancellationToken) -> Self {
        let Job {
            project_id,
            agent,
            sandboxes,
            request,
            ..
        } = job;
        let stop = Stop::new(cancel, request.timeout.unwrap_or(agent.timeout));
        let mut info = RunInfo::new(&run_id, &agent.id, request.kind);
        if let Some(thread) = &request.thread_id {
            info = info.thread(thread);
        }
        // Told here, so that the boot, which begins below, cannot come before it.
        feed.state_now(RunState::Started {
            run_id: run_id.clone(),
            project_id: project_id.clone(),
            agent_id: agent.id.clone(),
            thread_id: request.thread_id.clone(),
            kind: request.kind,
            model: agent.model(),
            max_steps: agent.max_steps,
            timeout_ms: millis(stop.limit),
        });
        feed.record(RecordBody::User {
            text: request.task.clone(),
        });
        let identity = Identity {
            project_id,
            agent_id: agent.id.clone(),
            run_id: run_id.clone(),
            thread_id: request.thread_id,
            api_base_url: None,
        };
        let has_outputs = RunSandboxes::has_outputs(request.sandbox.workspace.as_ref());
        let (boots, foreign) = (TaskTracker::new(), Arc::default());
        feed.state_now(RunState::Booting {
            provider: sandboxes.provider().to_owned(),
        });
        let factory = RunSandboxes {
            inner: sandboxes,
            report: Arc::new(report(feed.clone())),
            foreign: Arc::clone(&foreign),
            tasks: boots.clone(),
            identity: Arc::new(identity.clone()),
        };
        let sandbox = LazySandbox::boot(Arc::new(factory), labelled(request.sandbox, &identity));
        Self {
            model: agent.model(),
            lent: Lent {
                tools: agent.tools.clone(),
                run: Arc::new(info),
                sandbox,
            },
            task: request.task,
            outputs: request.outputs,
            has_outputs,
            boots,
            foreign,
            feed,
            stop,
            begun: Instant::now(),
            messages: Vec::new(),
            call_ids: HashSet::new(),
            text: String::new(),
            steps: 0,
            usage: Usage::default(),
            trimmed: false,
            run_id,
            agent,
        }
    }

    /// Runs to the end: the outcome is sent once outputs are saved; on return the sandbox is gone.
    pub(super) async fn run(mut self, sender: oneshot::Sender<Outcome>) {
        if !self.has_outputs {
            let text =
                "the workspace is read-only: this run has no output directory and no context files";
            self.feed
                .diagnostic(Diagnostic::warning("output", "workspace_read_only", text))
                .await;
        }
        let status = self.steps().await;
        let files = self.collect(&status).await;
        self.feed
            .state(RunState::Finished {
                status: status.as_str().to_owned(),
                reason: status.reason(),
            })
            .await;
        // Nobody may be listening any more: the run ends all the same.
        let _ = sender.send(Outcome {
            run_id: self.run_id.clone(),
            status,
            text: std::mem::take(&mut self.text),
            steps: self.steps,
            model: self.model.clone(),
            usage: self.usage,
            files,
            diagnostics: self.feed.diagnostics(),
            transcript: self.feed.transcript_path(),
            elapsed: self.begun.elapsed(),
        });
        if let Err(error) = self.lent.sandbox.destroy().await {
            let text = format!("the sandbox is not destroyed: {error}");
            tracing::warn!(run_id = self.run_id, "{text}");
            self.feed.record(RecordBody::Diagnostic {
                diagnostic: Diagnostic::error("sandbox", "sandbox_destroy_failed", text),
            });
        }
        self.boots.close();
        self.boots.wait().await;
        if let Err(error) = self.feed.sync().await {
            tracing::warn!(run_id = self.run_id, "{error}");
        }
    }

    async fn steps(&mut self) -> RunStatus {
        let agent = self.agent.clone();
        let system = prompt::system_prompt(&PromptParts {
            agent_name: &agent.name,
            instructions: &agent.instructions,
            has_sandbox_tools: agent.tools.get("bash").is_some(),
            has_outputs: self.has_outputs,
            max_steps: agent.max_steps,
        });
        self.messages.push(Message::User {
            text: std::mem::take(&mut self.task),
        });
        for step in 1..=agent.max_steps {
            if let Some(reason) = self.stop.reason() {
                return self.cut(reason, format!("before step {step}"));
            }
            self.steps = step;
            let last = step == agent.max_steps;
            self.feed
                .state(RunState::Step {
                    step,
                    max: agent.max_steps,
                })
                .await;
            let request = self.request(&system, last).await;
            let mut turn = step::ask(&*agent.model, request, step, &self.stop, &self.feed).await;
            self.take_in(step, &mut turn).await;
            let Turn {
                text, calls, end, ..
            } = turn;
            match end {
                TurnEnd::Whole(reason) if calls.is_empty() => {
                    self.text = text;
                    return self.completed(reason).await;
                }
                TurnEnd::Whole(_) if last => return self.over_the_limit(step, &calls).await,
                TurnEnd::Whole(_) => {}
                TurnEnd::Stopped(reason) => {
                    let results =
                        calls::skip(step, &calls, &self.feed, |call| calls::cut(call, reason))
                            .await;
                    return self.cut(reason, cut_in_step(step, &text, &results));
                }
                TurnEnd::Failed(error) => {
                    let why = "The model failed before this call could run.";
                    let skipped =
                        |call: &ToolCall| ToolResult::failed(call, ToolErrorKind::Cancelled, why);
                    calls::skip(step, &calls, &self.feed, skipped).await;
                    return failed(FailureKind::Model, format!("step {step}: {error}"));
                }
            }
            let results = calls::run(&self.lent, step, &calls, &self.stop, &self.feed).await;
            let because = self
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

    async fn request(&mut self, system: &str, last: bool) -> ModelRequest {
        let mut messages = self.messages.clone();
        let omitted = context::bound(&mut messages, self.agent.max_context);
        if omitted > 0 && !std::mem::replace(&mut self.trimmed, true) {
            let text = format!(
                "the conversation is over {} bytes: the oldest tool results are left out of what the model reads",
                self.agent.max_context
            );
            self.feed
                .diagnostic(Diagnostic::warning("context", "context_trimmed", text))
                .await;
        }
        if last {
            let text = "This is the last step: tools are not available any more. Finish now with what you have.";
            messages.push(Message::User {
                text: text.to_owned(),
            });
        }
        let tools = if last {
            Arc::from([])
        } else {
            self.agent.specs.clone()
        };
        ModelRequest::new(system, messages)
            .tools(tools)
            .last_step(last)
    }

    /// Keeps what the model said in a step, whole or not.
    async fn take_in(&mut self, step: u32, turn: &mut Turn) {
        for (old, new) in step::unique_ids(&mut turn.calls, &mut self.call_ids) {
            let text = format!(
                "step {step}: the call id {old:?} is blank or taken; the call goes by {new:?}"
            );
            self.feed
                .diagnostic(Diagnostic::warning("model", "call_id_changed", text))
                .await;
        }
        let partial = !matches!(turn.end, TurnEnd::Whole(_));
        if !partial || !turn.text.is_empty() || !turn.calls.is_empty() {
            self.feed.record(RecordBody::Assistant {
                step,
                text: turn.text.clone(),
                partial,
                scripted: self.model.scripted,
            });
        }
        if !turn.text.is_empty() {
            self.text.clone_from(&turn.text);
        }
        if turn.usage != Usage::default() {
            self.usage.add(turn.usage);
            self.feed.record(RecordBody::Usage {
                step,
                usage: turn.usage,
            });
            self.feed
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
        self.feed
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
        calls::skip(step, calls, &self.feed, skipped).await;
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
                limit_ms: millis(self.stop.limit),
                cut: format!("cut {what}"),
            },
        }
    }

    /// Why the sandbox could not boot, if a call needed it.
    fn boot_failure(&self) -> Option<String> {
        if !self.lent.sandbox.used() {
            return None;
        }
        let booted = self.lent.sandbox.get().now_or_never()?;
        booted.err().map(|error| error.to_string())
    }

    /// Saves output files, if a tool used the sandbox. Else neither waits for it nor touches it.
    async fn collect(&mut self, status: &RunStatus) -> Vec<SavedFile> {
        if !self.has_outputs || !self.lent.sandbox.used() {
            return Vec::new();
        }
        let Some(sandbox) = self.lent.sandbox.ready() else {
            return Vec::new();
        };
        self.feed.state(RunState::Collecting).await;
        let limit = if matches!(status, RunStatus::Cancelled { .. }) {
            COLLECT_CANCELLED
        } else {
            COLLECT
        };
        let nothing = ForeignOutputs::new();
        let foreign = self.foreign.get().unwrap_or(&nothing);
        let target = self
            .outputs
            .as_deref()
            .map(|folder| (folder, self.run_id.as_str()));
        let collected = outputs::collect(&*sandbox, foreign, target, Instant::now() + limit).await;
        for file in &collected.files {
            self.feed.record(RecordBody::File { file: file.clone() });
            self.feed
                .send(RunEvent::FileSaved { file: file.clone() })
                .await;
        }
        for diagnostic in collected.diagnostics {
            self.feed.diagnostic(diagnostic).await;
        }
        collected.files
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

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The run's labels, for people who list sandboxes; labels of the request win.
fn labelled(options: CreateOptions, identity: &Identity) -> CreateOptions {
    let labels = CreateOptions::default()
        .label("project", &identity.project_id)
        .label("agent", &identity.agent_id)
        .label("run", &identity.run_id);
    options.over(&labels)
}

/// Tells how the boot went. A boot that was given up is no news.
fn report(feed: Feed) -> crate::workspace::BootReport {
    Box::new(move |made, elapsed| match made {
        Ok(sandbox) => feed.state_now(RunState::SandboxReady {
            id: sandbox.id().to_owned(),
            elapsed_ms: millis(elapsed),
        }),
        Err(sixb_sandbox::SandboxError::Cancelled { .. }) => {}
        Err(error) => {
            let reason = error.to_string();
            feed.state_now(RunState::SandboxFailed {
                reason: reason.clone(),
            });
            feed.diagnostic_now(Diagnostic::warning(
                "sandbox",
                "sandbox_boot_failed",
                reason,
            ));
        }
    })
}
