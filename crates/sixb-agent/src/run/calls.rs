//! The tool calls of one step: side by side, results in call order, nothing left behind when they are cut.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sixb_sandbox::LazySandbox;
use sixb_tools::{Connectors, RunInfo, ToolContext, ToolErrorKind, ToolProgress, ToolRegistry};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use serde_json::Value;
use tracing::Instrument;

use super::{
    CallStatus, RunEvent,
    feed::Feed,
    stop::{Stop, StopReason},
};
use crate::{
    files::Files,
    model::{ToolCall, ToolFailure, ToolResult},
    telemetry,
    transcript::RecordBody,
};

/// Calls that run at the same time; the rest of a step waits its turn.
const MAX_AT_ONCE: usize = 16;
/// Calls of one step that are run; the rest is refused.
const MAX_PER_STEP: usize = 64;
/// How long cut calls may take to hand in what they have. A tool's own grace is shorter.
const CUT_GRACE: Duration = Duration::from_secs(3);

/// What calls need of their run.
#[derive(Debug, Clone)]
pub(super) struct Lent {
    pub(super) tools: ToolRegistry,
    pub(super) run: Arc<RunInfo>,
    pub(super) sandbox: LazySandbox,
    pub(super) connectors: Connectors,
    pub(super) files: Files,
}

