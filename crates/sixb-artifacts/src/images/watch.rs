//! A reader that ends when the time is over or nobody waits any more: a decoder that reads on stops with it.

use std::{
    io::{self, BufRead, Cursor, Read, Seek, SeekFrom},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// Bytes handed out between two looks at the clock.
const PIECE: usize = 32 * 1024;

/// When to stop. Clones share the flag.
#[derive(Clone)]
pub(super) struct Watch {
    deadline: Instant,
    abandoned: Arc<AtomicBool>,
}

impl Watch {
    pub(super) fn until(deadline: Instant) -> Self {
        Self {
            deadline,
            abandoned: Arc::default(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    /// Sets the flag when dropped.
    pub(super) fn abandon_on_drop(&self) -> Abandon {
        Abandon(self.abandoned.clone())
    }
}

pub(super) struct Abandon(Arc<AtomicBool>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes in memory, watched.
pub(super) struct Watched<'a> {
    bytes: Cursor<&'a [u8]>,
    watch: Watch,
}

impl<'a> Watched<'a> {
    pub(super) fn new(bytes: &'a [u8], watch: Watch) -> Self {
        Self {
            bytes: Cursor::new(bytes),
            watch,
        }
    }
}

impl BufRead for Watched<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.watch.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let rest = self.bytes.fill_buf()?;
        Ok(&rest[..rest.len().min(PIECE)])
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.consume(amount);
    }
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.fill_buf()?;
        let read = piece.len().min(buffer.len());
        buffer[..read].copy_from_slice(&piece[..read]);
        self.consume(read);
        Ok(read)
    }
}

impl Seek for Watched<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}
