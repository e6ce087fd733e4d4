//! Putting a blob: hash, one conditional put, then make sure that no sweep took it meanwhile.

use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};

use super::{BlobError, BlobStore, Body, body};
use crate::{Digest, FileRef};

/// A put is done again when a sweep removed the blob in between: more than once is a defect.
const TRIES: usize = 4;

impl BlobStore {
    /// Keeps a body of at most [`MAX_BLOB`](Self::MAX_BLOB) bytes, and names it.
    ///
    /// # Errors
    /// `TooLarge` and `Body` of the body, before the store is touched; `Store` when the store fails. Nothing is published
    /// then, and the put may be repeated.
    pub async fn put(&self, body: impl Into<Body>) -> Result<FileRef, BlobError> {
        self.put_body(body.into(), None).await
    }

    /// As [`put`](Self::put), of a body that is said to have `size` bytes.
    ///
    /// # Errors
    /// As [`put`](Self::put), and `WrongSize`, before the store is touched.
    pub async fn put_sized(&self, body: impl Into<Body>, size: u64) -> Result<FileRef, BlobError> {
        self.put_body(body.into(), Some(size)).await
    }

    async fn put_body(&self, body: Body, expected: Option<u64>) -> Result<FileRef, BlobError> {
        let mut actual = 0_u64;
        let take = |more: u64| {
            actual += more;
            match expected {
                Some(expected) if actual > expected => {
                    Err(BlobError::WrongSize { expected, actual })
                }
                _ if actual > Self::MAX_BLOB => Err(BlobError::TooLarge {
                    limit: Self::MAX_BLOB,
                }),
                _ => Ok(()),
            }
        };
        let bytes = body.read::<BlobError>(take).await?;
        let actual = bytes.len() as u64;
        if let Some(expected) = expected.filter(|expected| *expected != actual) {
            return Err(BlobError::WrongSize { expected, actual });
        }
        let digest = body::digest(&bytes).await?;
        self.publish(&digest, bytes).await?;
        Ok(FileRef::new(digest, actual))
    }

    /// Makes sure that the store has this blob, with its age at zero. `digest` is that of `bytes`.
    pub(super) async fn publish(&self, digest: &Digest, bytes: Bytes) -> Result<(), BlobError> {
        let size = bytes.len() as u64;
        let payload = PutPayload::from_bytes(bytes);
        for _ in 0..TRIES {
            self.write(digest, payload.clone()).await?;
            // In this order: a sweep that began before the write has either removed the blob by now, or is waited for.
            self.await_sweep(digest).await?;
            match self.stat(digest).await? {
                Some(blob) if blob.size == size => return Ok(()),
                Some(blob) => {
                    let detail = format!("it has {} bytes, not {size}", blob.size);
                    return Err(BlobError::Damaged {
                        blob_id: digest.blob_id(),
                        detail,
                    });
                }
                None => {}
            }
        }
        Err(BlobError::NotFound {
            blob_id: digest.blob_id(),
        })
    }

    /// One conditional put. Where the blob is there, it is written over with the same bytes: its age begins anew.
    async fn write(&self, digest: &Digest, payload: PutPayload) -> Result<(), BlobError> {
        let key = self.key(digest);
        let create = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&key, payload.clone(), create).await {
            Ok(_) => return Ok(()),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => {}
            Err(error) => return Err(self.failed("putting a blob", error)),
        }
        let refreshed = self.store.put(&key, payload).await;
        refreshed
            .map(drop)
            .map_err(|error| self.failed("refreshing a blob", error))
    }
}
