//! A stream that knows when it last moved: what is silent for too long is closed, whatever protocol it speaks.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

/// When something moved last.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    /// Milliseconds after the start.
    last: AtomicU64,
}

impl Clock {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            last: AtomicU64::new(0),
        })
    }

    fn moved(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Returns once nothing moved for `idle`.
    pub(super) async fn silent_for(&self, idle: Duration) {
        loop {
            let last = self.start + Duration::from_millis(self.last.load(Ordering::Relaxed));
            if last.elapsed() >= idle {
                return;
            }
            tokio::time::sleep_until(last + idle).await;
        }
    }
}

/// A stream and its clock.
#[derive(Debug)]
pub(super) struct Active<S> {
    stream: S,
    clock: Arc<Clock>,
}

impl<S> Active<S> {
    pub(super) fn new(stream: S, clock: Arc<Clock>) -> Self {
        Self { stream, clock }
    }

    fn note<T>(&self, poll: Poll<T>) -> Poll<T> {
        if poll.is_ready() {
            self.clock.moved();
        }
        poll
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Active<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.note(poll)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Active<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.note(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.note(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_from_the_last_move() {
        let (near, _far) = tokio::io::duplex(64);
        let clock = Clock::new();
        let mut stream = Active::new(near, clock.clone());
        let start = Instant::now();
        let writer = async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            stream.write_all(b"x").await.expect("room");
        };
        tokio::join!(writer, clock.silent_for(Duration::from_secs(30)));
        assert_eq!(start.elapsed().as_secs(), 50);
    }
}
