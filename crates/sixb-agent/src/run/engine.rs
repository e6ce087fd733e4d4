//! One run from its first state to its last: begins the boot, goes through the steps, finishes.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use futures::FutureExt;
use sixb_sandbox::{CreateOptions, LazySandbox, SandboxError};
use sixb_tools::{RunInfo, RunKind};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::{
    Diagnostic, Job, Outcome, RunState, RunStatus, SavedFile,
    calls::Lent,
    denials,
    feed::Feed,
    finish,
    kept::Kept,
    output::OutputCheck,
    start::{Brought, Start},
    steps,
    stop::Stop,
};
use crate::{
    agent::Agent,
    files::{Files, Intake},
    model::ModelLabel,
    outputs::Folder,
    telemetry,
    workspace::{BootReport, Claim, ForeignOutputs, PlacedFiles, RunSandboxes, layout::Identity},
};

/// What stays the same during a run.
pub(super) struct Engine {
    pub(super) run_id: String,
    pub(super) agent: Arc<Agent>,
    pub(super) model: ModelLabel,
    pub(super) kind: RunKind,
    /// What the steps begin with.
    pub(super) start: Start,
    /// What the answer has to fit.
    pub(super) output: Option<OutputCheck>,
    /// The folder that output files go to.
    pub(super) outputs: Option<Arc<Folder>>,
    /// Where requests are written down.
    #[cfg(feature = "openai")]
    pub(super) requests: Option<super::dump::Dump>,
    /// The right to write to a workspace that outlives the run.
    pub(super) claim: Option<Arc<Claim>>,
    /// What was saved before the run was interrupted.
    pub(super) saved: Vec<SavedFile>,
    /// There is an output directory in the sandbox.
    pub(super) has_outputs: bool,
    pub(super) lent: Lent,
    pub(super) foreign: Arc<OnceLock<ForeignOutputs>>,
    pub(super) feed: Feed,
    pub(super) stop: Stop,
    begun: Instant,
    /// Tells denials of the network for as long as the run lives.
    _denials: AbortOnDropHandle<()>,
}

impl Engine {
    /// Begins the boot: needs a tokio runtime.
    pub(super) fn new(
        run_id: String,
        job: Job,
        kept: Kept,
        intake: Intake,
        output: Option<OutputCheck>,
        feed: Feed,
        stop: Stop,
    ) -> Self {
        let Job {
            project_id,
            agent,
            sandboxes,
            connectors,
            blobs,
            mut request,
            ..
        } = job;
        let brought = Brought {
            text: intake.text,
            images: intake.images,
            records: intake.records,
        };
        let mut info = RunInfo::new(&run_id, &agent.id, request.kind);
        if let Some(thread) = &request.thread_id {
            info = info.thread(thread);
        }
        // Told here, so that the boot, which begins below, cannot come before it.
        let history = std::mem::take(&mut request.history);
        let saved = kept.past.as_ref().map(|past| past.files.clone());
        let start = match kept.past {
            Some(past) => {
                let resumed = RunState::Resumed {
                    run_id: run_id.clone(),
                    agent_id: agent.id.clone(),
                    model: agent.model(),
                    steps: past.steps,
                    interrupted: u32::try_from(past.interrupted.len()).unwrap_or(u32::MAX),
                    timeout_ms: millis(stop.limit),
                };
                Start::resumed(history, past, brought, resumed, &feed)
            }
            None => {
                let started = RunState::Started {
                    run_id: run_id.clone(),
                    project_id: project_id.clone(),
                    agent_id: agent.id.clone(),
                    thread_id: request.thread_id.clone(),
                    kind: request.kind,
                    model: agent.model(),
                    max_steps: agent.max_steps,
                    timeout_ms: millis(stop.limit),
                    output_schema: request.output_schema.clone(),
                };
                Start::new(history, request.message(), brought, started, &feed)
            }
        };
        for diagnostic in intake.diagnostics {
            feed.diagnostic_now(diagnostic);
        }
        let identity = Identity {
            project_id,
            agent_id: agent.id.clone(),
            run_id: run_id.clone(),
            thread_id: request.thread_id,
            api_base_url: None,
        };
        let has_outputs = RunSandboxes::has_outputs(request.sandbox.workspace.as_ref());
        let foreign = Arc::default();
        feed.state_now(RunState::Booting {
            provider: sandboxes.provider().to_owned(),
        });
        let factory = RunSandboxes {
            inner: sandboxes,
            report: report(feed.clone()),
            claim: kept.claim.clone(),
            foreign: Arc::clone(&foreign),
            identity: Arc::new(identity.clone()),
            brought: PlacedFiles {
                blobs: blobs.clone(),
                files: intake.placed,
                lost: {
                    let feed = feed.clone();
                    Arc::new(move |text| {
                        feed.diagnostic_now(Diagnostic::warning(
                            "attachment",
                            "attachment_lost",
                            text,
                        ));
                    })
                },
            },
        };
        let (options, denials) =
            denials::listen(labelled(request.sandbox, &identity), feed.clone());
        let sandbox = LazySandbox::boot(Arc::new(factory), options);
        let files = Files::new(
            blobs,
            intake.files,
            intake.budget,
            sandbox.clone(),
            intake.sight,
        );
        Self {
            model: agent.model(),
            kind: request.kind,
            lent: Lent {
                tools: agent.tools.clone(),
                run: Arc::new(info),
                sandbox,
                connectors,
                files,
            },
            start,
            output,
            outputs: kept.outputs,
            #[cfg(feature = "openai")]
            requests: kept.requests,
            claim: kept.claim,
            saved: saved.unwrap_or_default(),
            has_outputs,
            foreign,
            feed,
            stop,
            begun: Instant::now(),
            _denials: denials,
            run_id,
            agent,
        }
    }

    /// Runs to the end: the outcome is sent once outputs are saved; on return the sandbox is gone.
    pub(super) async fn run(self, sender: oneshot::Sender<Outcome>) {
        if !self.has_outputs {
            let text =
                "the workspace is read-only: this run has no output directory and no context files";
            self.feed
                .diagnostic(Diagnostic::warning("output", "workspace_read_only", text))
                .await;
        }
        // A model is foreign code: its panic must not skip the end of the sandbox.
        let steps = AssertUnwindSafe(steps::run(&self)).catch_unwind().await;
        let (status, said) = steps.unwrap_or_else(|panic| steps::panicked(&*panic));
        let span = tracing::Span::current();
        telemetry::used(&span, said.usage);
        if status != RunStatus::Completed {
            telemetry::failed_in(&span, status.as_str());
        }
        let files = finish::collect(&self, &status).await;
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
            text: said.text,
            output: said.output,
            steps: said.steps,
            model: self.model.clone(),
            usage: said.usage,
            files,
            diagnostics: self.feed.diagnostics(),
            transcript: self.feed.transcript_path(),
            elapsed: self.begun.elapsed(),
        });
        finish::close(&self).await;
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
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
fn report(feed: Feed) -> BootReport {
    Box::new(move |made, elapsed| match made {
        Ok(sandbox) => feed.state_now(RunState::SandboxReady {
            id: sandbox.id().to_owned(),
            elapsed_ms: millis(elapsed),
        }),
        Err(SandboxError::Cancelled { .. }) => {}
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
