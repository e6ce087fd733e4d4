//! Live chunks: offered, never waited for.

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::{Chunk, OutputStream};

/// Longest chunk, in bytes: with the depth of the channel it bounds what waits in it.
const MAX_CHUNK: usize = 16 << 10;

pub(super) struct Live {
    pub(super) stream: OutputStream,
    pub(super) chunks: mpsc::Sender<Chunk>,
}

impl Live {
    /// Offers `bytes`; what finds no room, or nobody, is dropped before it is copied.
    pub(super) fn send(&self, bytes: &[u8]) {
        for piece in bytes.chunks(MAX_CHUNK) {
            let Ok(slot) = self.chunks.try_reserve() else {
                return;
            };
            slot.send(Chunk::new(self.stream, Bytes::copy_from_slice(piece)));
        }
    }
}
