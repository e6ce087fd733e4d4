//! Where an attack takes place: a factory with a state folder of its own, and bait on the host.

use std::{sync::Arc, time::Duration};

use sixb_sandbox::{
    Command, CommandOutput, CreateOptions, FileWrite, Sandbox, SandboxExt, SandboxFactory,
    SandboxPath, SandboxStatus, Workspace,
};
use sixb_sandbox_local::LocalSandboxFactory;
use tempfile::TempDir;

use crate::bait::Bait;

/// No call of an attack takes longer, whatever the guest does.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Arena {
    pub(crate) factory: LocalSandboxFactory,
    pub(crate) bait: Bait,
    pub(crate) state: TempDir,
}

impl Arena {
    pub(crate) fn new() -> Self {
        let state = tempfile::tempdir().expect("state folder");
        let bait = Bait::lay();
        let factory = LocalSandboxFactory::default()
            .state_dir(state.path())
            .read_only_path(bait.shown(), "/data");
        Self {
            factory,
            bait,
            state,
        }
    }

    pub(crate) async fn sandbox(&self, options: CreateOptions) -> Arc<dyn Sandbox> {
        self.factory.create(options).await.expect("a sandbox")
    }

    /// A sandbox whose working directory is `folder` of the host.
    pub(crate) async fn on_folder(&self, folder: &std::path::Path) -> Arc<dyn Sandbox> {
        let workspace = Workspace::HostFolder {
            path: folder.to_owned(),
            read_only: false,
        };
        self.sandbox(CreateOptions::default().workspace(workspace))
            .await
    }
}

/// Runs a command to its end, which comes.
pub(crate) async fn run(sandbox: &Arc<dyn Sandbox>, command: Command) -> CommandOutput {
    tokio::time::timeout(PATIENCE, sandbox.run(command))
        .await
        .expect("no command hangs")
        .expect("an output")
}

/// Both streams of a script.
pub(crate) async fn sh(sandbox: &Arc<dyn Sandbox>, script: &str) -> String {
    let output = run(sandbox, Command::script(script)).await;
    output.stdout.text() + &output.stderr.text()
}

/// Compiles a C program in the sandbox, to `/tmp/NAME`.
pub(crate) async fn compile(sandbox: &Arc<dyn Sandbox>, name: &str, source: &str) {
    let script = format!("gcc -O1 -x c -o /tmp/{name} -");
    let output = run(
        sandbox,
        Command::script(script).stdin_bytes(source.to_owned()),
    )
    .await;
    assert!(output.success(), "{name}: {}", output.stderr.text());
}

pub(crate) fn path(text: &str) -> SandboxPath {
    SandboxPath::parse(text).expect("a path inside")
}

pub(crate) async fn write(sandbox: &Arc<dyn Sandbox>, name: &str, text: &str) {
    let file = FileWrite::new(path(name), text.to_owned());
    sandbox.write_files(vec![file]).await.expect("written");
}

/// What is left of a sandbox after an attack: it must answer, and fast. `None` = it does.
pub(crate) async fn unwell(sandbox: &Arc<dyn Sandbox>) -> Option<String> {
    if sandbox.status() != SandboxStatus::Running {
        return Some(format!("the sandbox is {}", sandbox.status()));
    }
    let answer = tokio::time::timeout(Duration::from_secs(10), sandbox.sh("echo on")).await;
    match answer {
        Ok(Ok(output)) if output.stdout.text() == "on\n" => None,
        answer => Some(format!("the sandbox does not answer: {answer:?}")),
    }
}

/// `destroy`, within some seconds, and nothing is left on the host.
pub(crate) async fn destroyed(arena: &Arena, sandbox: Arc<dyn Sandbox>) -> Option<String> {
    match tokio::time::timeout(Duration::from_secs(30), sandbox.destroy()).await {
        Ok(Ok(())) => {}
        result => return Some(format!("destroy: {result:?}")),
    }
    let left = std::fs::read_dir(arena.state.path().join("sandboxes/local"));
    let left = left.map_or(0, |entries| entries.count());
    (left > 0).then(|| format!("{left} folders are left"))
}
