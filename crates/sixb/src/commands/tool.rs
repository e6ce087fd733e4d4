//! `sixb tool`: calls tools as an agent would, one or a batch of them.

mod batch;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::FutureExt;
use serde_json::{Value, json};
use sixb_artifacts::{Budget, RunFiles, store::ArtifactStore};
use sixb_sandbox::LazySandbox;
use sixb_tools::{
    RunInfo, RunKind, ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolRegistry,
    sandbox::materialise_in, sandbox_tools,
};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use crate::{
    blobs,
    cli::ToolArgs,
    config::Config,
    factory,
    failure::{Exit, usage},
    interrupt, stdout, terminal,
};

/// Longest input of one call, in bytes.
const MAX_INPUT: u64 = 8 << 20;

pub(super) async fn run(args: ToolArgs, config: &Config) -> Result<Exit> {
    let registry = ToolRegistry::builder().tools(sandbox_tools()).build()?;
    if args.list {
        return list(&registry, args.json);
    }
    let choice = args.sandbox.resolve(config)?;
    let blobs = blobs::store(&args.blobs, config)?;
    blobs::check(&blobs, &choice.options)?;
    let cancel = interrupt::watch()?;
    let input = match args.input.as_deref() {
        Some("-") => read_input().await?,
        Some(text) => text.to_owned(),
        None => String::new(),
    };
    // The boot goes on while the input is checked; an input that is wrong ends it.
    let starting = choice.starting();
    let sandbox = LazySandbox::boot(
        factory::of(choice.provider),
        factory::tell_denials(choice.options).cancel(cancel.clone()),
    );
    let calls = Calls {
        starting,
        artifacts: ArtifactStore::new(
            blobs,
            Budget::default(),
            RunFiles::default(),
            materialise_in(sandbox.clone()),
        ),
        sandbox,
        run: Arc::new(RunInfo::new(
            ulid::Ulid::new().to_string(),
            "cli",
            RunKind::Cli,
        )),
        timeout: choice.timeout.map(|(_, timeout)| timeout.0),
        registry,
        cancel,
    };
    let ended = match args.name.as_deref() {
        Some(name) => calls.one(name, &input).await,
        None => batch::run(&calls).await,
    };
    factory::destroyed(calls.sandbox.destroy()).await;
    ended
}

fn list(registry: &ToolRegistry, as_json: bool) -> Result<Exit> {
    if as_json {
        let tools: Vec<Value> = registry
            .specs()
            .map(|spec| json!({"name": spec.name.as_str(), "description": spec.description, "inputSchema": spec.input_schema}))
            .collect();
        stdout::json(&tools)?;
    } else {
        for spec in registry.specs() {
            stdout::line(&format!(
                "{}\t{}",
                spec.name,
                spec.description.lines().next().unwrap_or_default()
            ))?;
        }
    }
    Ok(Exit::OK)
}

/// The input of one call, when it is `-`.
async fn read_input() -> Result<String> {
    let mut text = String::new();
    tokio::io::stdin()
        .take(MAX_INPUT + 1)
        .read_to_string(&mut text)
        .await
        .context("JSON -: reading stdin")?;
    if text.len() as u64 > MAX_INPUT {
        return Err(usage(format!(
            "JSON -: stdin holds more than {MAX_INPUT} bytes; put long material into a file of --workspace"
        )));
    }
    Ok(text)
}

/// What the calls of one command share.
struct Calls {
    registry: ToolRegistry,
    sandbox: LazySandbox,
    artifacts: ArtifactStore,
    run: Arc<RunInfo>,
    timeout: Option<Duration>,
    /// What failed when the sandbox does not start.
    starting: String,
    cancel: CancellationToken,
}

impl Calls {
    fn context(&self, id: &str) -> ToolContext {
        let cancel = self.cancel.child_token();
        let context = ToolContext::builder(id)
            .run(self.run.clone())
            .cancel(cancel.clone())
            .extension(self.artifacts.call(id, cancel))
            .extension(self.artifacts.files().clone())
            .extension(self.sandbox.clone());
        match self.timeout {
            Some(timeout) => context.deadline(Instant::now() + timeout).build(),
            None => context.build(),
        }
    }

    /// One call: its result or error as a line of JSON.
    async fn one(&self, name: &str, input: &str) -> Result<Exit> {
        let result: Result<ToolOutput, ToolError> = self
            .registry
            .call_json(name, self.context("call_1"), input)
            .await;
        match result {
            Ok(output) => {
                stdout::json(&output)?;
                Ok(if self.cancel.is_cancelled() {
                    Exit::CANCELLED
                } else {
                    Exit::OK
                })
            }
            Err(error) => {
                stdout::json(&error.to_json())?;
                // The model's text keeps back what only the person at the machine can act on.
                if let Some(Err(boot)) = self.sandbox.get().now_or_never() {
                    terminal::error(&format!("{}: {boot}", self.starting));
                } else if let Some(told) = kept_back(&error) {
                    terminal::error(&terminal::plain(&told));
                }
                Ok(if error.kind() == ToolErrorKind::Cancelled {
                    Exit::CANCELLED
                } else {
                    Exit::FAILED
                })
            }
        }
    }
}

/// What the person at the machine may read of an error beyond what is on stdout, with each text once.
fn kept_back(error: &ToolError) -> Option<String> {
    let (said, whole) = (
        format!("{}: {}", error.kind(), error.model_text()),
        error.operator_text(),
    );
    let mut rest = whole.strip_prefix(&said)?.to_owned();
    let mut cause = error
        .source()
        .map(|source| source as &dyn std::error::Error);
    while let Some(error) = cause {
        let text = error.to_string();
        if said.contains(&text) {
            rest = rest.replacen(&format!(": {text}"), "", 1);
        }
        cause = error.source();
    }
    (!rest.is_empty()).then(|| format!("{said}{rest}"))
}
