//! Removing what nobody keeps.

use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::time::{Instant, timeout};

use super::{BlobError, BlobStore, CancellationToken, local, turn};
use crate::Digest;

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// Blobs that it looked at.
    pub seen: u64,
    /// Blobs that it removed.
    pub removed: u64,
    /// Their bytes.
    pub removed_bytes: u64,
    /// Blobs that were to go, but were put again or are in the turn of another sweep.
    pub spared: u64,
}

impl BlobStore {
    /// Removes each blob that `keep` denies and that was put last before more than `older_than`.
    ///
    /// `older_than` is to be longer than a run may take: a run puts a blob first and refers to it later. Ages are told by the
    /// store's own clock, to a second on some stores. A put at the same time, of another process too, wins: it begins the
    /// age anew, or puts the blob again.
    ///
    /// # Errors
    /// `Store` at the first failure; what was removed stays so. Run it again.
    ///
    /// # Cancellation
    /// Fire `cancel` to end it between two blobs. Dropping the future may leave one mark, which a put of that blob waits 60 s for.
    pub async fn sweep(
        &self,
        keep: impl Fn(&Digest) -> bool + Send + Sync,
        older_than: Duration,
        cancel: &CancellationToken,
    ) -> Result<SweepReport, BlobError> {
        let mut report = SweepReport::default();
        let now = SystemTime::now();
        let mut blobs = self.store.list(Some(&self.blobs()));
        // Names only, so that nothing is listed while it is removed; 40 bytes for each candidate.
        let mut candidates = Vec::new();
        while let Some(meta) = blobs
            .try_next()
            .await
            .map_err(|error| self.failed("listing blobs", error))?
        {
            let Some(digest) = name(&meta) else { continue };
            report.seen += 1;
            // A first look, by this machine's clock: it only spares work.
            let age = now
                .duration_since(meta.last_modified.into())
                .unwrap_or_default();
            if !keep(&digest) && age + Duration::from_secs(60) > older_than {
                candidates.push(digest);
            }
        }
        for digest in candidates {
            if cancel.is_cancelled() {
                break;
            }
            match self.remove_older(&digest, older_than).await? {
                Some(bytes) => {
                    report.removed += 1;
                    report.removed_bytes += bytes;
                }
                None => report.spared += 1,
            }
        }
        if let Some(folder) = &self.folder {
            local::remove_stale_parts(folder.clone()).await;
        }
        Ok(report)
    }

    /// One turn with one blob. Gives its size where it was removed.
    async fn remove_older(
        &self,
        digest: &Digest,
        older_than: Duration,
    ) -> Result<Option<u64>, BlobError> {
        let begin = Instant::now();
        let Some(now) = self.begin_turn(digest).await? else {
            return Ok(None);
        };
        let removed = self.remove_in_turn(digest, older_than, now, begin).await;
        self.end_turn(digest).await?;
        removed
    }

    async fn remove_in_turn(
        &self,
        digest: &Digest,
        older_than: Duration,
        now: SystemTime,
        begin: Instant,
    ) -> Result<Option<u64>, BlobError> {
        let Some(blob) = self.stat(digest).await? else {
            return Ok(None);
        };
        let is_older = now
            .duration_since(blob.last_put)
            .is_ok_and(|age| age > older_than);
        if !is_older || begin.elapsed() > turn::TURN {
            return Ok(None);
        }
        match timeout(turn::REMOVAL, self.store.delete(&self.key(digest))).await {
            Ok(Ok(())) => Ok(Some(blob.size)),
            Ok(Err(object_store::Error::NotFound { .. })) | Err(_) => Ok(None),
            Ok(Err(error)) => Err(self.failed("removing a blob", error)),
        }
    }
}

fn name(meta: &ObjectMeta) -> Option<Digest> {
    Digest::from_hex(meta.location.filename()?).ok()
}
