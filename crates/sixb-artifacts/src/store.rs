//! Blobs on any object store, named by their content; and artifacts: a run's files, in the store and in its sandbox.

mod artifacts;
mod blobs;
mod body;
mod error;
mod local;
mod place;
mod presign;
mod put;
mod read;
mod sweep;
mod turn;

pub use artifacts::{Artifact, ArtifactError, ArtifactStore, CallArtifacts, Materialise};
pub use blobs::{BlobStat, BlobStore};
pub use body::Body;
pub use error::{BlobError, BoxError};
pub use presign::{Disposition, Presigned};
pub use sweep::SweepReport;

#[doc(no_inline)]
pub use tokio_util::sync::CancellationToken;
