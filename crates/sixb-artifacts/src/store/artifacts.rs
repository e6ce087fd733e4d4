//! `artifacts.put`: a file goes into the store and into the run's sandbox, and gets its reference.

use std::{fmt, future::Future, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;

use super::{BlobError, BlobStore, Body, BoxError, CancellationToken, body};
use crate::{
    Budget, BudgetError, Contradiction, FileName, FileNameError, FileRef, MediaType,
    MediaTypeError, Provenance, Reservation, RunFile, RunFiles, artifact_path, detect,
};

/// Puts a file into the sandbox of a run. This crate knows no sandbox: whoever has one gives this.
#[async_trait]
pub trait Materialise: fmt::Debug + Send + Sync + 'static {
    /// Writes a file whole or not at all, with its folders, and gives its absolute path in the sandbox.
    ///
    /// `path` is relative to the working directory. Waits for the sandbox where that is still booting. Dropping the future
    /// ends it.
    async fn materialise(&self, path: &str, bytes: Bytes) -> Result<String, BoxError>;
}

/// The artifacts of one run: its store, its budget and its list of files. Clones share them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use sixb_artifacts::{Budget, RunFiles, store::{ArtifactStore, BlobStore, BoxError, CancellationToken, Materialise}};
///
/// #[derive(Debug)]
/// struct Nowhere;
///
/// #[async_trait::async_trait]
/// impl Materialise for Nowhere {
///     async fn materialise(&self, path: &str, _: bytes::Bytes) -> Result<String, BoxError> {
///         Ok(format!("/workspace/{path}"))
///     }
/// }
///
/// let artifacts = ArtifactStore::new(BlobStore::memory(), Budget::default(), RunFiles::default(), Arc::new(Nowhere));
/// let call = artifacts.call("call_1", CancellationToken::new());
/// let made = call.put("a,b\n", "table.csv", None).await?;
/// assert_eq!(made.file.media_type().unwrap().as_str(), "text/csv");
/// assert!(made.path.ends_with("-table.csv"));
/// assert!(artifacts.files().check(&made.file).is_ok());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct ArtifactStore {
    blobs: BlobStore,
    budget: Budget,
    files: RunFiles,
    sandbox: Arc<dyn Materialise>,
}

impl ArtifactStore {
    /// The artifacts of a run.
    pub fn new(
        blobs: BlobStore,
        budget: Budget,
        files: RunFiles,
        sandbox: Arc<dyn Materialise>,
    ) -> Self {
        Self {
            blobs,
            budget,
            files,
            sandbox,
        }
    }

    /// The store.
    pub fn blobs(&self) -> &BlobStore {
        &self.blobs
    }

    /// What the run may still keep.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The files that the run made, was given or looked at.
    pub fn files(&self) -> &RunFiles {
        &self.files
    }

    /// The artifacts as one tool call sees them. `cancel` ends its puts.
    pub fn call(
        &self,
        tool_call_id: impl Into<String>,
        cancel: CancellationToken,
    ) -> CallArtifacts {
        CallArtifacts {
            run: self.clone(),
            tool_call_id: tool_call_id.into(),
            cancel,
        }
    }
}

/// The artifacts as one tool call sees them.
#[derive(Debug, Clone)]
pub struct CallArtifacts {
    run: ArtifactStore,
    tool_call_id: String,
    cancel: CancellationToken,
}

/// A file that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artifact {
    /// Its reference, with name and type.
    pub file: FileRef,
    /// Where it lies in the sandbox, as an absolute path.
    pub path: String,
}

impl CallArtifacts {
    /// The run's artifacts.
    pub fn run(&self) -> &ArtifactStore {
        &self.run
    }

