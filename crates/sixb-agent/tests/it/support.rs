//! Factories that fail, and short ways to build and follow a run.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

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
use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record as Values},
};
use tracing_core::span::Current;

/// Keeps what is traced: a line per event, and one per span that grows as it is recorded.
#[derive(Clone, Default)]
pub(crate) struct Recorder {
    lines: Arc<Mutex<Vec<String>>>,
    spans: Arc<Mutex<Spans>>,
}

#[derive(Default)]
struct Spans {
    /// The place of a span's line, and what it is; its id is its place here, from 1.
    all: Vec<(usize, &'static Metadata<'static>)>,
    entered: Vec<Id>,
}

impl Recorder {
    pub(crate) fn lines(&self) -> Arc<Mutex<Vec<String>>> {
        self.lines.clone()
    }
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = format!("span {}", span.metadata().name());
        span.record(&mut Fields(&mut line));
        let mut lines = self.lines.lock().expect("lines");
        lines.push(line);
        let mut spans = self.spans.lock().expect("spans");
        spans.all.push((lines.len() - 1, span.metadata()));
        Id::from_u64(spans.all.len() as u64)
    }

    fn record(&self, span: &Id, values: &Values<'_>) {
        let place = self.spans.lock().expect("spans").all[span.into_u64() as usize - 1].0;
        values.record(&mut Fields(&mut self.lines.lock().expect("lines")[place]));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = "event".to_owned();
        event.record(&mut Fields(&mut line));
        self.lines.lock().expect("lines").push(line);
    }

    fn enter(&self, span: &Id) {
        self.spans.lock().expect("spans").entered.push(span.clone());
    }

    fn exit(&self, _: &Id) {
        self.spans.lock().expect("spans").entered.pop();
    }

    fn current_span(&self) -> Current {
        let spans = self.spans.lock().expect("spans");
        match spans.entered.last() {
            Some(id) => Current::new(id.clone(), spans.all[id.into_u64() as usize - 1].1),
            None => Current::none(),
        }
    }
}

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
