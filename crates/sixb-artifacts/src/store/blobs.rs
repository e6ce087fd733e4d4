//! `BlobStore`: the store, and the keys in it.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use object_store::{ObjectStore, ObjectStoreExt, path::Path};

use super::BlobError;
use crate::Digest;

/// Blobs in an object store: each is named by the SHA-256 of its bytes and never changes.
///
/// Works on any [`ObjectStore`]; a local folder, memory and, by feature, S3, Google Cloud Storage and Azure are opened by
/// [`open_url`](Self::open_url). Clones share the store. The key of a blob is `blobs/sha256/<hex>`.
///
/// # Semantics
/// - **Put** is idempotent and whole or not at all: hashed first, then one conditional put. Where the blob is there already,
///   its age begins anew and damage is repaired.
/// - **Read** of a whole blob verifies its digest, and of a part its size.
/// - **Sweep** removes what nobody keeps and is older than an age; a put that comes at the same time wins, from another
///   process too.
/// - Dropping the future of a put leaves no part of a blob. A put that was already under way in a local folder may still
///   become visible as a whole; nothing refers to it, and the sweep takes it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), sixb_artifacts::store::BlobError> {
/// use sixb_artifacts::store::BlobStore;
/// let blobs = BlobStore::memory();
/// let file = blobs.put("hi").await?;
/// assert_eq!(blobs.read(&file).await?, "hi");
/// assert_eq!(blobs.stat(&file.digest()).await?.map(|blob| blob.size), Some(2));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct BlobStore {
    pub(super) store: Arc<dyn ObjectStore>,
    /// Signs download links, where the store can.
    #[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
    pub(super) signer: Option<Arc<dyn object_store::signer::Signer>>,
    /// How long files live, once links are allowed.
    pub(super) links: Option<Duration>,
    /// Everything lies below.
    root: Path,
    /// The folder of a local store, for what the store itself does not clean up.
    pub(super) folder: Option<PathBuf>,
}

impl BlobStore {
    /// The largest blob that is taken, in bytes: 25 MiB.
    pub const MAX_BLOB: u64 = 25 << 20;

    /// On a store of the caller's. It must list and read what was written at once, and know conditional puts
    /// ([`PutMode::Create`](object_store::PutMode::Create)).
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            #[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
            signer: None,
            links: None,
            root: Path::default(),
            folder: None,
        }
    }

    /// In memory, for tests and runs that leave nothing.
    pub fn memory() -> Self {
        Self::new(Arc::new(object_store::memory::InMemory::new()))
    }

    #[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
    pub(super) fn with_signer(mut self, signer: Arc<dyn object_store::signer::Signer>) -> Self {
        self.signer = Some(signer);
        self
    }

    pub(super) fn below(mut self, root: Path) -> Self {
        self.root = root;
        self
    }

    /// The folder of a local store.
    pub fn folder(&self) -> Option<&std::path::Path> {
        self.folder.as_deref()
    }

    /// What is known of a blob; `None` when the store has none of this name. Its bytes are not read.
    ///
    /// # Errors
    /// [`BlobError::Store`].
    pub async fn stat(&self, digest: &Digest) -> Result<Option<BlobStat>, BlobError> {
        match self.store.head(&self.key(digest)).await {
            Ok(meta) => Ok(Some(BlobStat {
                size: meta.size,
                last_put: meta.last_modified.into(),
            })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("looking for a blob", error)),
        }
    }

    /// `blobs/sha256/<hex>`.
    pub(super) fn key(&self, digest: &Digest) -> Path {
        self.blobs().join(digest.hex())
    }

    /// The folder of all blobs.
    pub(super) fn blobs(&self) -> Path {
        self.root.clone().join("blobs").join("sha256")
    }

    /// The folder of marks that a sweep sets: see [`turn`](super::turn).
    pub(super) fn marks(&self) -> Path {
        self.root.clone().join("blobs").join("sweeping")
    }

    pub(super) fn failed(&self, op: &'static str, error: object_store::Error) -> BlobError {
        BlobError::Store {
            op,
            store: self.store.to_string(),
            source: Box::new(error),
        }
    }
}

impl fmt::Debug for BlobStore {
    /// The store's own `Debug` may show its configuration: its name is enough.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlobStore")
            .field("store", &self.store.to_string())
            .finish_non_exhaustive()
    }
}

/// What is known of a blob without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobStat {
    /// Its size, in bytes.
    pub size: u64,
    /// When it was put last: its age counts from there.
    pub last_put: std::time::SystemTime,
}
