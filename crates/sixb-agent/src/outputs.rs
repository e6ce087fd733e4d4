//! Saves the files of the output directory to a folder of the host.

mod folder;
pub(crate) mod place;
mod plan;

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use sixb_sandbox::{ByteRange, DirEntry, FileKind, FileSource, ListOptions, Sandbox, SandboxError};

use crate::{
    run::{Diagnostic, SavedFile},
    workspace::{ForeignOutputs, layout},
};
pub(crate) use folder::Folder;
use folder::Staged;
use plan::{Take, omission, plan};

/// Read at a time, in bytes.
const PIECE: usize = 4 << 20;
/// Entries of the output directory, directories included; with more it is not even sorted.
const MAX_LISTED: usize = 10_000;

/// What was saved, and what a person should know about the rest.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) files: Vec<SavedFile>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Output files that are whole on the host and have no name there yet.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    staged: Vec<Staged>,
    diagnostics: Vec<Diagnostic>,
}

/// Copies the run's output files to the host.
///
/// Never fails: what cannot be taken, also for want of time, is a diagnostic.
pub(crate) async fn take(
    sandbox: &dyn Sandbox,
    foreign: &ForeignOutputs,
    folder: Option<&Folder>,
    deadline: Instant,
) -> Taken {
    let mut taken = Taken::default();
    let entries = match within(deadline, list(sandbox)).await {
        Some(Ok(entries)) => entries,
        Some(Err(problem)) => {
            taken
                .diagnostics
                .push(Diagnostic::error("output", "output_unreadable", problem));
            return taken;
        }
        None => {
            let text = "the output directory could not be listed in time";
            taken
                .diagnostics
                .push(Diagnostic::error("output", "output_timeout", text));
            return taken;
        }
    };
    let plan = plan(entries, &layout::path(layout::OUTPUTS), foreign);
    taken.diagnostics = plan.left_out;
    if plan.take.is_empty() {
        return taken;
    }
    let Some(folder) = folder else {
        let text = format!(
            "{} output files were left behind: the run has no folder for them",
            plan.take.len()
        );
        taken
            .diagnostics
            .push(Diagnostic::warning("output", "output_no_folder", text));
        return taken;
    };
    for file in plan.take {
        let shown = file.shown();
        match within(deadline, stage(sandbox, file, folder)).await {
            Some(Ok(staged)) => taken.staged.push(staged),
            Some(Err((code, message))) => {
                taken.diagnostics.push(omission(code, &shown, &message));
            }
            None => taken.diagnostics.push(out_of_time(&shown)),
        }
    }
    taken
}

/// Gives what was taken its names, as `<folder>/<run id>/…`, each file appearing whole or not at all.
///
/// If the folder is exposed to the guest the sandbox must be gone by now.
pub(crate) async fn publish(
    taken: Taken,
    folder: Option<Arc<Folder>>,
    deadline: Instant,
) -> Collected {
    let mut collected = Collected {
        files: Vec::new(),
        diagnostics: taken.diagnostics,
    };
    let Some(folder) = folder else {
        return collected;
    };
    for staged in taken.staged {
        let (shown, size_bytes) = (staged.shown(), staged.size());
        let publishing = tokio::task::spawn_blocking({
            let folder = folder.clone();
            move || folder.publish(staged)
        });
        match within(deadline, publishing).await {
            Some(Ok(Ok(host_path))) => collected.files.push(SavedFile {
                path: shown,
                host_path,
                size_bytes,
            }),
            Some(Ok(Err((code, message)))) => {
                collected.diagnostics.push(omission(code, &shown, &message));
            }
            // The runtime shuts down, or time is over: either way nobody waits for this file.
            Some(Err(_)) | None => collected.diagnostics.push(out_of_time(&shown)),
        }
    }
    collected
}

fn out_of_time(shown: &str) -> Diagnostic {
    omission(
        "output_timeout",
        shown,
        "was not saved: the time for outputs was over",
    )
}

async fn within<T>(deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout_at(deadline.into(), work).await.ok()
}

/// The entries of the output directory, which a guest may have removed or replaced by a link.
async fn list(sandbox: &dyn Sandbox) -> Result<Vec<DirEntry>, String> {
    let (parent, root) = (
        layout::path(layout::OUTPUTS_PARENT),
        layout::path(layout::OUTPUTS),
    );
    let unreadable = |error: SandboxError| format!("the output directory cannot be read: {error}");
    let siblings = match sandbox
        .list(&parent, ListOptions::default().limit(MAX_LISTED))
        .await
    {
        Err(SandboxError::NotFound { .. }) => return Ok(Vec::new()),
        siblings => siblings.map_err(unreadable)?,
    };
    match siblings
        .iter()
        .find(|entry| entry.path == root)
        .map(|entry| entry.stat.kind)
    {
        None => Ok(Vec::new()),
        Some(FileKind::Directory) => {
            let options = ListOptions::default().recursive().limit(MAX_LISTED);
            sandbox.list(&root, options).await.map_err(unreadable)
        }
        Some(other) => Err(format!(
            "the output directory was replaced by a {other}: nothing was saved"
        )),
    }
}

type Omitted = (&'static str, String);

/// Copies one file, unless it changes meanwhile.
async fn stage(sandbox: &dyn Sandbox, take: Take, folder: &Folder) -> Result<Staged, Omitted> {
    let changed = || {
        (
            "output_changed",
            "changed while it was read, so it was not saved".to_owned(),
        )
    };
    let unreadable =
        |error: SandboxError| ("output_unreadable", format!("cannot be read: {error}"));
    let unwritable =
        |error: std::io::Error| ("output_write_failed", format!("cannot be written: {error}"));
    let source = FileSource::Path(take.source.clone());
    let mut file = folder.begin()?;
    let mut offset = 0;
    while offset < take.size {
        let piece = usize::try_from(take.size - offset)
            .unwrap_or(PIECE)
            .min(PIECE);
        let bytes: Bytes = sandbox
            .read_range(&source, ByteRange::new(offset, piece))
            .await
            .map_err(unreadable)?;
        if bytes.is_empty() {
            return Err(changed());
        }
        offset += bytes.len() as u64;
        file.write(bytes).await.map_err(unwritable)?;
    }
    let now = sandbox.stat(&source).await.map_err(unreadable)?;
    if now.kind != FileKind::File || now.version != take.version || now.size != take.size {
        return Err(changed());
    }
    file.whole(take).await
}
