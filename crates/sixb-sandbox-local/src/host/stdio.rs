//! The standard descriptors of a command: pipes that the host reads, and input that it feeds.

use std::{io, os::fd::OwnedFd};

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use sixb_sandbox::Stdin;
use tokio::{io::AsyncWriteExt, net::unix::pipe};

/// Larger pipes mean fewer switches under floods of output.
const PIPE_BYTES: usize = 256 << 10;

/// An output pipe: our end, and the command's.
pub(super) fn output_pipe() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (ours, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // A user who has many large pipes already gets ordinary ones.
    let _ = rustix::pipe::fcntl_setpipe_size(&theirs, PIPE_BYTES);
    Ok((pipe::Receiver::from_owned_fd(ours)?, theirs))
}

pub(super) type Feeder = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// The command's end of its input, and what fills it.
pub(super) fn stdin(stdin: Stdin) -> io::Result<(OwnedFd, Option<Feeder>)> {
    let chunks: BoxStream<'static, io::Result<Bytes>> = match stdin {
        Stdin::Empty => {
            // Not an empty pipe: programs such as ripgrep read a pipe, and leave a device alone.
            let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
            return Ok((
                rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?,
                None,
            ));
        }
        Stdin::Bytes(bytes) => futures::stream::iter([Ok(bytes)]).boxed(),
        Stdin::Stream(chunks) => chunks,
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    let (theirs, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let sender = pipe::Sender::from_owned_fd(ours)?;
    Ok((theirs, Some(Box::pin(feed(sender, chunks)))))
}

async fn feed(mut sender: pipe::Sender, mut chunks: BoxStream<'static, io::Result<Bytes>>) {
    while let Some(chunk) = chunks.next().await {
        match chunk {
            // A command may close its input early; that is its right.
            Ok(bytes) => {
                if sender.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the input of a command ended early");
                return;
            }
        }
    }
}
