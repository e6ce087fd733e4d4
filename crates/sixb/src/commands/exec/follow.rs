//! Passes a command's output on, byte for byte, however slowly it is read.
//!
//! Live chunks are dropped when nobody takes them in time, and nothing marks the gap. So the channel is watched: it can
//! only have dropped something if it is full when the next chunk is taken. From then on the spool, which holds every byte,
//! is read in its place.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use sixb_sandbox::{
    ByteRange, Chunk, CommandOutput, FileSource, OutputId, OutputStream, Sandbox, SandboxError,
};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::mpsc,
    task::JoinHandle,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

/// Chunks (of at most 16 KiB) that may wait.
pub(super) const CHANNEL: usize = 512;
/// A sender reserves its place before it fills it, and there are two: this close to full may have been full.
const ALMOST_FULL: usize = CHANNEL - 2;
/// What is kept of a stream on disk while a slow reader reads it.
pub(super) const SPOOL_CAP: u64 = 4 << 30;
const PIECE: usize = 1 << 20;

pub(super) struct Follow {
    sandbox: Arc<dyn Sandbox>,
    chunks: mpsc::Receiver<Chunk>,
    stdout: Passed<tokio::io::Stdout>,
    stderr: Passed<tokio::io::Stderr>,
}

/// One stream and how far it is passed on.
struct Passed<W> {
    stream: OutputStream,
    to: W,
    bytes: u64,
}

impl Follow {
    pub(super) fn new(sandbox: Arc<dyn Sandbox>, chunks: mpsc::Receiver<Chunk>) -> Self {
        let (stdout, stderr) = (tokio::io::stdout(), tokio::io::stderr());
        Self {
            sandbox,
            chunks,
            stdout: Passed {
                stream: OutputStream::Stdout,
                to: stdout,
                bytes: 0,
            },
            stderr: Passed {
                stream: OutputStream::Stderr,
                to: stderr,
                bytes: 0,
            },
        }
    }

    pub(super) fn output_id(&self) -> OutputId {
        OutputId::for_call("exec")
    }

    /// Passes output on until the command ended and all of it is out. When it cannot be passed on the command is ended.
    pub(super) async fn pass_on(
        mut self,
        mut running: JoinHandle<sixb_sandbox::Result<CommandOutput>>,
        end: &CancellationToken,
    ) -> Result<CommandOutput> {
        let passed = self.live(&mut running).await;
        let passed = match passed {
            Ok(ended) => self.rest(ended, running).await,
            Err(error) => Err(error),
        };
        if passed.is_err() {
            end.cancel();
        }
        passed
    }

    /// Passes chunks on for as long as none can be missing. The result is there if the command ended meanwhile.
    async fn live(
        &mut self,
        running: &mut JoinHandle<sixb_sandbox::Result<CommandOutput>>,
    ) -> Result<Option<CommandOutput>> {
        let mut ended = None;
        loop {
            if self.chunks.len() >= ALMOST_FULL {
                return Ok(ended);
            }
            let chunk = match &ended {
                Some(_) => self.chunks.try_recv().ok(),
                None => tokio::select! {
                    biased;
                    chunk = self.chunks.recv() => match chunk {
                        Some(chunk) => Some(chunk),
                        None => {
                            ended = Some(result(running).await?);
                            None
                        }
                    },
                    output = result(running) => {
                        ended = Some(output?);
                        continue;
                    }
                },
            };
            match chunk {
                Some(Chunk {
                    stream: OutputStream::Stdout,
                    bytes,
                    ..
                }) => self.stdout.pass(&bytes).await?,
                Some(Chunk {
                    stream: OutputStream::Stderr,
                    bytes,
                    ..
                }) => self.stderr.pass(&bytes).await?,
                None => return Ok(ended),
            }
        }
    }

    /// Passes on from the spool what the live chunks did not bring.
    async fn rest(
        mut self,
        mut ended: Option<CommandOutput>,
        mut running: JoinHandle<sixb_sandbox::Result<CommandOutput>>,
    ) -> Result<CommandOutput> {
        self.chunks.close();
        let id = self.output_id();
        while ended.is_none() {
            tokio::select! {
                output = result(&mut running) => ended = Some(output?),
                // The spool is a file: that it grew is only seen by looking.
                () = sleep(Duration::from_millis(20)) => {}
            }
            self.stdout.catch_up(&*self.sandbox, &id).await?;
            self.stderr.catch_up(&*self.sandbox, &id).await?;
        }
        let Some(output) = ended else {
            bail!("the command ended without a result; run it again")
        };
        let totals = [
            (self.stdout.bytes, &output.stdout),
            (self.stderr.bytes, &output.stderr),
        ];
        if totals
            .iter()
            .any(|(bytes, captured)| *bytes < captured.total_bytes)
        {
            self.stdout.catch_up(&*self.sandbox, &id).await?;
            self.stderr.catch_up(&*self.sandbox, &id).await?;
        }
        for (bytes, captured) in [
            (self.stdout.bytes, &output.stdout),
            (self.stderr.bytes, &output.stderr),
        ] {
            if bytes < captured.total_bytes {
                bail!(
                    "{} bytes of output were lost: nobody read them in time and the spool holds {SPOOL_CAP} at most; \
                     write them to a file of the workspace",
                    captured.total_bytes - bytes
                );
            }
        }
        Ok(output)
    }
}

async fn result(
    running: &mut JoinHandle<sixb_sandbox::Result<CommandOutput>>,
) -> Result<CommandOutput> {
    Ok(running.await.context("running the command")??)
}

impl<W: AsyncWrite + Unpin> Passed<W> {
    async fn pass(&mut self, bytes: &[u8]) -> Result<()> {
        let written = async {
            self.to.write_all(bytes).await?;
            self.to.flush().await
        };
        written.await.with_context(|| match self.stream {
            OutputStream::Stderr => {
                "the command's stderr cannot be passed on, so it was ended; send it elsewhere"
            }
            _ => "the command's stdout cannot be passed on, so it was ended; send it elsewhere",
        })?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Passes on what the spool holds by now.
    async fn catch_up(&mut self, sandbox: &dyn Sandbox, id: &OutputId) -> Result<()> {
        let source = FileSource::Output(id.clone(), self.stream);
        loop {
            let piece = match sandbox
                .read_range(&source, ByteRange::new(self.bytes, PIECE))
                .await
            {
                Ok(piece) => piece,
                // Nothing was written to this stream yet.
                Err(SandboxError::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(error).context("reading the command's output"),
            };
            if piece.is_empty() {
                return Ok(());
            }
            self.pass(&piece).await?;
        }
    }
}
