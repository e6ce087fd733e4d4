//! The end of a run: output files are saved, the sandbox goes, the transcript reaches the disk.

use std::time::{Duration, Instant};

use sixb_artifacts::{Provenance, RunFile};

use super::{Diagnostic, RunEvent, RunState, RunStatus, SavedFile, engine::Engine};
use crate::{
    outputs::{self, Folder},
    transcript::RecordBody,
    workspace::ForeignOutputs,
};

/// How long outputs may take to collect; of a cancelled run, whose user wants to leave, less.
const COLLECT: Duration = Duration::from_secs(30);
const COLLECT_CANCELLED: Duration = Duration::from_secs(5);
/// How long a backend may take to end a sandbox or a boot before nobody waits for it any more.
const DESTROY: Duration = Duration::from_secs(30);

/// Saves what tools made, and output files if a tool used the sandbox. Else neither waits for it nor touches it.
pub(super) async fn collect(run: &Engine, status: &RunStatus) -> Vec<SavedFile> {
    let artifacts = &run.lent.files.artifacts;
    let used = run.has_outputs && run.lent.sandbox.used();
    let sandbox = used.then(|| run.lent.sandbox.ready()).flatten();
    let made = |file: &RunFile| file.provenance == Provenance::Created;
    if sandbox.is_none() && !artifacts.files().all().iter().any(made) {
        return run.saved.clone();
    }
    run.feed.state(RunState::Collecting).await;
    let limit = match status {
        RunStatus::Cancelled { .. } => COLLECT_CANCELLED,
        _ => COLLECT,
    };
    let nothing = ForeignOutputs::new();
    let foreign = run.foreign.get().unwrap_or(&nothing);
    let folder = run.outputs.as_deref();
    let deadline = Instant::now() + limit;
    let sandbox = sandbox.as_deref();
    let taken = outputs::take(sandbox, foreign, artifacts, &run.saved, folder, deadline).await;
    if folder.is_some_and(Folder::is_exposed) {
        // The guest can reach the folder by name: first it goes.
        end_sandbox(run).await;
    }
    let publish = outputs::publish(taken, run.outputs.clone(), Instant::now() + limit);
    let collected = publish.await;
    for file in &collected.files {
        run.feed.record(RecordBody::File { file: file.clone() });
        run.feed
            .send(RunEvent::FileSaved { file: file.clone() })
            .await;
    }
    for diagnostic in collected.diagnostics {
        run.feed.diagnostic(diagnostic).await;
    }
    // What was saved before an interruption comes with the answer too.
    [run.saved.clone(), collected.files].concat()
}

/// Ends the sandbox, or its boot, and syncs the transcript. The outcome is out already: failures go to the log.
pub(super) async fn close(run: &Engine) {
    let gone = end_sandbox(run).await;
    let (outputs, claim) = (run.outputs.clone(), run.claim.clone());
    let tidied = tokio::task::spawn_blocking(move || {
        if let Some(outputs) = outputs {
            outputs.finish();
        }
        if let Some(claim) = claim.filter(|_| gone) {
            claim.release();
        }
    });
    // A runtime that shuts down drops the task: a sweep finds the record.
    let _ = tidied.await;
    if let Err(error) = run.feed.sync().await {
        tracing::warn!(run_id = run.run_id, "{error}");
    }
}

/// Ends the sandbox, or its boot; tells whether it is gone. May be called again.
async fn end_sandbox(run: &Engine) -> bool {
    let problem = match tokio::time::timeout(DESTROY, run.lent.sandbox.destroy()).await {
        Ok(Ok(())) => return true,
        Ok(Err(error)) => format!("the sandbox is not destroyed: {error}"),
        Err(_) => format!(
            "the sandbox is not destroyed after {} s: a sweep will find it",
            DESTROY.as_secs()
        ),
    };
    tracing::warn!(run_id = run.run_id, "{problem}");
    run.feed.record(RecordBody::Diagnostic {
        diagnostic: Diagnostic::error("sandbox", "sandbox_destroy_failed", problem),
    });
    false
}
