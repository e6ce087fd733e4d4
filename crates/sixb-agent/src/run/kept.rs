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
    /// What a resumed run has said and done so far.
    pub(super) past: Option<Replay>,
}

impl Kept {
    /// Lets go of everything: the run does not begin.
    pub(super) fn give_up(&self) {
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
    if let Some(folder) = blobs {
        let place = Place::find(folder, writable).map_err(|source| RunError::State {
            folder: folder.to_owned(),
            source,
        })?;
        exposed("blobs", &place, folder, writable)?;
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
        past: past.flatten(),
    })
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
