//! Reading blobs. Whole reads verify the digest; every read verifies the size.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{GetOptions, GetResult, ObjectStore};

use super::{BlobError, BlobStore};
use crate::{Digest, FileRef, Hasher};

impl BlobStore {
    /// Reads a whole file and verifies it.
    ///
    /// # Errors
    /// `NotFound`; `Damaged` when size or digest are not the reference's; `TooLarge` for a file over [`MAX_BLOB`](Self::MAX_BLOB)
    /// (then use [`open`](Self::open)); `Store`.
    pub async fn read(&self, file: &FileRef) -> Result<Bytes, BlobError> {
        if file.size() > Self::MAX_BLOB {
            return Err(BlobError::TooLarge {
                limit: Self::MAX_BLOB,
            });
        }
        let mut whole = BytesMut::with_capacity(file.size() as usize);
        let mut pieces = self.open(file).await?;
        while let Some(piece) = pieces.try_next().await? {
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// Opens a file for reading from its start to its end.
    ///
    /// Pieces come before the digest can be known: the last item is an error when they were not the file's. Do not act on them
    /// before the stream has ended well.
    ///
    /// # Errors
    /// As [`read`](Self::read), some of them as items of the stream.
    pub async fn open(
        &self,
        file: &FileRef,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobError>>, BlobError> {
        let pieces = self.get(file, GetOptions::default()).await?;
        let (digest, size) = (file.digest(), file.size());
        let state = (
            self.clone(),
            pieces.into_stream(),
            Some(Hasher::default()),
            0_u64,
        );
        Ok(futures::stream::try_unfold(
            state,
            move |(store, mut pieces, hasher, mut read)| async move {
                let Some(mut hasher) = hasher else {
                    return Ok(None);
                };
                match pieces.next().await {
                    Some(Ok(piece)) => {
                        read += piece.len() as u64;
                        if read > size {
                            return Err(damaged(&digest, format!("it has more than {size} bytes")));
                        }
                        hasher.update(&piece);
                        Ok(Some((piece, (store, pieces, Some(hasher), read))))
                    }
                    Some(Err(error)) => Err(store.failed("reading a blob", error)),
                    None if read < size => Err(damaged(
                        &digest,
                        format!("it ends after {read} of {size} bytes"),
                    )),
                    None => match hasher.finish() {
                        found if found == digest => Ok(None),
                        found => Err(damaged(&digest, format!("its digest is {found}"))),
                    },
                }
            },
        )
        .boxed())
    }

    /// Opens a part of a file, by bytes. The digest of a part cannot be verified; the size of the file is.
    ///
    /// # Errors
    /// `Range` when it does not lie in the file; else as [`open`](Self::open).
    pub async fn open_range(
        &self,
        file: &FileRef,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobError>>, BlobError> {
        let (start, end, size) = (range.start, range.end, file.size());
        if start > end || end > size {
            return Err(BlobError::Range { start, end, size });
        }
        if start == end {
            // Some stores refuse empty ranges; the blob must be there all the same.
            return match self.stat(&file.digest()).await? {
                Some(_) => Ok(futures::stream::empty().boxed()),
                None => Err(BlobError::NotFound {
                    blob_id: file.blob_id(),
                }),
            };
        }
        let options = GetOptions::new().with_range(Some(range));
        let store = self.clone();
        let pieces = self.get(file, options).await?.into_stream();
        Ok(pieces
            .map_err(move |error| store.failed("reading a blob", error))
            .boxed())
    }

    async fn get(&self, file: &FileRef, options: GetOptions) -> Result<GetResult, BlobError> {
        let digest = file.digest();
        let found = match self.store.get_opts(&self.key(&digest), options).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => {
                return Err(BlobError::NotFound {
                    blob_id: digest.blob_id(),
                });
            }
            Err(error) => return Err(self.failed("reading a blob", error)),
        };
        if found.meta.size != file.size() {
            return Err(damaged(
                &digest,
                format!("it has {} bytes, not {}", found.meta.size, file.size()),
            ));
        }
        Ok(found)
    }
}

fn damaged(digest: &Digest, detail: String) -> BlobError {
    BlobError::Damaged {
        blob_id: digest.blob_id(),
        detail,
    }
}
