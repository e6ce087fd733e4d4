//! `sixb runs`: what ran, and going on with what did not complete.

use std::path::Path;

use anyhow::Result;
use serde_json::json;
use sixb_agent::{
    RunRequest,
    model::Message,
    transcript::{self, FILE_NAME, Reader, Replay},
};
use sixb_artifacts::{FileRef, Provenance};

use super::run::{past as past_of, start, transcripts};
use crate::{
    agents,
    cli::{RunsCommand, RunsListArgs, RunsResumeArgs, RunsShowArgs},
    config::Config,
    failure::{Exit, usage},
    stdout, terminal,
};

/// Longest task in a list, in characters.
const MAX_TASK: usize = 60;
/// Longest text of a call or a result, in characters.
const MAX_TEXT: usize = 400;

pub(super) async fn run(command: RunsCommand, config: &Config) -> Result<Exit> {
    match command {
        RunsCommand::List(args) => list(&args),
        RunsCommand::Show(args) => show(&args),
        RunsCommand::Resume(args) => resume(*args, config).await,
    }
}

fn list(args: &RunsListArgs) -> Result<Exit> {
    let folder = transcripts(args.transcripts.as_deref())?;
    let runs = transcript::runs(&folder)?;
    if runs.is_empty() && !args.json {
        terminal::note(&format!(
            "no run has left a transcript in {}",
            folder.display()
        ));
    }
    for id in runs.iter().rev().take(args.limit) {
        let run = match Replay::read(&folder, id) {
            Ok(run) => run,
            Err(error) => {
                terminal::note(&error.to_string());
                continue;
            }
        };
        let status = run.status.as_deref().unwrap_or("interrupted");
        if args.json {
            stdout::json(&json!({
                "runId": run.run_id, "began": run.began, "status": status, "reason": run.reason, "agentId": run.agent_id,
                "threadId": run.thread_id, "kind": run.kind, "model": run.model, "steps": run.steps, "usage": run.usage,
                "files": run.files, "task": run.task,
            }))?;
            continue;
        }
        let thread = run.thread_id.map(|thread| format!(" [{thread}]"));
        stdout::line(&terminal::plain(&format!(
            "{}  {}  {status:<11}  {:>2} steps  {}{}  {}",
            run.run_id,
            run.began.get(..19).unwrap_or(&run.began),
            run.steps,
            run.agent_id,
            thread.unwrap_or_default(),
            clip(run.task.lines().next().unwrap_or_default(), MAX_TASK)
        )))?;
    }
    Ok(Exit::OK)
}

fn show(args: &RunsShowArgs) -> Result<Exit> {
    let folder = transcripts(args.transcripts.as_deref())?;
    let id = find(&folder, &args.run)?;
    if args.json {
        for record in Reader::open(folder.join(&id).join(FILE_NAME))? {
            stdout::json(&record?)?;
        }
        return Ok(Exit::OK);
    }
    let run = Replay::read(&folder, &id)?;
    let line = |text: String| stdout::line(&terminal::plain(&text));
    line(format!(
        "{} of agent {}, model {}, began {}",
        run.run_id, run.agent_id, run.model, run.began
    ))?;
    if let Some(thread) = &run.thread_id {
        line(format!("thread {thread}"))?;
    }
    for message in &run.messages {
        match message {
            Message::User { text, .. } => block("user", text)?,
            Message::Assistant { text, calls } => {
                if !text.is_empty() {
                    block("assistant", text)?;
                }
                for call in calls {
                    line(format!(
                        "  call {} {}",
                        call.name,
                        clip(&call.arguments, MAX_TEXT)
                    ))?;
                }
            }
            Message::Tool(result) => {
                let text = result.to_json().to_string();
                line(format!(
                    "  result {} {}",
                    result.name,
                    clip(&text, MAX_TEXT)
                ))?;
            }
            _ => {}
        }
    }
    for known in &run.run_files {
        line(format!(
            "file {} {}",
            provenance(known.provenance),
            described(&known.file)
        ))?;
    }
    for file in &run.files {
        match (&file.host_path, &file.file_ref) {
            (Some(path), _) => line(format!("saved {}", path.display()))?,
            (None, Some(kept)) => line(format!("kept {}", described(kept)))?,
            (None, None) => {}
        }
    }
    let reason = run.reason.map(|reason| format!(": {reason}"));
    line(format!(
        "{}{}; {} steps, {} tokens read, {} written",
        run.status.as_deref().unwrap_or("interrupted"),
        reason.unwrap_or_default(),
        run.steps,
        run.usage.input_tokens,
        run.usage.output_tokens
    ))?;
    Ok(Exit::OK)
}

/// Name, type, size and id of a file.
fn described(file: &FileRef) -> String {
    let name = file.file_name().map_or("(no name)", |name| name.as_str());
    let media_type = file
        .media_type()
        .map_or("", |media_type| media_type.as_str());
    format!(
        "{name} {media_type} {} bytes {}",
        file.size(),
        file.blob_id()
    )
}

fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Attached => "attached",
        Provenance::Created => "created",
        Provenance::Viewed => "viewed",
        _ => "of the run",
    }
}

async fn resume(args: RunsResumeArgs, config: &Config) -> Result<Exit> {
    let folder = transcripts(args.output.transcripts.as_deref())?;
    let id = find(&folder, &args.run)?;
    let past = Replay::read(&folder, &id)?;
    if past.completed() {
        let remedy = match &past.thread_id {
            Some(thread) => format!("go on with `sixb run --thread {thread} TASK`"),
            None => "start a new one with `sixb run TASK`".to_owned(),
        };
        return Err(usage(format!("run {id} is completed; {remedy}")));
    }
    // A folder that defines no agents has one without saying so.
    let agent = (!config.agents.is_empty()).then_some(past.agent_id.as_str());
    let timeout = args.sandbox.timeout;
    let sandbox = args.sandbox.resolve(config)?;
    let (project, _) = agents::project(config, agent, &args.model, &args.blobs, sandbox.provider)?;
    let mut request = RunRequest::resume(&past, &folder);
    if let Some(thread) = &past.thread_id {
        request = request.past(past_of(folder.clone(), thread, Some(&id))?);
    }
    start(&project, request, args.output, sandbox, timeout).await
}

/// The one run whose id is, or ends with, what was typed.
fn find(folder: &Path, typed: &str) -> Result<String> {
    let runs = transcript::runs(folder)?;
    if runs.iter().any(|run| run == typed) {
        return Ok(typed.to_owned());
    }
    let mut ending: Vec<_> = runs
        .into_iter()
        .filter(|run| run.ends_with(typed))
        .collect();
    match (ending.len(), typed.len() >= 4) {
        (1, true) => Ok(ending.remove(0)),
        (_, true) if !ending.is_empty() => Err(usage(format!(
            "RUN {typed:?}: {} runs end so; type more of the id",
            ending.len()
        ))),
        _ => Err(usage(format!(
            "RUN {typed:?}: no run in {} has this id; `sixb runs list` shows them",
            folder.display()
        ))),
    }
}

/// Text that somebody said, line by line.
fn block(who: &str, text: &str) -> Result<()> {
    stdout::line(&format!("{who}:"))?;
    for line in text.lines() {
        stdout::line(&format!("  {}", terminal::plain(line)))?;
    }
    Ok(())
}

fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
