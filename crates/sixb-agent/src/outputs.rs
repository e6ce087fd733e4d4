//! Saves the files of the output directory to a folder of the host.

mod folder;
mod plan;

use std::{path::Path, time::Instant};

use bytes::Bytes;
use sixb_sandbox::{ByteRange, DirEntry, FileKind, FileSource, ListOptions, Sandbox, SandboxError};

use crate::{
    run::{Diagnostic, SavedFile},
    workspace::{ForeignOutputs, layout},
};
use folder::Folder;
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

/// Saves the run's output files to `<folder>/<run id>/`, each appearing whole or not at all.
///
/// Never fails: what cannot be saved, also for want of time, is a diagnostic.
pub(crate) async fn collect(
    sandbox: &dyn Sandbox,
    foreign: &ForeignOutputs,
    target: Option<(&Path, &str)>,
    deadline: Instant,
) -> Collected {
    let mut collected = Collected::default();
    let entries = match within(deadline, list(sandbox)).await {
        Some(Ok(entries)) => entries,
        Some(Err(problem)) => {
            collected
                .diagnostics
                .push(Diagnostic::error("output", "output_unreadable", problem));
            return collected;
        }
        None => {
            let text = "the output directory could not be listed in time";
            collected
                .diagnostics
                .push(Diagnostic::error("output", "output_timeout", text));
            return collected;
        }
    };
    let plan = plan(entries, &layout::path(layout::OUTPUTS), foreign);
    collected.diagnostics = plan.left_out;
    if plan.take.is_empty() {
        return collected;
    }
    let Some((parent, run_id)) = target else {
        let text = format!(
            "{} output files were left behind: the run has no folder for them",
            plan.take.len()
        );
        collected
            .diagnostics
            .push(Diagnostic::warning("output", "output_no_folder", text));
        return collected;
    };
    let mut folder = Folder::new(parent, run_id);
    for take in &plan.take {
        let saved = match within(deadline, save(sandbox, take, &mut folder)).await {
            Some(saved) => saved,
            None => Err((
                "output_timeout",
                "was not saved: the time for outputs was over".to_owned(),
            )),
        };
        match saved {
            Ok(file) => collected.files.push(file),
            Err((code, message)) => {
                collected
                    .diagnostics
                    .push(omission(code, &take.shown(), &message))
            }
        }
    }
    folder.finish().await;
    collected
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
async fn save(
    sandbox: &dyn Sandbox,
    take: &Take,
    folder: &mut Folder,
) -> Result<SavedFile, Omitted> {
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
    let mut file = folder.begin(take).await?;
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
    let host_path = file.publish().await?;
    Ok(SavedFile {
        path: take.shown(),
        host_path,
        size_bytes: take.size,
    })
}
