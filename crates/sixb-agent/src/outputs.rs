//! What comes with the answer: files that tools made, and those of the output directory. All are kept in the store, and saved
//! to a folder of the host where there is one.

mod folder;
pub(crate) mod place;
mod plan;

use std::{collections::HashSet, sync::Arc, time::Instant};

use bytes::{Bytes, BytesMut};
use sixb_artifacts::{
    FileRef, Provenance, RunFile, detect,
    store::{ArtifactStore, BlobStore},
};
use sixb_sandbox::{ByteRange, DirEntry, FileKind, FileSource, ListOptions, Sandbox, SandboxError};

use crate::{
    run::{Diagnostic, SavedFile},
    workspace::{ForeignOutputs, layout},
};
pub(crate) use folder::Folder;
use folder::Staged;
use plan::{Relative, Take, free_name, omission, plan};

/// Read at a time, in bytes.
const PIECE: usize = 4 << 20;
/// Entries of the output directory, directories included; with more it is not even sorted.
const MAX_LISTED: usize = 10_000;
/// Files made by tools that come with the answer.
const MAX_PROMOTED: usize = 50;

/// What was saved, and what a person should know about the rest.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) files: Vec<SavedFile>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Files that are whole on the host and have no name there yet.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    files: Vec<TakenFile>,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Debug)]
struct TakenFile {
    relative: Relative,
    size: u64,
    provenance: Provenance,
    /// `None` if the store failed.
    file: Option<FileRef>,
    /// `None` without a folder.
    staged: Option<Staged>,
}

/// Takes what tools made, and the output files: into the store, and next to the folder.
///
/// An output file with the bytes of a file that a tool made is that file. `saved` is what came with the run before it was
/// interrupted. Never fails: what cannot be taken, also for want of time, is a diagnostic.
pub(crate) async fn take(
    sandbox: Option<&dyn Sandbox>,
    foreign: &ForeignOutputs,
    artifacts: &ArtifactStore,
    saved: &[SavedFile],
    folder: Option<&Folder>,
    deadline: Instant,
) -> Taken {
    let mut taken = Taken::default();
    let promoted = promoted(artifacts.files().all(), saved, &mut taken.diagnostics);
    if let Some(sandbox) = sandbox {
        for take in planned(sandbox, foreign, &mut taken.diagnostics, deadline).await {
            let shown = take.relative.shown();
            let staging = stage(sandbox, take, &promoted, artifacts.blobs(), folder);
            match within(deadline, staging).await {
                Some(Ok((file, problem))) => {
                    taken.files.extend(file);
                    taken.diagnostics.extend(problem);
                }
                Some(Err((code, message))) => {
                    taken.diagnostics.push(omission(code, &shown, &message));
                }
                None => taken.diagnostics.push(out_of_time(&shown)),
            }
        }
    }
    // Folders are names, too; and a run that goes on after an interruption has saved some before.
    let mut names: HashSet<Relative> = taken
        .files
        .iter()
        .flat_map(|file| {
            (1..=file.relative.0.len()).map(|end| Relative(file.relative.0[..end].to_vec()))
        })
        .chain(
            saved
                .iter()
                .map(|saved| Relative(vec![saved.path.clone().into_bytes()])),
        )
        .collect();
    for file in promoted {
        let name = file.file_name().cloned().or_else(|| "file".parse().ok());
        let Some(name) = name else { continue };
        let relative = free_name(&name, &mut names);
        let shown = relative.shown();
        match within(deadline, promote(file, relative, artifacts.blobs(), folder)).await {
            Some(Ok(file)) => taken.files.push(file),
            Some(Err((code, message))) => {
                taken.diagnostics.push(omission(code, &shown, &message));
            }
            None => taken.diagnostics.push(out_of_time(&shown)),
        }
    }
    taken
}