    /// Keeps a file: in the store, in the sandbox at [`artifact_path`], in the run's list.
    ///
    /// In this order: cancellation is looked at, then the name, then the media type; the body is read while its bytes are
    /// reserved; the signature is checked; the blob is put; the file is written into the sandbox. The type is what the bytes
    /// show, else `media_type`, else by the name: see [`detect`].
    ///
    /// # Errors
    /// [`ArtifactError`]. Nothing is charged then, and nothing is in the sandbox. When only the sandbox failed, the blob stays
    /// for the sweep, since another run may have the same.
    ///
    /// # Cancellation
    /// The token ends every wait: for the body, the store and the sandbox. Dropping the future does the same.
    pub async fn put(
        &self,
        body: impl Into<Body>,
        file_name: &str,
        media_type: Option<&str>,
    ) -> Result<Artifact, ArtifactError> {
        let kept = self.keep(body.into(), file_name, media_type).await?;
        let path = artifact_path(&self.tool_call_id, &kept.file.digest(), &kept.name);
        let written = self
            .unless_cancelled(self.run.sandbox.materialise(&path, kept.bytes))
            .await?;
        let path = written.map_err(ArtifactError::Sandbox)?;
        kept.reservation.commit(kept.file.digest());
        self.run.files.add(
            RunFile::new(kept.file.clone(), Provenance::Created)
                .at(&path)
                .by(&self.tool_call_id),
        );
        Ok(Artifact {
            file: kept.file,
            path,
        })
    }

    /// Keeps a file that lies in the sandbox already, at `path`: in the store and in the run's list.
    ///
    /// The same bytes are stored and charged once in a run, also when the budget is used up.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn put_viewed(
        &self,
        bytes: Bytes,
        file_name: &str,
        path: &str,
    ) -> Result<Artifact, ArtifactError> {
        let kept = self.keep(bytes.into(), file_name, None).await?;
        kept.reservation.commit(kept.file.digest());
        self.run.files.add(
            RunFile::new(kept.file.clone(), Provenance::Viewed)
                .at(path)
                .by(&self.tool_call_id),
        );
        Ok(Artifact {
            file: kept.file,
            path: path.to_owned(),
        })
    }

    /// Up to the blob.
    async fn keep(
        &self,
        body: Body,
        file_name: &str,
        media_type: Option<&str>,
    ) -> Result<Kept, ArtifactError> {
        if self.cancel.is_cancelled() {
            return Err(ArtifactError::Cancelled);
        }
        let name: FileName = file_name.parse()?;
        let declared: Option<MediaType> = media_type.map(str::parse).transpose()?;
        let (bytes, reservation) = self.unless_cancelled(self.read(body)).await??;
        let digest = self.unless_cancelled(body::digest(&bytes)).await??;
        let reservation = match reservation {
            Some(reservation) => reservation,
            None => self
                .run
                .budget
                .reserve_content(&digest, bytes.len() as u64)?,
        };
        let media_type = detect(&bytes, declared.as_ref(), Some(name.as_str()))?;
        self.unless_cancelled(self.run.blobs.publish(&digest, bytes.clone()))
            .await??;
        let file = FileRef::new(digest, bytes.len() as u64)
            .with_file_name(name.clone())
            .with_media_type(media_type);
        Ok(Kept {
            file,
            name,
            bytes,
            reservation,
        })
    }

    /// Reads a stream and reserves as it grows. Bytes that are in memory already are reserved once their digest is known.
    async fn read(&self, body: Body) -> Result<(Bytes, Option<Reservation>), ArtifactError> {
        if let body::Source::Bytes(bytes) = body.0 {
            let (size, limit) = (bytes.len() as u64, self.run.budget.limits().file);
            return match size > limit {
                true => Err(BudgetError::File { bytes: size, limit }.into()),
                false => Ok((bytes, None)),
            };
        }
        let mut reservation = self.run.budget.reserve(0)?;
        let bytes = body
            .read(|more| reservation.grow(more).map_err(ArtifactError::from))
            .await?;
        Ok((bytes, Some(reservation)))
    }

    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, ArtifactError> {
        self.cancel
            .run_until_cancelled(work)
            .await
            .ok_or(ArtifactError::Cancelled)
    }
}

/// A file in the store that is not charged yet.
struct Kept {
    file: FileRef,
    name: FileName,
    bytes: Bytes,
    reservation: Reservation,
}

/// A file could not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The call was cancelled.
    #[error("keeping the file was cancelled")]
    Cancelled,
    /// The name is no file name.
    #[error(transparent)]
    FileName(#[from] FileNameError),
    /// The declared media type is none.
    #[error(transparent)]
    MediaType(#[from] MediaTypeError),
    /// The bytes are not of the declared type.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The file is too large, or the run has kept too much.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// The body or the store failed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The file is in the store, but could not be written into the sandbox.
    #[error("the file could not be written into the sandbox")]
    Sandbox(#[source] BoxError),
}
