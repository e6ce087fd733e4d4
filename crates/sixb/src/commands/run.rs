//! `sixb run`: an agent does a task.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow};
use futures::StreamExt;
use sixb_agent::{
    Attachment, FailureKind, Outcome, RunError, RunEvent, RunRequest, RunStatus, Sixb,
    state_folder, transcript,
};
use sixb_artifacts::store::BlobStore;
use tokio_util::sync::CancellationToken;

use crate::{
    agents,
    cli::{OutputArgs, RunArgs},
    config::Config,
    failure::{Exit, usage},
    host, interrupt,
    progress::Progress,
    sandbox_args::SandboxChoice,
    stdout, terminal,
    values::Timeout,
};

/// Below the state folder: `<run>/transcript.jsonl` each.
const TRANSCRIPTS: &str = "runs";

pub(super) async fn run(args: RunArgs, config: &Config) -> Result<Exit> {
    if args.task.trim().is_empty() {
        return Err(usage("TASK \"\": is blank; say what the agent should do"));
    }
    let timeout = args.sandbox.timeout;
    let sandbox = args.sandbox.resolve(config)?;
    let agent = args.agent.as_deref();
    let (project, agent) =
        agents::project(config, agent, &args.model, &args.blobs, sandbox.provider)?;
    let attachments = attachments(&args.files)?;
    let request = match args.thread {
        None => RunRequest::new(agent, args.task),
        Some(thread) => {
            check_thread(&thread)?;
            let folder = transcripts(args.output.transcripts.as_deref())?;
            let past = past(folder, &thread, None)?;
            RunRequest::conversation(agent, args.task, thread, past)
        }
    };
    let request = attachments.into_iter().fold(request, RunRequest::attach);
    start(&project, request, args.output, sandbox, timeout).await
}

/// What was said in a thread before; what cannot be read of it is told.
pub(super) fn past(
    folder: PathBuf,
    thread: &str,
    before: Option<&str>,
) -> Result<transcript::Thread> {
    let past = transcript::thread(folder, thread, before)?;
    for problem in &past.problems {
        terminal::note(&terminal::plain(problem));
    }
    Ok(past)
}

/// All files of `--file` together, in bytes: 100 MiB.
const MAX_ATTACHED: u64 = 100 << 20;

/// The files of `--file`, under their own names.
fn attachments(paths: &[PathBuf]) -> Result<Vec<Attachment>> {
    let named = |path: &PathBuf, problem: String| {
        let path = terminal::plain(&path.display().to_string());
        usage(format!("--file {path}: {problem}"))
    };
    // Looked at before any is read: together they may be too much for the memory.
    let mut total = 0;
    for path in paths {
        total += host::file_size(path).map_err(|error| {
            named(
                path,
                format!("{error}; name a file that you can read, of at most 25 MiB"),
            )
        })?;
        if total > MAX_ATTACHED {
            let text = format!(
                "makes {total} bytes with the files before it; the limit of all is {MAX_ATTACHED}: attach fewer"
            );
            return Err(named(path, text));
        }
    }
    let read = |path: &PathBuf| {
        let wrong = |problem| named(path, problem);
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name
            .ok_or_else(|| wrong("its name is no text that can be shown; rename it".to_owned()))?;
        let bytes = host::read_bytes(path, BlobStore::MAX_BLOB).map_err(|error| {
            wrong(format!(
                "{error}; name a file that you can read, of at most 25 MiB"
            ))
        })?;
        Ok(Attachment::new(name, bytes))
    };
    paths.iter().map(read).collect()
}

/// Starts a run in a sandbox as the flags want it, and follows it.
pub(super) async fn start(
    project: &Sixb,
    mut request: RunRequest,
    output: OutputArgs,
    sandbox: SandboxChoice,
    timeout: Option<Timeout>,
) -> Result<Exit> {
    let cancel = interrupt::watch()?;
    let starting = sandbox.starting();
    request = request.sandbox(sandbox.options);
    // Without the flag the agent's own limit holds, which knows `sandbox.timeout` of the file.
    if let Some(timeout) = timeout {
        request = request.timeout(timeout.0);
    }
    let output = Output {
        folder: output.out,
        transcripts: output.transcripts,
        dump_requests: output.dump_requests,
        json: output.json,
        starting,
    };
    follow(project, request, output, &cancel).await
}

/// A thread's name stands in records and variables, and people type it again.
fn check_thread(thread: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=64).contains(&thread.len()) && thread.chars().all(fine) {
        return Ok(());
    }
    Err(usage(format!(
        "--thread {thread:?}: use 1 to 64 letters, digits, `_`, `-` or `.`"
    )))
}

