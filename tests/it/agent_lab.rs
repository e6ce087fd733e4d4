//! Scripted runs in a real local sandbox.

use std::{path::Path, sync::Arc, time::Duration};

use serde_json::{Value, json};
use sixb_agent::{Agent, AgentBuilder, Outcome, Run, RunRequest, ScriptedModel, Sixb};
use sixb_artifacts::store::BlobStore;
use sixb_sandbox::{CreateOptions, Workspace};
use sixb_sandbox_local::LocalSandboxFactory;
use tempfile::TempDir;

pub(crate) struct AgentLab {
    pub(crate) sixb: Sixb,
    /// Outputs and transcripts.
    pub(crate) out: TempDir,
    state: TempDir,
}

/// A step of one `bash` call.
pub(crate) fn bash(id: &str, command: &str) -> Value {
    json!({"toolCalls": [{"id": id, "name": "bash", "arguments": {"command": command}}]})
}

impl AgentLab {
    pub(crate) fn new(steps: Value, change: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Self {
        let model = ScriptedModel::from_json(&json!({"steps": steps}).to_string()).expect("script");
        let agent = Agent::builder("a").model(Arc::new(model));
        let sixb = Sixb::builder("acme")
            .sandboxes(LocalSandboxFactory::default())
            .blobs(BlobStore::memory())
            .agent(change(agent))
            .build();
        Self {
            sixb: sixb.expect("project"),
            out: tempfile::tempdir().expect("folder"),
            state: tempfile::tempdir().expect("folder"),
        }
    }

    pub(crate) fn request(&self) -> RunRequest {
        RunRequest::new("a", "do it")
            .outputs(self.out.path())
            .transcripts(self.out.path())
            .state(self.state.path())
    }

    pub(crate) async fn start(&self, request: RunRequest) -> Run {
        self.sixb.run(request).await.expect("run")
    }

    pub(crate) async fn play(&self, request: RunRequest) -> Outcome {
        let run = self.start(request).await;
        let end = tokio::time::timeout(Duration::from_secs(60), run.finish()).await;
        end.expect("no run hangs").expect("outcome")
    }
}

/// Plays steps in an empty workspace.
pub(crate) async fn play(steps: Value) -> (AgentLab, Outcome) {
    let lab = AgentLab::new(steps, |agent| agent);
    let outcome = lab.play(lab.request()).await;
    (lab, outcome)
}

pub(crate) fn in_folder(path: &Path, read_only: bool) -> CreateOptions {
    CreateOptions::default().workspace(Workspace::HostFolder {
        path: path.to_owned(),
        read_only,
    })
}

/// What `codes` of diagnostics an outcome has, with their paths.
pub(crate) fn codes(outcome: &Outcome) -> Vec<(&str, Option<&str>)> {
    let diagnostics = outcome.diagnostics.iter();
    diagnostics
        .map(|diagnostic| (diagnostic.code.as_str(), diagnostic.path.as_deref()))
        .collect()
}
