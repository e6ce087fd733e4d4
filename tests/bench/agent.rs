//! What the run loop costs beside its model and its tools.

use std::{
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use serde_json::{Value, json};
use sixb_agent::{Agent, RunEvent, RunRequest, ScriptedModel, Sixb};
use sixb_sandbox::{
    Capabilities, CreateOptions, Sandbox, SandboxError, SandboxFactory, SandboxRecord,
};
use sixb_tools::{AgentTool, Tool, ToolContext, ToolError, schemars};

use crate::figure::{Report, median, ms};

const STEPS: u32 = 24;
const RUNS: usize = 200;

/// A run that never uses its sandbox does not wait for it.
#[derive(Debug)]
struct NoSandboxes;

impl fmt::Display for NoSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("none")
    }
}

#[sixb_tools::async_trait]
impl SandboxFactory for NoSandboxes {
    fn provider(&self) -> &'static str {
        "none"
    }

    async fn create(&self, options: CreateOptions) -> sixb_sandbox::Result<Arc<dyn Sandbox>> {
        options.cancel.cancelled().await;
        Err(SandboxError::Cancelled { op: "create" })
    }

    async fn probe(&self) -> sixb_sandbox::Result<Capabilities> {
        Err(SandboxError::provider("probe", "none", None))
    }

    async fn list(&self) -> sixb_sandbox::Result<Vec<SandboxRecord>> {
        Ok(Vec::new())
    }

    async fn sweep(&self) -> sixb_sandbox::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wait {
    /// In milliseconds.
    ms: u64,
}

fn wait() -> Arc<dyn Tool> {
    AgentTool::new("wait")
        .description("Waits.")
        .run(|_cx: ToolContext, input: Wait| async move {
            if input.ms > 0 {
                tokio::time::sleep(Duration::from_millis(input.ms)).await;
            }
            Ok::<_, ToolError>(input.ms)
        })
        .expect("tool")
}

fn project(steps: Vec<Value>) -> Sixb {
    let model = ScriptedModel::from_json(&json!({"steps": steps}).to_string()).expect("script");
    let agent = Agent::builder("a").model(model).tool(wait());
    Sixb::builder("p")
        .sandboxes(NoSandboxes)
        .blobs(sixb_artifacts::store::BlobStore::memory())
        .agent(agent)
        .build()
        .expect("project")
}

fn step(ms: u64) -> Value {
    json!({"toolCalls": [{"name": "wait", "arguments": {"ms": ms}}]})
}

pub(crate) async fn run(report: &mut Report) {
    if !report.wants("agent") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let script = |calls: u32| {
        let mut steps = vec![step(0); calls as usize];
        steps.push(json!({"text": "Done."}));
        project(steps)
    };
    // What a run costs besides its steps (its start, its files) is in both, and falls out.
    let (long, short) = (script(STEPS), script(0));
    let mut each = Vec::new();
    for _ in 0..60 {
        let difference = outcome(&long, folder.path()).await - outcome(&short, folder.path()).await;
        each.push(difference / f64::from(STEPS));
    }
    report.value(
        "agent: a step with an instant model, a call, a transcript",
        "ms",
        median(each.into_iter().skip(10)),
        1.0,
    );

    // All runs sit in a call at the same time.
    let sixb = project(vec![step(3_000), json!({"text": "Done."})]);
    let warm = sixb.run(RunRequest::new("a", "go").timeout(Duration::from_millis(50)));
    warm.await.expect("run").finish().await.expect("outcome");
    let before = resident_kib();
    let begun = Instant::now();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let request = RunRequest::new("a", "go").transcripts(folder.path());
        runs.push(sixb.run(request).await.expect("run"));
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let memory = (resident_kib() - before) / 1024.0 / RUNS as f64;
    let outcomes = futures::future::join_all(runs.into_iter().map(|run| run.finish())).await;
    let elapsed = begun.elapsed().as_secs_f64();
    let completed = outcomes
        .iter()
        .flatten()
        .filter(|outcome| outcome.completed())
        .count();
    report.value(
        "agent: memory of each of 200 runs at once",
        "MiB",
        memory,
        4.0,
    );
    report.value(
        "agent: of 200 runs at once, not completed",
        "runs",
        (RUNS - completed) as f64,
        0.0,
    );
    report.value(
        "agent: 200 runs at once, each with a call of 3 s",
        "s",
        elapsed,
        6.0,
    );
}

/// From the request to the outcome, in milliseconds. After that the transcript is synced, which is the disk's time.
async fn outcome(sixb: &Sixb, folder: &Path) -> f64 {
    let begun = Instant::now();
    let request = RunRequest::new("a", "go").transcripts(folder);
    let mut run = sixb.run(request).await.expect("run");
    let mut taken = f64::NAN;
    while let Some(event) = run.next().await {
        if let RunEvent::Finished { outcome } = event {
            assert!(outcome.completed(), "{}", outcome.status);
            taken = ms(begun.elapsed());
        }
    }
    taken
}

/// Memory of this process.
fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    kib.expect("a number")
}