/// Runs all calls of a step. Every call gets a result, which is recorded and told as it comes.
pub(super) async fn run(
    lent: &Lent,
    step: u32,
    calls: &[ToolCall],
    stop: &Stop,
    feed: &Feed,
) -> Vec<ToolResult> {
    let (progress, mut live) = mpsc::channel(256);
    let cancel = stop.cancel.child_token();
    let at_once = Arc::new(Semaphore::new(MAX_AT_ONCE));
    let mut results: Vec<Option<ToolResult>> = vec![None; calls.len()];
    let mut running = JoinSet::new();
    let begun = Instant::now();
    for (place, call) in calls.iter().enumerate() {
        started(step, call, feed).await;
        if place >= MAX_PER_STEP {
            let text = format!(
                "only {MAX_PER_STEP} calls of one step are run: make this one again in a later step"
            );
            let refused = ToolResult::failed(call, ToolErrorKind::LimitExceeded, text);
            finished(step, &refused, Duration::ZERO, feed).await;
            results[place] = Some(refused);
            continue;
        }
        let cancel = cancel.child_token();
        let cx = ToolContext::builder(&call.id)
            .run(lent.run.clone())
            .cancel(cancel.clone())
            .deadline(stop.deadline)
            .extension(lent.sandbox.clone())
            .extension(lent.connectors.clone())
            .extension(lent.files.artifacts.call(&call.id, cancel.child_token()))
            .extension(lent.files.artifacts.files().clone())
            .progress(progress.clone())
            .build();
        let (tools, call, at_once) = (lent.tools.clone(), call.clone(), at_once.clone());
        let span = telemetry::tool_span(&call);
        let work = async move {
            // Closed never: the permit is only a turn to run.
            let _turn = at_once.acquire_owned().await;
            let begun = Instant::now();
            let result = match tools.call_json(&call.name, cx, &call.arguments).await {
                Ok(output) => ToolResult::ok(&call, output.to_json()),
                Err(error) => {
                    telemetry::failed(error.kind().as_str());
                    ToolResult::failed(&call, error.kind(), error.model_text())
                }
            };
            (place, result, begun.elapsed())
        };
        running.spawn(work.instrument(span));
    }
    drop(progress);

    let mut cut_at: Option<tokio::time::Instant> = None;
    loop {
        let grace = async {
            match cut_at {
                Some(at) => tokio::time::sleep_until(at + CUT_GRACE).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(piece) = live.recv() => show(piece, feed),
            ended = running.join_next() => match ended {
                None => break,
                Some(Ok((place, result, elapsed))) => {
                    let result = match stop.reason() {
                        // The call's deadline is the run's: it did not fail, it was cut. Its text may tell more.
                        Some(_) if kind(&result) == Some(ToolErrorKind::Timeout) => as_cut(result),
                        _ => result,
                    };
                    record_files(&lent.files, &result.call_id, feed);
                    finished(step, &result, elapsed, feed).await;
                    results[place] = Some(result);
                }
                // The registry catches panics of handlers; whatever else ended the task is told below.
                Some(Err(error)) => tracing::error!("a tool call's task failed: {error}"),
            },
            _ = stop.fired(), if cut_at.is_none() => {
                cancel.cancel();
                cut_at = Some(tokio::time::Instant::now());
            }
            () = grace => {
                running.abort_all();
                break;
            }
        }
    }
    while let Ok(piece) = live.try_recv() {
        show(piece, feed);
    }

    let reason = stop.reason();
    let mut whole = Vec::with_capacity(calls.len());
    for (call, result) in calls.iter().zip(results) {
        whole.push(match result {
            Some(result) => result,
            None => {
                let result = match reason {
                    Some(reason) => cut(call, reason),
                    None => ToolResult::failed(
                        call,
                        ToolErrorKind::Internal,
                        ToolErrorKind::Internal.default_model_text(),
                    ),
                };
                finished(step, &result, begun.elapsed(), feed).await;
                result
            }
        });
    }
    whole
}

/// Tells of calls that are not run, and records the results that say why.
pub(super) async fn skip(
    step: u32,
    calls: &[ToolCall],
    feed: &Feed,
    result: impl Fn(&ToolCall) -> ToolResult,
) -> Vec<ToolResult> {
    let mut results = Vec::with_capacity(calls.len());
    for call in calls {
        started(step, call, feed).await;
        let result = result(call);
        finished(step, &result, Duration::ZERO, feed).await;
        results.push(result);
    }
    results
}

/// The result of a call that was cut off.
pub(super) fn cut(call: &ToolCall, reason: StopReason) -> ToolResult {
    let text = match reason {
        StopReason::Cancelled => "The run was cancelled before this call had a result.",
        StopReason::TimedOut => "The run's time was over before this call had a result.",
    };
    ToolResult::failed(call, ToolErrorKind::Cancelled, text)
}

/// A call that ran out of time with the run.
fn as_cut(mut result: ToolResult) -> ToolResult {
    if let Err(failure) = &mut result.result {
        failure.kind = ToolErrorKind::Cancelled;
    }
    result
}

async fn started(step: u32, call: &ToolCall, feed: &Feed) {
    feed.send(RunEvent::ToolCallStarted {
        step,
        call_id: call.id.clone(),
        name: call.name.clone(),
        arguments: call.arguments_json(),
    })
    .await;
}

/// What a run goes on with keeps its calls' results.
pub(super) fn record(step: u32, result: &ToolResult, feed: &Feed) {
    let (value, error) = parts(result);
    feed.record(RecordBody::ToolResult {
        step,
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        status: status(result),
        result: value,
        error,
    });
}

/// What a call kept is there for whoever goes on with the run, whatever came of the call.
fn record_files(files: &Files, call_id: &str, feed: &Feed) {
    let all = files.artifacts.files().all();
    let of_call = all
        .into_iter()
        .filter(|file| file.tool_call_id.as_deref() == Some(call_id));
    feed.record_all(of_call.map(|file| RecordBody::RunFile {
        provenance: file.provenance,
        file_ref: file.file,
        path: file.path,
        call_id: file.tool_call_id,
    }));
}

fn parts(result: &ToolResult) -> (Option<Value>, Option<ToolFailure>) {
    match result.result.clone() {
        Ok(value) => (Some(value), None),
        Err(failure) => (None, Some(failure)),
    }
}

async fn finished(step: u32, result: &ToolResult, elapsed: Duration, feed: &Feed) {
    record(step, result, feed);
    let status = status(result);
    let (value, error) = parts(result);
    feed.send(RunEvent::ToolCallFinished {
        step,
        call_id: result.call_id.clone(),
        name: result.name.clone(),
        status,
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        result: value,
        error,
    })
    .await;
}

pub(super) fn status(result: &ToolResult) -> CallStatus {
    match kind(result) {
        None => CallStatus::Ok,
        Some(ToolErrorKind::Cancelled) => CallStatus::Cancelled,
        Some(_) => CallStatus::Error,
    }
}

fn kind(result: &ToolResult) -> Option<ToolErrorKind> {
    result.result.as_ref().err().map(|failure| failure.kind)
}

fn show(piece: ToolProgress, feed: &Feed) {
    match piece {
        ToolProgress::Output {
            tool_call_id,
            stream,
            text,
        } => feed.try_send(RunEvent::ToolCallOutput {
            call_id: tool_call_id,
            stream,
            text,
        }),
        ToolProgress::Note { tool_call_id, text } => feed.try_send(RunEvent::ToolCallNote {
            call_id: tool_call_id,
            text,
        }),
        _ => {}
    }
}