/// The files that tools published, each content once by each name. What was merely viewed, or attached, is none.
fn promoted(
    all: Vec<RunFile>,
    saved: &[SavedFile],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<FileRef> {
    let mut files: Vec<FileRef> = Vec::new();
    for made in all
        .into_iter()
        .filter(|file| file.provenance == Provenance::Created)
    {
        let same = |other: &FileRef| {
            other.same_content(&made.file) && other.file_name() == made.file.file_name()
        };
        let before = saved.iter().filter_map(|saved| saved.file_ref.as_ref());
        if !files.iter().chain(before).any(same) {
            files.push(made.file);
        }
    }
    if let Some(more @ 1..) = files.len().checked_sub(MAX_PROMOTED) {
        files.drain(..more);
        let text = format!(
            "{more} files that tools made first do not come with the answer: the limit is the last {MAX_PROMOTED}"
        );
        diagnostics.push(Diagnostic::warning("output", "artifacts_left_out", text));
    }
    files
}

async fn planned(
    sandbox: &dyn Sandbox,
    foreign: &ForeignOutputs,
    diagnostics: &mut Vec<Diagnostic>,
    deadline: Instant,
) -> Vec<Take> {
    match within(deadline, list(sandbox)).await {
        Some(Ok(entries)) => {
            let plan = plan(entries, &layout::path(layout::OUTPUTS), foreign);
            diagnostics.extend(plan.left_out);
            plan.take
        }
        Some(Err(problem)) => {
            diagnostics.push(Diagnostic::error("output", "output_unreadable", problem));
            Vec::new()
        }
        None => {
            let text = "the output directory could not be listed in time";
            diagnostics.push(Diagnostic::error("output", "output_timeout", text));
            Vec::new()
        }
    }
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
    for file in taken.files {
        let shown = file.relative.shown();
        let mut saved = SavedFile {
            path: shown.clone(),
            host_path: None,
            size_bytes: file.size,
            provenance: file.provenance,
            file_ref: file.file,
        };
        let (Some(folder), Some(staged)) = (&folder, file.staged) else {
            collected.files.push(saved);
            continue;
        };
        let publishing = tokio::task::spawn_blocking({
            let folder = folder.clone();
            move || folder.publish(staged)
        });
        match within(deadline, publishing).await {
            Some(Ok(Ok(host_path))) => {
                saved.host_path = Some(host_path);
                collected.files.push(saved);
            }
            // What is in the store comes with the answer all the same.
            Some(Ok(Err((code, message)))) => {
                collected.diagnostics.push(omission(code, &shown, &message));
                collected
                    .files
                    .extend(saved.file_ref.is_some().then_some(saved));
            }
            // The runtime shuts down, or time is over: either way nobody waits for this file.
            Some(Err(_)) | None => {
                collected.diagnostics.push(out_of_time(&shown));
                collected
                    .files
                    .extend(saved.file_ref.is_some().then_some(saved));
            }
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

/// Takes one output file, unless it changes meanwhile, or is a file that a tool made.
async fn stage(
    sandbox: &dyn Sandbox,
    take: Take,
    promoted: &[FileRef],
    blobs: &BlobStore,
    folder: Option<&Folder>,
) -> Result<(Option<TakenFile>, Option<Diagnostic>), Omitted> {
    let bytes = read(sandbox, &take).await?;
    let relative = take.relative;
    let mut problem = None;
    let file = match blobs.put(bytes.clone()).await {
        Ok(file) => Some(labelled(file, &relative, &bytes)),
        Err(error) => {
            tracing::warn!("an output is not in the store: {error}");
            let text = "could not be stored: later turns will not have it";
            problem = Some(omission("output_not_stored", &relative.shown(), text));
            None
        }
    };
    let is_promoted = |file: &FileRef| promoted.iter().any(|made| made.same_content(file));
    if file.as_ref().is_some_and(is_promoted) {
        return Ok((None, None));
    }
    if file.is_none() && folder.is_none() {
        return Err((
            "output_no_folder",
            "was left behind: it could not be stored, and the run has no folder for it".to_owned(),
        ));
    }
    let staged = on_host(bytes, &relative, folder).await?;
    let taken = TakenFile {
        relative,
        size: take.size,
        provenance: Provenance::Output,
        file,
        staged,
    };
    Ok((Some(taken), problem))
}

/// The bytes of an output file, whole.
async fn read(sandbox: &dyn Sandbox, take: &Take) -> Result<Bytes, Omitted> {
    let changed = || {
        (
            "output_changed",
            "changed while it was read, so it was not saved".to_owned(),
        )
    };
    let unreadable =
        |error: SandboxError| ("output_unreadable", format!("cannot be read: {error}"));
    let source = FileSource::Path(take.source.clone());
    let mut bytes = BytesMut::new();
    while (bytes.len() as u64) < take.size {
        let left = take.size - bytes.len() as u64;
        let piece = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let piece = sandbox
            .read_range(&source, ByteRange::new(bytes.len() as u64, piece))
            .await
            .map_err(unreadable)?;
        if piece.is_empty() {
            return Err(changed());
        }
        bytes.extend_from_slice(&piece);
    }
    let now = sandbox.stat(&source).await.map_err(unreadable)?;
    if now.kind != FileKind::File || now.version != take.version || now.size != take.size {
        return Err(changed());
    }
    Ok(bytes.freeze())
}

/// Takes a file that a tool made.
async fn promote(
    file: FileRef,
    relative: Relative,
    blobs: &BlobStore,
    folder: Option<&Folder>,
) -> Result<TakenFile, Omitted> {
    let staged = match folder {
        None => None,
        Some(_) => {
            let bytes = blobs.read(&file).await.map_err(|error| {
                tracing::warn!("a file of the store cannot be read: {error}");
                (
                    "output_unreadable",
                    "cannot be read from the store".to_owned(),
                )
            })?;
            on_host(bytes, &relative, folder).await?
        }
    };
    Ok(TakenFile {
        size: file.size(),
        relative,
        provenance: Provenance::Created,
        file: Some(file),
        staged,
    })
}

/// Writes a file beside its place in the folder.
async fn on_host(
    bytes: Bytes,
    relative: &Relative,
    folder: Option<&Folder>,
) -> Result<Option<Staged>, Omitted> {
    let Some(folder) = folder else {
        return Ok(None);
    };
    let mut partial = folder.begin()?;
    let written = partial.write(bytes).await;
    written.map_err(|error| ("output_write_failed", format!("cannot be written: {error}")))?;
    partial.whole(relative.clone()).await.map(Some)
}

/// The reference with name and type. A name that is none for the store is left out.
fn labelled(file: FileRef, relative: &Relative, bytes: &[u8]) -> FileRef {
    let name = relative
        .0
        .last()
        .and_then(|name| std::str::from_utf8(name).ok());
    let mut file = match detect(bytes, None, name) {
        Ok(media_type) => file.with_media_type(media_type),
        Err(_) => file,
    };
    if let Some(name) = name.and_then(|name| name.parse().ok()) {
        file = file.with_file_name(name);
    }
    let path = relative.shown();
    file.clone().with_logical_path(path).unwrap_or(file)
}
