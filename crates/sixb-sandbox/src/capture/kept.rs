//! What is kept of a stream: a head and a ring that holds the newest bytes. Reads go straight into either, so no byte is
//! copied on its way.

use std::io;

use bytes::{BufMut, Bytes};
use memchr::memchr_iter;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::CapturedStream;

/// The first allocation: most commands write less.
const FIRST: usize = 16 << 10;
/// The ring is at least this long, also for a shorter tail: reads of a few bytes each would stall the writer.
const MIN_RING: usize = 64 << 10;
/// Longest single read.
const MAX_READ: usize = 256 << 10;

pub(super) struct Kept {
    head: Vec<u8>,
    head_max: usize,
    /// Filled once, then overwritten from `next` on.
    ring: Vec<u8>,
    ring_max: usize,
    next: usize,
    tail_max: usize,
    total_bytes: u64,
    total_newlines: u64,
}

impl Kept {
    pub(super) fn new(head_max: usize, tail_max: usize) -> Self {
        Self {
            head: Vec::new(),
            head_max,
            ring: Vec::new(),
            ring_max: tail_max.max(MIN_RING),
            next: 0,
            tail_max,
            total_bytes: 0,
            total_newlines: 0,
        }
    }

    /// One read; returns what it brought, nothing at the end. Cancel-safe.
    pub(super) async fn read_from(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<&[u8]> {
        let new = if self.head.len() < self.head_max {
            append(reader, &mut self.head, self.head_max).await?
        } else if self.ring.len() < self.ring_max {
            append(reader, &mut self.ring, self.ring_max).await?
        } else {
            let end = self.ring_max.min(self.next + MAX_READ);
            let count = reader.read(&mut self.ring[self.next..end]).await?;
            let start = self.next;
            self.next = (start + count) % self.ring_max;
            &self.ring[start..start + count]
        };
        self.total_bytes += new.len() as u64;
        self.total_newlines += memchr_iter(b'\n', new).count() as u64;
        Ok(new)
    }

    pub(super) fn finish(mut self) -> CapturedStream {
        let whole = self.total_bytes <= self.head_max as u64 + self.tail_max as u64;
        if whole {
            // The ring never wrapped: a stream this short fits.
            self.head.reserve_exact(self.ring.len());
            self.head.append(&mut self.ring);
        } else {
            self.head.truncate(char_end(&self.head));
            self.ring.rotate_left(self.next);
            let start = self.ring.len().saturating_sub(self.tail_max);
            self.ring.drain(..start + char_start(&self.ring[start..]));
        }
        CapturedStream {
            head: compact(self.head),
            tail: compact(self.ring),
            total_bytes: self.total_bytes,
            total_newlines: self.total_newlines,
            spooled_bytes: 0,
        }
    }
}

/// Reads into the spare room of `buffer`, which grows by doubling up to `max`.
async fn append<'a>(
    reader: &mut (impl AsyncRead + Unpin),
    buffer: &'a mut Vec<u8>,
    max: usize,
) -> io::Result<&'a [u8]> {
    let start = buffer.len();
    if start == buffer.capacity() {
        let grown = (start * 2).max(FIRST).min(max);
        buffer.reserve_exact(grown - start);
    }
    let room = (buffer.capacity() - start).min(max - start).min(MAX_READ);
    reader.read_buf(&mut buffer.limit(room)).await?;
    Ok(&buffer[start..])
}

/// Gives back room that was never used: results outlive their command.
fn compact(mut bytes: Vec<u8>) -> Bytes {
    if bytes.capacity() / 2 > bytes.len() {
        bytes.shrink_to_fit();
    }
    bytes.into()
}

/// Where to cut the end of `bytes` so that no character is split: before a last sequence that is incomplete.
pub(super) fn char_end(bytes: &[u8]) -> usize {
    let len = bytes.len();
    for back in 1..=len.min(3) {
        let needed = match bytes[len - back] {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if needed > back { len - back } else { len };
    }
    len
}

/// Where to cut the start of `bytes` so that no character is split: after the rest of a split one.
pub(super) fn char_start(bytes: &[u8]) -> usize {
    let rest = bytes
        .iter()
        .take(4)
        .take_while(|byte| (0x80..=0xBF).contains(*byte))
        .count();
    // Four in a row is no UTF-8.
    if rest == 4 { 0 } else { rest }
}
