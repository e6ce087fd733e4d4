//! What a run keeps on the host, all of it opened before any code of a guest runs.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sixb_artifacts::store::BlobStore;
use sixb_sandbox::Workspace;

use super::{RunError, RunRequest};
use crate::{
    outputs::{
        Folder,
        place::{Place, real},
    },
    transcript::{Replay, TranscriptError, Writer},
    workspace::{Claim, RunSandboxes, state_folder},
};

#[derive(Debug)]
pub(super) struct Kept {
    /// The right to write to a workspace that outlives the run.
    pub(super) claim: Option<Arc<Claim>>,
    pub(super) outputs: Option<Arc<Folder>>,
    pub(super) transcript: Option<Writer>,
    #[cfg(feature = "openai")]
    pub(super) requests: Option<super::dump::Dump>,
    /// What a resumed run has said and done so far.
    pub(super) past: Option<Replay>,
}

impl Kept {
    /// Lets go of everything: the run does not begin. A new transcript goes again; one that was there stays as it was.
    pub(super) fn give_up(&mut self) {
        if self.past.is_none()
            && let Some(transcript) = self.transcript.take()
        {
            transcript.discard();
        }
        if let Some(outputs) = &self.outputs {
            outputs.finish();
        }
        release(self.claim.as_deref());
    }
}

pub(super) async fn open(
    request: &RunRequest,
    blobs: &BlobStore,
    run_id: &str,
) -> Result<Kept, RunError> {
    let (request, run_id) = (request.clone(), run_id.to_owned());
    let blobs = blobs.folder().map(Path::to_owned);
    let opened =
        tokio::task::spawn_blocking(move || open_now(&request, blobs.as_deref(), &run_id)).await;
    opened.unwrap_or(Err(RunError::Closed))
}

fn open_now(request: &RunRequest, blobs: Option<&Path>, run_id: &str) -> Result<Kept, RunError> {
    if request.resume.is_some() && request.transcripts.is_none() {
        return Err(RunError::NotResumable {
            run_id: run_id.to_owned(),
            problem: "the request names no folder of transcripts".to_owned(),
        });
    }
    // A workspace that is not there fails the boot, which says so.
    let writable = match &request.sandbox.workspace {
        Some(Workspace::HostFolder {
            path,
            read_only: false,
        }) => real(path).ok(),
        _ => None,
    };
    let writable = writable.as_deref();
    let transcripts = match &request.transcripts {
        None => None,
        Some(folder) => {
            let place = Place::find(folder, writable).map_err(|source| TranscriptError::Io {
                op: "create",
                path: folder.clone(),
                source,
            })?;
            exposed("transcripts", &place, folder, writable)?;
            Some((place, folder))
        }
    };
    #[cfg(feature = "openai")]
    let requests = match &request.requests {
        None => None,
        Some(folder) => {
            let unusable = |source| RunError::Requests {
                folder: folder.clone(),
                source,
            };
            let place = Place::find(folder, writable).map_err(unusable)?;
            exposed("requests to the model", &place, folder, writable)?;
            Some(super::dump::Dump::into(place.open().map_err(unusable)?.0))
        }
    };
    if let (Some(folder), Some(workspace)) = (blobs, writable) {
        check_store(folder, workspace)?;
    }
    let claim = match writable {
        None => None,
        Some(workspace) => Some(Arc::new(claim(request, workspace, run_id)?)),
    };
    let unusable = |folder: &Path, source| RunError::Outputs {
        folder: folder.to_owned(),
        source,
    };
    let has_outputs = RunSandboxes::has_outputs(request.sandbox.workspace.as_ref());
    let opened = match &request.outputs {
        Some(folder) if has_outputs => Place::find(folder, writable)
            .and_then(|place| Folder::open(place, folder, run_id))
            .map(|opened| Some(Arc::new(opened)))
            .map_err(|source| unusable(folder, source)),
        _ => Ok(None),
    };
    let outputs = opened.inspect_err(|_| release(claim.as_deref()))?;
    let begun = match transcripts {
        None => None,
        Some((place, folder)) => {
            let begun = match request.resume {
                None => Writer::create(&place, folder, run_id).map(|writer| (writer, None)),
                Some(_) => Writer::reopen(&place, folder, run_id)
                    .map(|(writer, past)| (writer, Some(past))),
            };
            let begun = begun.map_err(RunError::from);
            let begun = begun.and_then(|(writer, past)| {
                past.as_ref()
                    .map_or(Ok(()), |past| resumable(past, request))?;
                Ok((writer, past))
            });
            Some(begun.inspect_err(|_| {
                if let Some(outputs) = &outputs {
                    outputs.finish();
                }
                release(claim.as_deref());
            })?)
        }
    };
    let (transcript, past) = begun.unzip();
    Ok(Kept {
        claim,
        outputs,
        transcript,
        #[cfg(feature = "openai")]
        requests,
        past: past.flatten(),
    })
}

/// A store of files may not be in the hands of a guest that may write to the folder `workspace`: neither lie in it, nor hold it.
///
/// # Errors
/// [`RunError::Exposed`]; [`RunError::State`] when a path cannot be looked at.
pub fn check_store(folder: &Path, workspace: &Path) -> Result<(), RunError> {
    let unseen = |source| RunError::State {
        folder: folder.to_owned(),
        source,
    };
    let workspace = real(workspace).map_err(unseen)?;
    let place = Place::find(folder, Some(&workspace)).map_err(unseen)?;
    exposed("blobs", &place, folder, Some(&workspace))?;
    let holds = |folder: PathBuf| real(&folder).is_ok_and(|folder| workspace.starts_with(folder));
    if holds(folder.join("blobs")) {
        return Err(RunError::Exposed {
            what: "blobs",
            folder: folder.to_owned(),
            workspace,
        });
    }
    Ok(())
}

fn resumable(past: &Replay, request: &RunRequest) -> Result<(), RunError> {
    let problem = if past.completed() {
        "it is completed; go on with its conversation instead".to_owned()
    } else if past.agent_id != request.agent {
        format!(
            "it is a run of agent `{}`, not of `{}`",
            past.agent_id, request.agent
        )
    } else {
        return Ok(());
    };
    Err(RunError::NotResumable {
        run_id: past.run_id.clone(),
        problem,
    })
}

fn release(claim: Option<&Claim>) {
    if let Some(claim) = claim {
        claim.release();
    }
}

fn claim(request: &RunRequest, workspace: &Path, run_id: &str) -> Result<Claim, RunError> {
    let state: PathBuf =
        request
            .state
            .clone()
            .or_else(state_folder)
            .ok_or_else(|| RunError::State {
                folder: PathBuf::new(),
                source: io::Error::new(
                    io::ErrorKind::NotFound,
                    "neither XDG_STATE_HOME nor HOME is set, and the temporary directory has no folder for it",
                ),
            })?;
    let place = Place::find(&state, Some(workspace)).map_err(|source| RunError::State {
        folder: state.clone(),
        source,
    })?;
    exposed("records of open runs", &place, &state, Some(workspace))?;
    Claim::take(&state, workspace, run_id)
}

fn exposed(
    what: &'static str,
    place: &Place,
    folder: &Path,
    workspace: Option<&Path>,
) -> Result<(), RunError> {
    match workspace.filter(|_| place.is_exposed()) {
        None => Ok(()),
        Some(workspace) => Err(RunError::Exposed {
            what,
            folder: folder.to_owned(),
            workspace: workspace.to_owned(),
        }),
    }
}
