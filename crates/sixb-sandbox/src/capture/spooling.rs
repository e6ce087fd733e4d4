//! The way of a stream into its spool file: one batch is written on a blocking thread while the next one fills. No thread
//! is held between batches, so a thousand quiet background processes cost none.

use std::{io, mem};

use tokio::task::{JoinHandle, spawn_blocking};

use crate::spool::SpoolWriter;

/// A batch this long is written even while more is at hand, in bytes.
const BATCH: usize = 512 << 10;

pub(super) struct Spooling {
    /// The file begins once the stream is longer than this.
    after: u64,
    /// Length of the stream so far.
    seen: u64,
    begun: bool,
    /// `None` while a batch is being written, and for good after a failure.
    writer: Option<SpoolWriter>,
    job: Option<JoinHandle<Written>>,
    /// Taken, not yet handed to a job.
    batch: Vec<u8>,
    /// An empty buffer to fill next.
    spare: Vec<u8>,
    /// What the cap still allows to take.
    room: u64,
    written: u64,
}

type Written = (SpoolWriter, Vec<u8>, io::Result<()>);

impl Spooling {
    pub(super) fn new(writer: SpoolWriter, after: usize) -> Self {
        let mut spooling = Self {
            after: after as u64,
            seen: 0,
            begun: after == 0,
            room: writer.cap(),
            writer: Some(writer),
            job: None,
            batch: Vec::new(),
            spare: Vec::new(),
            written: 0,
        };
        if spooling.begun || spooling.writer.as_ref().is_some_and(SpoolWriter::replaces) {
            // A log that is asked for from the first byte on can be read, empty, from the start;
            // and what an earlier command left under this name is not this command's output.
            spooling.start_job();
        }
        spooling
    }

    /// Takes the next bytes of the stream. Waits only while two batches are under way.
    pub(super) async fn take(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        self.begun |= self.seen > self.after;
        let taken = bytes
            .len()
            .min(usize::try_from(self.room).unwrap_or(usize::MAX));
        // Until the file begins they wait here: at most `after` bytes.
        self.batch.extend_from_slice(&bytes[..taken]);
        self.room -= taken as u64;
        if self.begun && self.batch.len() >= BATCH {
            self.settle().await;
            self.start_job();
        }
    }

    /// Nothing more is at hand: starts to write what was taken. Returns whether a batch is being written.
    pub(super) fn flush(&mut self) -> bool {
        if self.begun && !self.batch.is_empty() {
            self.start_job();
        }
        self.job.is_some()
    }

    /// Waits for the batch that is being written. Cancel-safe.
    pub(super) async fn written(spooling: &mut Option<Self>) {
        match spooling {
            Some(spooling) => spooling.settle().await,
            None => std::future::pending().await,
        }
    }

    /// Writes the rest; returns how many bytes the file holds.
    pub(super) async fn finish(mut self) -> u64 {
        self.settle().await;
        if self.flush() {
            self.settle().await;
        }
        self.written
    }

    fn start_job(&mut self) {
        let Some(mut writer) = self.writer.take() else {
            return;
        };
        let mut batch = mem::replace(&mut self.batch, mem::take(&mut self.spare));
        let begun = self.begun;
        self.job = Some(spawn_blocking(move || {
            let result = if begun {
                writer.write(&batch)
            } else {
                writer.remove_replaced()
            };
            batch.clear();
            (writer, batch, result)
        }));
    }

    async fn settle(&mut self) {
        let Some(job) = &mut self.job else { return };
        let ended = job.await;
        self.job = None;
        match ended {
            Ok((writer, batch, Ok(()))) => {
                self.written = writer.written();
                self.writer = Some(writer);
                // After the cap there is no next batch.
                self.spare = if self.room == 0 { Vec::new() } else { batch };
            }
            Ok((writer, _, Err(error))) => {
                self.written = writer.written();
                self.give_up(&error);
            }
            // The runtime is shutting down, or the write panicked.
            Err(error) => self.give_up(&error),
        }
    }

    fn give_up(&mut self, error: &dyn std::error::Error) {
        tracing::warn!(%error, "spooling stopped; the output itself goes on");
        self.room = 0;
        self.batch = Vec::new();
    }
}
