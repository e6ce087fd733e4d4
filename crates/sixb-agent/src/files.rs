//! The files of a run: what a user attaches, what tools keep, what of it the model sees, what is handed on at the end.
//!
//! In: attachments → store, the user's message, the sandbox ([`intake`]). Between: references in tool results → text, and
//! one message of images ([`show`]). Out: what tools made and the output directory, see [`outputs`](crate::outputs).

mod attachment;
mod element;
mod intake;
mod show;

pub use attachment::{Attachment, PastFile};
pub(crate) use intake::{Brought, Intake, Placed, origin};

use sixb_artifacts::{
    Budget, RunFiles,
    images::AcceptedFormats,
    projection::RequestBudget,
    store::{ArtifactStore, BlobStore},
};
use sixb_sandbox::LazySandbox;
use sixb_tools::sandbox::materialise_in;

use crate::model::Model;

/// What a model sees of images.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    /// Images of one request; `None`: the model takes none.
    budget: Option<RequestBudget>,
    formats: AcceptedFormats,
}

impl Sight {
    pub(crate) fn of(model: &dyn Model) -> Self {
        Self {
            budget: model.takes_images().then(RequestBudget::default),
            formats: model.image_formats(),
        }
    }
}

/// The files of one run. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) artifacts: ArtifactStore,
    sight: Sight,
}

impl Files {
    pub(crate) fn new(
        blobs: BlobStore,
        files: RunFiles,
        budget: Budget,
        sandbox: LazySandbox,
        sight: Sight,
    ) -> Self {
        Self {
            artifacts: ArtifactStore::new(blobs, budget, files, materialise_in(sandbox)),
            sight,
        }
    }
}
