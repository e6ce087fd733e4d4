//! `Body`: bytes or a stream of them, read within a limit.

use std::fmt;

use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, stream::BoxStream};

use super::{BlobError, BoxError};
use crate::Digest;

/// What a file is made of: bytes in memory, or a stream.
pub struct Body(pub(super) Source);

pub(super) enum Source {
    Bytes(Bytes),
    Stream(BoxStream<'static, Result<Bytes, BoxError>>),
}

impl Body {
    /// Pieces as they come. An error among them ends the put; nothing is kept then.
    pub fn stream<S, E>(pieces: S) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self(Source::Stream(
            pieces.map(|piece| piece.map_err(Into::into)).boxed(),
        ))
    }

    /// Reads it all. `take` hears of bytes before they are kept, and may refuse them.
    pub(super) async fn read<E: From<BlobError>>(
        self,
        mut take: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let mut pieces = match self.0 {
            Source::Bytes(bytes) => {
                take(bytes.len() as u64)?;
                return Ok(bytes);
            }
            Source::Stream(pieces) => pieces,
        };
        let mut whole = BytesMut::new();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(BlobError::Body)?;
            take(piece.len() as u64)?;
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self(Source::Bytes(bytes.into()))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Bytes(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            Source::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

/// The digest, on a thread that may block where it takes longer than a moment.
pub(super) async fn digest(bytes: &Bytes) -> Result<Digest, BlobError> {
    /// About a tenth of a millisecond.
    const MOMENT: usize = 64 * 1024;
    if bytes.len() <= MOMENT {
        return Ok(Digest::of(bytes));
    }
    let bytes = bytes.clone();
    let hashed = tokio::task::spawn_blocking(move || Digest::of(&bytes)).await;
    hashed.map_err(|error| BlobError::Body(Box::new(error)))
}
