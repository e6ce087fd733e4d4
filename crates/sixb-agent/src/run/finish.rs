//! The end of a run: output files are saved, the sandbox goes, the transcript reaches the disk.

use std::time::{Duration, Instant};

use super::{Diagnostic, RunEvent, RunState, RunStatus, SavedFile, engine::Engine};
use crate::{outputs, transcript::RecordBody, workspace::ForeignOutputs};

/// How long outputs may take to collect; of a cancelled run, whose user wants to leave, less.
const COLLECT: Duration = Duration::from_secs(30);
const COLLECT_CANCELLED: Duration = Duration::from_secs(5);
/// How long a backend may take to end a sandbox or a boot before nobody waits for it any more.
const DESTROY: Duration = Duration::from_secs(30);

/// Saves output files, if a tool used the sandbox. Else neither waits for it nor touches it.
pub(super) async fn collect(run: &Engine, status: &RunStatus) -> Vec<SavedFile> {
    if !run.has_outputs || !run.lent.sandbox.used() {
        return Vec::new();
    }
    let Some(sandbox) = run.lent.sandbox.ready() else {
        return Vec::new();
    };
    run.feed.state(RunState::Collecting).await;
    let limit = match status {
        RunStatus::Cancelled { .. } => COLLECT_CANCELLED,
        _ => COLLECT,
    };
    let nothing = ForeignOutputs::new();
    let foreign = run.foreign.get().unwrap_or(&nothing);
    let target = run
        .outputs
        .as_deref()
        .map(|folder| (folder, run.run_id.as_str()));
    let collected = outputs::collect(&*sandbox, foreign, target, Instant::now() + limit).await;
    for file in &collected.files {
        run.feed.record(RecordBody::File { file: file.clone() });
        run.feed
            .send(RunEvent::FileSaved { file: file.clone() })
            .await;
    }
    for diagnostic in collected.diagnostics {
        run.feed.diagnostic(diagnostic).await;
    }
    collected.files
}

/// Ends the sandbox, or its boot, and syncs the transcript. The outcome is out already: failures go to the log.
pub(super) async fn close(run: &Engine) {
    let problem = match tokio::time::timeout(DESTROY, run.lent.sandbox.destroy()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("the sandbox is not destroyed: {error}")),
        Err(_) => Some(format!(
            "the sandbox is not destroyed after {} s: a sweep will find it",
            DESTROY.as_secs()
        )),
    };
    if let Some(text) = problem {
        tracing::warn!(run_id = run.run_id, "{text}");
        run.feed.record(RecordBody::Diagnostic {
            diagnostic: Diagnostic::error("sandbox", "sandbox_destroy_failed", text),
        });
    }
    if let Err(error) = run.feed.sync().await {
        tracing::warn!(run_id = run.run_id, "{error}");
    }
}
