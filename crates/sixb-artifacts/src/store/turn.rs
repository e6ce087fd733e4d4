//! Whose turn it is with a blob: a sweep's or a put's. Works across processes, on any store with conditional puts.
//!
//! A sweep sets a mark, looks at the blob's age again, removes it, removes the mark. A put writes the blob, waits while there
//! is a mark, then looks whether the blob is still there, and else writes it again. Either the sweep sees the new age, or the
//! put sees the mark or the missing blob.

use std::time::Duration;

use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tokio::time::{Instant, sleep};

use super::{BlobError, BlobStore};
use crate::Digest;

/// A sweep gives a turn up after this time: it does not remove the blob any more.
pub(super) const TURN: Duration = Duration::from_secs(20);
/// How long removing may take within a turn.
pub(super) const REMOVAL: Duration = Duration::from_secs(10);
/// A mark that stands longer was left by a sweep that died. Longer than a turn and its removal together.
const ABANDONED: Duration = Duration::from_secs(60);

impl BlobStore {
    /// Waits until no sweep has its turn with this blob.
    pub(super) async fn await_sweep(&self, digest: &Digest) -> Result<(), BlobError> {
        self.await_sweep_for(digest, ABANDONED).await
    }

    pub(super) async fn await_sweep_for(
        &self,
        digest: &Digest,
        abandoned: Duration,
    ) -> Result<(), BlobError> {
        let mark = self.mark(digest);
        let begin = Instant::now();
        let mut pause = Duration::from_millis(5);
        loop {
            match self.store.head(&mark).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(self.failed("looking for a sweep", error)),
                Ok(_) if begin.elapsed() >= abandoned => return self.end_turn(digest).await,
                Ok(_) => {}
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Sets the mark; `None` when another sweep has its turn. Gives the time of the store's own clock.
    pub(super) async fn begin_turn(
        &self,
        digest: &Digest,
    ) -> Result<Option<std::time::SystemTime>, BlobError> {
        let mark = self.mark(digest);
        let create = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&mark, "sweeping".into(), create).await {
            Ok(_) => {}
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => return Ok(None),
            Err(error) => return Err(self.failed("marking a blob", error)),
        }
        match self.store.head(&mark).await {
            Ok(meta) => Ok(Some(meta.last_modified.into())),
            Err(error) => Err(self.failed("marking a blob", error)),
        }
    }

    /// Removes the mark.
    pub(super) async fn end_turn(&self, digest: &Digest) -> Result<(), BlobError> {
        match self.store.delete(&self.mark(digest)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("removing a mark", error)),
        }
    }

    fn mark(&self, digest: &Digest) -> object_store::path::Path {
        self.marks().join(digest.hex())
    }
}
