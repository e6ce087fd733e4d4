//! Runs a command and shows its output while it comes.

use sixb_sandbox::{Chunk, Command, CommandOutput, OutputStream, Sandbox};
use tokio::sync::mpsc;

use crate::{ProgressStream, ToolContext};

/// Runs a command; whoever watches the call sees its output as text.
pub(super) async fn run(
    sandbox: &dyn Sandbox,
    command: Command,
    cx: &ToolContext,
) -> sixb_sandbox::Result<CommandOutput> {
    if !cx.watched() {
        return sandbox.run(command).await;
    }
    let (sender, mut chunks) = mpsc::channel(64);
    let (mut stdout, mut stderr) = (Decoder::default(), Decoder::default());
    let mut show = |chunk: Chunk| {
        let (decoder, stream) = match chunk.stream {
            OutputStream::Stdout => (&mut stdout, ProgressStream::Stdout),
            OutputStream::Stderr => (&mut stderr, ProgressStream::Stderr),
        };
        let text = decoder.text(&chunk.bytes);
        if !text.is_empty() {
            cx.output(stream, text);
        }
    };
    let mut run = sandbox.run(command.live(sender));
    let ended = loop {
        tokio::select! {
            biased;
            Some(chunk) = chunks.recv() => show(chunk),
            ended = &mut run => break ended,
        }
    };
    while let Ok(chunk) = chunks.try_recv() {
        show(chunk);
    }
    ended
}

/// Turns chunks, which are cut anywhere, into text: an incomplete character waits for the next chunk.
#[derive(Debug, Default)]
struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    fn text(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let whole = self.pending.len() - incomplete_end(&self.pending);
        let text = String::from_utf8_lossy(&self.pending[..whole]).into_owned();
        self.pending.drain(..whole);
        text
    }
}

/// How many bytes at the end are the start of a character whose rest is missing: 0 to 3.
fn incomplete_end(bytes: &[u8]) -> usize {
    match bytes.utf8_chunks().last() {
        Some(last) => match std::str::from_utf8(last.invalid()) {
            Err(error) if error.error_len().is_none() => last.invalid().len(),
            _ => 0,
        },
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_cut_between_chunks_is_whole() {
        let bytes = "a가🦀\u{fffd}z".as_bytes();
        for size in 1..=bytes.len() {
            let mut decoder = Decoder::default();
            let text: String = bytes
                .chunks(size)
                .map(|chunk| decoder.text(chunk))
                .collect();
            assert_eq!(text, "a가🦀\u{fffd}z", "chunks of {size}");
        }
        let mut decoder = Decoder::default();
        assert_eq!(decoder.text(b"a\xffb\xe0"), "a\u{fffd}b");
        assert_eq!(decoder.text(b"c"), "\u{fffd}c");
    }
}
