//! Runs: how one is asked for, followed and ended. The parts behind it are in this folder.

mod calls;
mod context;
mod denials;
#[cfg(feature = "openai")]
mod dump;
mod engine;
mod event;
mod feed;
mod finish;
mod kept;
mod outcome;
mod output;
mod request;
mod start;
mod step;
mod steps;
mod stop;

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{Stream, StreamExt, stream::BoxStream};
use sixb_artifacts::store::BlobStore;
use sixb_sandbox::SandboxFactory;
use sixb_tools::Connectors;
use tokio::sync::{mpsc, oneshot};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use tracing::Instrument;

pub use kept::check_store;

pub use event::{CallStatus, RunEvent, RunState};
pub use outcome::{Diagnostic, FailureKind, Outcome, RunStatus, SavedFile, Severity};
pub use request::{RunError, RunRequest};

use crate::{
    agent::Agent,
    files::{Brought, Intake, Sight},
    telemetry::{self, RunAttributes},
    workspace::RunSandboxes,
};
use feed::Feed;
use output::OutputCheck;
use stop::Stop;

/// A run that goes on: a stream of [`RunEvent`]s.
///
/// - **Backpressure.** The run waits for its reader once 256 events are unread, except for live output, which is
///   dropped; its time limit goes on.
/// - **End.** [`RunEvent::Finished`] comes once, when outputs are saved; the stream ends (`None`) when the sandbox is gone
///   and the transcript is on disk. A program that exits after that leaves nothing running.
/// - **Cancellation.** [`cancel`](Self::cancel) ends tool calls (a command returns what it wrote so far), keeps the
///   partial answer and collects outputs. **Dropping** a `Run` cancels it; it still cleans up in the background, which
///   [`Sixb::close`](crate::Sixb::close) awaits.
pub struct Run {
    id: String,
    cancel: CancellationToken,
    events: BoxStream<'static, RunEvent>,
    _cancel_on_drop: DropGuard,
}

impl Run {
    /// Names the run: `run_` and a ULID in lower case.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Ends it early. Returns at once; idempotent.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// A token that ends it early, for signal handlers and the like.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Waits for the end, sandbox included, and returns what came of it. Events not read so far are dropped.
    ///
    /// After the stream has yielded `Finished` there is nothing left to wait for but the sandbox: `None`.
    pub async fn finish(mut self) -> Option<Outcome> {
        let mut outcome = None;
        while let Some(event) = self.events.next().await {
            if let RunEvent::Finished { outcome: last } = event {
                outcome = Some(last);
            }
        }
        outcome
    }
}

impl Stream for Run {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        self.events.poll_next_unpin(cx)
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A run about to start: the request and what the project lends it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) project_id: String,
    pub(crate) agent: Arc<Agent>,
    pub(crate) sandboxes: Arc<dyn SandboxFactory>,
    pub(crate) connectors: Connectors,
    pub(crate) blobs: BlobStore,
    /// Fires when the project closes.
    pub(crate) closing: CancellationToken,
    pub(crate) request: RunRequest,
}

/// Checks the request, opens what the run keeps on the host and spawns the run.
pub(crate) async fn start(mut job: Job, runs: &TaskTracker) -> Result<Run, RunError> {
    job.request.check()?;
    let output = job.request.output_schema.as_ref().map(OutputCheck::compile);
    let output = output
        .transpose()
        .map_err(|problem| RunError::InvalidSchema { problem })?;
    let id = match &job.request.resume {
        Some(id) => id.clone(),
        None => format!("run_{}", ulid::Ulid::new().to_string().to_lowercase()),
    };
    let mut kept = kept::open(&job.request, &job.blobs, &id).await?;
    let brought = Brought {
        attachments: std::mem::take(&mut job.request.attachments),
        resumed: kept
            .past
            .as_mut()
            .map(|past| std::mem::take(&mut past.run_files))
            .unwrap_or_default(),
        past: std::mem::take(&mut job.request.past_files),
    };
    let cancel = job.request.cancel.child_token();
    let limit = job.request.timeout.unwrap_or(job.agent.timeout);
    let sight = Sight::of(&*job.agent.model);
    let in_sandbox = RunSandboxes::has_outputs(job.request.sandbox.workspace.as_ref());
    let intake = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(RunError::Cancelled),
        () = job.closing.cancelled() => Err(RunError::Cancelled),
        () = tokio::time::sleep(limit) => Err(RunError::TimedOut { limit }),
        intake = Intake::take(brought, &id, &job.blobs, sight, in_sandbox) => intake,
    };
    let intake = intake.inspect_err(|_| kept.give_up())?;
    let (sender, receiver) = mpsc::channel(256);
    let (outcome_sender, outcome) = oneshot::channel();
    let (gone_sender, gone) = oneshot::channel();
    let stop = Stop::new(cancel.clone(), limit);
    let feed = Feed::new(sender, kept.transcript.take(), stop.clone());
    let label = job.agent.model();
    let span = telemetry::run_span(&RunAttributes {
        run_id: &id,
        project_id: &job.project_id,
        agent_id: &job.agent.id,
        agent_name: &job.agent.name,
        thread_id: job.request.thread_id.as_deref(),
        kind: job.request.kind,
        model: &label,
    });
    let closing = job.closing.clone();
    let engine = engine::Engine::new(id.clone(), job, kept, intake, output, feed, stop);
    let cancel_on_close = cancel.clone();
    let work = async move {
        // Held to the end: its drop tells that the sandbox is gone.
        let _gone: oneshot::Sender<()> = gone_sender;
        let mut work = std::pin::pin!(engine.run(outcome_sender));
        tokio::select! {
            () = &mut work => return,
            () = closing.cancelled() => cancel_on_close.cancel(),
        }
        work.await;
    };
    runs.spawn(work.instrument(span));
    Ok(Run {
        events: events(id.clone(), label, receiver, outcome, gone).boxed(),
        id,
        _cancel_on_drop: cancel.clone().drop_guard(),
        cancel,
    })
}

/// Events as they come, then the outcome, then, in silence, the end of the sandbox.
fn events(
    run_id: String,
    model: crate::model::ModelLabel,
    mut receiver: mpsc::Receiver<RunEvent>,
    mut outcome: oneshot::Receiver<Outcome>,
    gone: oneshot::Receiver<()>,
) -> impl Stream<Item = RunEvent> + Send {
    async_stream::stream! {
        let outcome = loop {
            tokio::select! {
                biased;
                Some(event) = receiver.recv() => yield event,
                outcome = &mut outcome => break outcome,
            }
        };
        while let Ok(event) = receiver.try_recv() {
            yield event;
        }
        // The sender is dropped without an outcome only by a panic: a defect, but nobody may wait for ever.
        let outcome = outcome.unwrap_or_else(|_| Outcome::crashed(run_id, model));
        yield RunEvent::Finished { outcome };
        let _ = gone.await;
    }
}
