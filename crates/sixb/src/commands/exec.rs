//! `sixb exec`: one command in a sandbox of its own, with its streams and its exit code passed through.

mod follow;

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use futures::{StreamExt, stream};
use sixb_sandbox::{Command, CommandOutput, OutputLimits, Stdin};
use tokio::{io::AsyncReadExt, sync::mpsc};
use tokio_util::sync::CancellationToken;

use self::follow::{Follow, SPOOL_CAP};
use crate::{
    cli::ExecArgs,
    config::Config,
    factory,
    failure::{Exit, is_closed_pipe},
    interrupt,
    sandbox_args::SandboxChoice,
    terminal,
};

pub(super) async fn run(args: ExecArgs, config: &Config) -> Result<Exit> {
    let choice = args.sandbox.resolve(config)?;
    let cancel = interrupt::watch()?;
    let created = factory::of(choice.provider)
        .create(factory::tell_denials(choice.options.clone()).cancel(cancel.clone()))
        .await;
    let sandbox = match created {
        Err(_) if cancel.is_cancelled() => return Ok(Exit::CANCELLED),
        created => created.with_context(|| choice.starting())?,
    };

    // Ends the command alone: whether the user cancelled is what `cancel` says.
    let end = cancel.child_token();
    let (chunks, receiver) = mpsc::channel(follow::CHANNEL);
    let follow = Follow::new(sandbox.clone(), receiver);
    let mut command = Command::argv(args.command)
        .stdin(stdin())
        .limits(OutputLimits::head_tail(0, 0).spool(0, SPOOL_CAP))
        .output_id(follow.output_id())
        .cancel(end.clone())
        .live(chunks);
    if let Some((_, timeout)) = &choice.timeout {
        command = command.timeout(timeout.0);
    }
    // A task of its own: a reader that stops reading our output must not stop Ctrl-C or the deadline.
    let running = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.run(command).await }
    });
    let ended = tokio::select! {
        ended = follow.pass_on(running, &end) => Some(ended),
        () = grace_over(&cancel) => None,
    };
    factory::destroyed(sandbox.destroy()).await;
    match ended {
        Some(Ok(output)) => exit(&output, &choice, &cancel),
        Some(Err(error)) if is_closed_pipe(&error) => Ok(Exit::READER_GONE),
        Some(Err(error)) if !cancel.is_cancelled() => Err(error),
        _ => Ok(Exit::CANCELLED),
    }
}

/// A cancelled command's last output is still passed on, but a reader that has stopped reading cannot hold the end up.
async fn grace_over(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// What is piped in; nothing from a terminal, which would look like a hang.
fn stdin() -> Stdin {
    if io::stdin().is_terminal() {
        return Stdin::Empty;
    }
    let chunks = stream::unfold(
        (tokio::io::stdin(), vec![0; 64 << 10]),
        |(mut input, mut buffer)| async {
            match input.read(&mut buffer).await {
                Ok(0) => None,
                Ok(len) => Some((Ok(Bytes::copy_from_slice(&buffer[..len])), (input, buffer))),
                Err(error) => Some((Err(error), (input, buffer))),
            }
        },
    );
    Stdin::Stream(chunks.boxed())
}

fn exit(
    output: &CommandOutput,
    choice: &SandboxChoice,
    cancel: &CancellationToken,
) -> Result<Exit> {
    if output.cancelled && cancel.is_cancelled() {
        return Ok(Exit::CANCELLED);
    }
    if output.timed_out {
        terminal::error(&match &choice.timeout {
            Some((name, timeout)) => format!(
                "{name} {timeout} passed and the command was ended; give it more time with --timeout"
            ),
            None => "the command did not end within the default time and was ended; give it more with --timeout 10m".into(),
        });
        return Ok(Exit::TIMED_OUT);
    }
    if output.oom_killed == Some(true) {
        terminal::error(
            "the command used up the memory of its sandbox and was ended; give it more with --mem",
        );
    }
    match (output.exit_code, output.signal) {
        (Some(code), _) => Ok(Exit(u8::try_from(code & 0xff).unwrap_or(Exit::FAILED.0))),
        (None, Some(signal)) => Ok(Exit(128 + u8::try_from(signal).unwrap_or(0))),
        (None, None) => Err(anyhow!(
            "the command ended without an exit code: {}; run it again",
            output.reason.as_deref().unwrap_or("the sandbox is gone")
        )),
    }
}
