//! Factories that fail, and short ways to build and follow a run.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use sixb_agent::{Agent, Outcome, Run, RunEvent, RunRequest, ScriptedModel, Sixb};
use sixb_sandbox::{
    Capabilities, CreateOptions, Result, Sandbox, SandboxError, SandboxFactory, SandboxRecord,
};
use sixb_tools::{AgentTool, Tool, ToolContext, ToolError};

/// How a factory fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// At once.
    Refuses,
    /// It boots until it is cancelled.
    Hangs,
    /// It boots for ever.
    Deaf,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl SandboxFactory for Fault {
    fn provider(&self) -> &'static str {
        "faulty"
    }

    async fn create(&self, options: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        match self {
            Self::Refuses => Err(SandboxError::IsolationUnavailable {
                what: "user namespaces are blocked".into(),
                remedy: "Ask the operator.".into(),
            }),
            Self::Hangs => {
                options.cancel.cancelled().await;
                Err(SandboxError::Cancelled { op: "create" })
            }
            Self::Deaf => std::future::pending().await,
        }
    }

    async fn probe(&self) -> Result<Capabilities> {
        Err(SandboxError::provider("probe", "faulty", None))
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        Ok(Vec::new())
    }

    async fn sweep(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Wait {
    /// How long to wait, in milliseconds.
    pub(crate) ms: u64,
}

/// Waits and says so.
pub(crate) fn wait() -> Arc<dyn Tool> {
    AgentTool::new("wait")
        .description("Waits.")
        .run(|_cx: ToolContext, input: Wait| async move {
            tokio::time::sleep(Duration::from_millis(input.ms)).await;
            Ok::<_, ToolError>(input.ms)
        })
        .expect("tool")
}

/// Panics.
pub(crate) fn explode() -> Arc<dyn Tool> {
    AgentTool::new("explode")
        .description("Panics.")
        .run(|_cx: ToolContext, input: Wait| async move {
            assert_ne!(input.ms, 7, "boom");
            Ok::<_, ToolError>(input.ms)
        })
        .expect("tool")
}

/// A project of one agent `a` that plays `script`.
pub(crate) fn project(
    fault: Fault,
    script: Value,
    change: impl FnOnce(sixb_agent::AgentBuilder) -> sixb_agent::AgentBuilder,
) -> Sixb {
    let model = ScriptedModel::from_json(&script.to_string()).expect("script");
    let agent = Agent::builder("a")
        .model(model)
        .tool(wait())
        .tool(explode());
    Sixb::builder("p")
        .sandboxes(fault)
        .blobs(sixb_artifacts::store::BlobStore::memory())
        .agent(change(agent))
        .build()
        .expect("project")
}

pub(crate) async fn start(sixb: &Sixb) -> Run {
    sixb.run(RunRequest::new("a", "do it")).await.expect("run")
}

/// Plays a script to its end.
pub(crate) async fn outcome(fault: Fault, script: Value) -> Outcome {
    let sixb = project(fault, script, |agent| agent);
    start(&sixb).await.finish().await.expect("outcome")
}

/// All events of a run as JSON, and its outcome.
pub(crate) async fn follow(run: Run) -> (Vec<Value>, Outcome) {
    let events: Vec<RunEvent> = run.collect().await;
    let Some(RunEvent::Finished { outcome }) = events.last() else {
        panic!("the last event is not `finished`: {events:?}");
    };
    let outcome = outcome.clone();
    (
        events
            .iter()
            .map(|event| serde_json::to_value(event).expect("json"))
            .collect(),
        outcome,
    )
}

/// The events of one type.
pub(crate) fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}