/// The folder of transcripts: the flag's, or one below the state folder.
pub(super) fn transcripts(flag: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = flag {
        return Ok(folder.to_owned());
    }
    let state = state_folder().ok_or_else(|| {
        anyhow!("there is no place for the transcript: neither XDG_STATE_HOME nor HOME is set, and the temporary directory has no folder for it; name a folder with --transcripts DIR")
    })?;
    Ok(state.join(TRANSCRIPTS))
}

/// Where the results of a run go.
pub(super) struct Output {
    pub(super) folder: PathBuf,
    /// Without it a folder below the state folder: no sandbox may write there.
    pub(super) transcripts: Option<PathBuf>,
    pub(super) dump_requests: Option<PathBuf>,
    pub(super) json: bool,
    /// What failed when the sandbox does not start.
    pub(super) starting: String,
}

/// Runs, shows the progress and hands out the answer.
pub(super) async fn follow(
    project: &Sixb,
    request: RunRequest,
    output: Output,
    cancel: &CancellationToken,
) -> Result<Exit> {
    let transcripts = transcripts(output.transcripts.as_deref())?;
    let mut request = request
        .outputs(&output.folder)
        .transcripts(&transcripts)
        .cancel(cancel.clone());
    if let Some(folder) = output.dump_requests {
        request = request.dump_requests(folder);
    }
    let run = match project.run(request).await {
        Err(RunError::Cancelled) => return Ok(Exit::CANCELLED),
        run => run.map_err(not_started)?,
    };
    let shown = show(run, output.json, &transcripts).await;
    if shown.is_err() {
        cancel.cancel();
    }
    // Also after an error: nothing may stay behind.
    project.close().await;
    let outcome = shown?;
    match &outcome.status {
        RunStatus::Completed => {
            if !output.json && !streams() && !outcome.text.trim().is_empty() {
                stdout::line(answer(&outcome.text).trim_end())?;
            }
            Ok(Exit::OK)
        }
        RunStatus::Cancelled { .. } => Ok(Exit::CANCELLED),
        status => {
            let needed = matches!(
                status,
                RunStatus::Failed {
                    kind: FailureKind::Sandbox,
                    ..
                }
            );
            let what = if needed {
                format!("{}: ", output.starting)
            } else {
                String::new()
            };
            terminal::error(&terminal::plain(&format!("{what}{status}")));
            Ok(Exit::FAILED)
        }
    }
}

/// Adds the flag that helps.
fn not_started(error: RunError) -> anyhow::Error {
    let remedy = match &error {
        RunError::Outputs { .. } => "name a folder that you can write to with --out DIR",
        RunError::Transcript(_) => "name a folder that you can write to with --transcripts DIR",
        RunError::Exposed { what, .. } if *what == "transcripts" => {
            "name a folder outside of it with --transcripts DIR, or forbid changes with --workspace DIR:ro"
        }
        RunError::Requests { .. } => "name a folder that you can write to with --dump-requests DIR",
        RunError::Exposed { what, .. } if what.starts_with("requests") => {
            "name a folder outside of it with --dump-requests DIR, or forbid changes with --workspace DIR:ro"
        }
        RunError::Exposed { what, .. } if *what == "blobs" => {
            "name a store outside of it with --blobs URL, or forbid changes with --workspace DIR:ro"
        }
        RunError::Exposed { .. } | RunError::State { .. } => {
            "set XDG_STATE_HOME to a folder that you can write to and no sandbox can"
        }
        RunError::Attachment { name, problem } => {
            return usage(format!("--file {name:?}: {problem}"));
        }
        _ => return error.into(),
    };
    anyhow!("{error}; {remedy}")
}

/// Whether the answer is shown on stdout while it is written: on a terminal that shows progress too.
fn streams() -> bool {
    io::stdout().is_terminal() && terminal::is_live()
}

async fn show(mut run: sixb_agent::Run, json: bool, transcripts: &Path) -> Result<Outcome> {
    let mut progress = Progress::new(streams() && !json);
    let mut ended = None;
    while let Some(event) = run.next().await {
        progress.show(&event);
        if json {
            stdout::json(&event)?;
        }
        if let RunEvent::Finished { outcome } = event {
            ended = Some(outcome);
        }
    }
    ended.ok_or_else(|| {
        anyhow!(
            "the run ended without an outcome; its transcript in {} tells how far it came",
            transcripts.display()
        )
    })
}

/// The answer. On a terminal nothing of it may move the cursor: it can hold what a command printed.
fn answer(text: &str) -> String {
    if !io::stdout().is_terminal() {
        return text.to_owned();
    }
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}
