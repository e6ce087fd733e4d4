//! Bounded capture of one output stream: head, rolling tail, optional spool. One reader, never stops draining.

mod kept;
mod live;
mod spooling;

use std::pin::pin;

use futures::FutureExt;
use tokio::{
    io::AsyncRead,
    sync::mpsc,
    time::{Duration, Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use self::{kept::Kept, live::Live, spooling::Spooling};
use crate::{CapturedStream, Chunk, OutputLimits, OutputStream, spool::SpoolWriter};

/// How long the pipe is read on once the process is gone.
const DRAIN: Duration = Duration::from_millis(250);

/// How to capture one stream.
#[derive(Debug)]
#[non_exhaustive]
pub struct CaptureOptions {
    /// Which stream: names the live chunks.
    pub stream: OutputStream,
    /// Bounds, in bytes.
    pub limits: OutputLimits,
    /// Gets chunks while they come; full or closed = chunks dropped.
    pub live: Option<mpsc::Sender<Chunk>>,
    /// Where long output goes.
    pub spool: Option<SpoolWriter>,
}

impl CaptureOptions {
    /// Captures `stream` within `limits`.
    pub fn new(stream: OutputStream, limits: OutputLimits) -> Self {
        Self {
            stream,
            limits,
            live: None,
            spool: None,
        }
    }

    /// Sends chunks of at most 16 KiB while they come. A full or closed channel drops chunks.
    pub fn live(mut self, chunks: mpsc::Sender<Chunk>) -> Self {
        self.live = Some(chunks);
        self
    }

    /// Spools a stream that gets longer than `limits.spool_after`.
    pub fn spool(mut self, writer: SpoolWriter) -> Self {
        self.spool = Some(writer);
        self
    }
}

/// Reads `reader` to its end, or, once `ended` fires (the process is gone), for at most 250 ms more:
/// a background child may hold the pipe for ever, silent or not.
///
/// Memory: `head + tail` bytes, plus 64 KiB where `tail` is smaller than that, plus at most 2 MiB while a spool is written.
/// A slow reader of `live` never slows the process; a slow disk under the spool does. A read error ends the stream
/// like its end; a spool error ends the spool and nothing else. Both are logged.
///
/// # Cancellation
/// The capture is the value of this future: dropping it loses what was kept and closes the reader, so the process sees a
/// broken pipe. A spool file then holds a prefix of the stream. To keep partial output, fire `ended` and await the
/// future to its end.
///
/// ```
/// use sixb_sandbox::{CancellationToken, OutputLimits, OutputStream, capture::{CaptureOptions, capture}};
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let options = CaptureOptions::new(OutputStream::Stdout, OutputLimits::head_tail(4, 4));
/// let captured = capture(&b"0123456789"[..], options, CancellationToken::new()).await;
/// assert_eq!((&captured.head[..], &captured.tail[..]), (&b"0123"[..], &b"6789"[..]));
/// assert_eq!((captured.total_bytes, captured.omitted_bytes()), (10, 2));
/// # }
/// ```
pub async fn capture(
    mut reader: impl AsyncRead + Send + Unpin,
    options: CaptureOptions,
    ended: CancellationToken,
) -> CapturedStream {
    let CaptureOptions {
        stream,
        limits,
        live,
        spool,
    } = options;
    let mut kept = Kept::new(limits.head, limits.tail);
    let live = live.map(|chunks| Live { stream, chunks });
    let mut spooling =
        spool.map(|writer| Spooling::new(writer, limits.spool_after.min(limits.head)));
    let mut process_ended = pin!(ended.cancelled());
    let mut deadline: Option<Instant> = None;
    loop {
        // Asked anew before each read: a holder that always has more to say must not hide the end of the process.
        if deadline.is_none() && ended.is_cancelled() {
            deadline = Some(Instant::now() + DRAIN);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break;
        }
        let read = match kept.read_from(&mut reader).now_or_never() {
            Some(read) => read,
            None => {
                let busy = spooling.as_mut().is_some_and(Spooling::flush);
                tokio::select! {
                    biased;
                    read = kept.read_from(&mut reader) => read,
                    () = Spooling::written(&mut spooling), if busy => continue,
                    () = &mut process_ended, if deadline.is_none() => continue,
                    () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => break,
                }
            }
        };
        match read {
            Ok([]) => break,
            Ok(bytes) => {
                if let Some(live) = &live {
                    live.send(bytes);
                }
                if let Some(spooling) = &mut spooling {
                    spooling.take(bytes).await;
                }
            }
            Err(error) => {
                tracing::warn!(%error, stream = stream.as_str(), "reading output failed; what came before is kept");
                break;
            }
        }
    }
    let spooled_bytes = match spooling {
        Some(spooling) => spooling.finish().await,
        None => 0,
    };
    CapturedStream {
        spooled_bytes,
        ..kept.finish()
    }
}

#[cfg(test)]
mod tests;
