//! Conveniences over [`Sandbox`]. Nobody implements these: they are here for everyone.

use async_trait::async_trait;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::{
    BackgroundId, ByteRange, Changes, Chunk, Command, CommandOutput, FileContents, FileSource,
    FileWrite, OutputId, OutputStream, Result, Sandbox, SandboxError, SandboxPath, Snapshot,
    SnapshotOptions,
};

/// What [`SandboxExt::stream`] yields.
#[derive(Debug)]
#[non_exhaustive]
pub enum CommandEvent {
    /// A piece of output. Pieces are dropped, not queued, when the consumer is slow; the end has the whole capture.
    Output(Chunk),
    /// The command ended. Always the last event.
    Ended(Result<CommandOutput>),
}

/// Conveniences over [`Sandbox`], for every sandbox, also behind `dyn`.
#[async_trait]
pub trait SandboxExt: Sandbox {
    /// Runs `script` with `bash -lc`.
    async fn sh(&self, script: &str) -> Result<CommandOutput> {
        self.run(Command::script(script)).await
    }

    /// Runs a command and yields its output while it comes. Dropping the stream kills the command.
    fn stream(&self, command: Command) -> impl Stream<Item = CommandEvent> + Send + '_ {
        stream(self, command)
    }

    /// Writes one file with mode 0o644.
    async fn write(&self, path: &str, contents: impl Into<FileContents> + Send) -> Result<()> {
        let path = SandboxPath::parse_guest(path, self.working_directory())?;
        self.write_files(vec![FileWrite::new(path, contents)]).await
    }

    /// Reads a whole file of at most [`ByteRange::MAX_LEN`] bytes.
    async fn read(&self, path: &str) -> Result<Bytes> {
        let source = FileSource::Path(SandboxPath::parse_guest(path, self.working_directory())?);
        let size = self.stat(&source).await?.size;
        if size > ByteRange::MAX_LEN as u64 {
            return Err(SandboxError::LimitExceeded {
                what: format!("size of {path:?} (bytes)"),
                limit: ByteRange::MAX_LEN as u64,
                actual: Some(size),
            });
        }
        self.read_range(&source, ByteRange::new(0, ByteRange::MAX_LEN))
            .await
    }

    /// Reads a piece of a command's spooled output.
    async fn read_output(
        &self,
        id: &OutputId,
        stream: OutputStream,
        range: ByteRange,
    ) -> Result<Bytes> {
        self.read_range(&FileSource::Output(id.clone(), stream), range)
            .await
    }

    /// What changed in the working directory since `before`.
    async fn changes_since(&self, before: &Snapshot) -> Result<Changes> {
        Ok(self
            .snapshot(SnapshotOptions::default())
            .await?
            .since(before))
    }

    /// A handle on a process begun by [`Sandbox::start`].
    fn background<'a>(&'a self, id: &'a BackgroundId) -> Background<'a, Self> {
        Background { sandbox: self, id }
    }
}

impl<S: Sandbox + ?Sized> SandboxExt for S {}

/// A background process of a sandbox.
#[derive(Debug)]
pub struct Background<'a, S: ?Sized> {
    sandbox: &'a S,
    id: &'a BackgroundId,
}

impl<S: Sandbox + ?Sized> Background<'_, S> {
    /// Waits for its end; `Lost`, at once, when the sandbox is gone.
    pub async fn wait(&self) -> Result<CommandOutput> {
        self.sandbox.wait(self.id, &CancellationToken::new()).await
    }

    /// Ends it and all its descendants.
    pub async fn kill(&self) -> Result<()> {
        self.sandbox.kill(self.id).await
    }
}

fn stream<S: Sandbox + ?Sized>(
    sandbox: &S,
    command: Command,
) -> impl Stream<Item = CommandEvent> + Send + '_ {
    let (chunks, mut receiver) = tokio::sync::mpsc::channel(256);
    let mut run = sandbox.run(command.live(chunks));
    async_stream::stream! {
        let ended = loop {
            tokio::select! {
                biased;
                Some(chunk) = receiver.recv() => yield CommandEvent::Output(chunk),
                ended = &mut run => break ended,
            }
        };
        while let Ok(chunk) = receiver.try_recv() {
            yield CommandEvent::Output(chunk);
        }
        yield CommandEvent::Ended(ended);
    }
    .boxed()
}
