//! Network policy `restricted`: real programs, unchanged, inside a sandbox, against servers on the host's loopback.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out folders of the host and start servers there"
)]

mod attacks;
mod curl;
mod ends;
mod programs;
mod site;

use std::{sync::Arc, time::Duration};

use sixb_sandbox::{
    AllowedOrigin, Command, CommandOutput, CreateOptions, FileWrite, NetworkDenial, NetworkPolicy,
    Sandbox, SandboxFactory, SandboxPath,
};
use sixb_sandbox_local::LocalSandboxFactory;
use tempfile::TempDir;
use tokio::sync::mpsc;

use site::Site;

/// A sandbox with a list, and what it was denied.
struct Guest {
    sandbox: Arc<dyn Sandbox>,
    denials: mpsc::Receiver<NetworkDenial>,
    _state: TempDir,
}

impl Guest {
    /// A sandbox that may reach `allowed`.
    async fn new(allowed: Vec<AllowedOrigin>) -> Self {
        Self::with(LocalSandboxFactory::default(), allowed).await
    }

    /// A sandbox that may reach these names of a site, and trusts its certificate as `ca.pem`.
    async fn of(site: &Site, origins: &[&str]) -> Self {
        let guest = Self::new(origins.iter().map(|origin| site.allow(origin)).collect()).await;
        guest.write("ca.pem", site.authority()).await;
        guest
    }

    async fn with(factory: LocalSandboxFactory, allowed: Vec<AllowedOrigin>) -> Self {
        let state = tempfile::tempdir().expect("state folder");
        let (sender, denials) = mpsc::channel(64);
        let options = CreateOptions::default()
            .network(NetworkPolicy::Restricted(allowed))
            .on_denied(sender);
        let factory = factory.state_dir(state.path());
        Self {
            sandbox: factory.create(options).await.expect("sandbox"),
            denials,
            _state: state,
        }
    }

    async fn write(&self, path: &str, content: String) {
        let path = SandboxPath::parse(path).expect(path);
        let written = self
            .sandbox
            .write_files(vec![FileWrite::new(path, content)])
            .await;
        written.expect("written");
    }

    async fn run(&self, script: &str) -> CommandOutput {
        let command = Command::script(script).timeout(Duration::from_secs(60));
        self.sandbox.run(command).await.expect("a command")
    }

    /// Both streams of a script, whatever its exit code.
    async fn sh(&self, script: &str) -> String {
        let output = self.run(script).await;
        assert!(!output.timed_out, "{script} hangs");
        format!("{}{}", output.stdout.text(), output.stderr.text())
    }

    /// Runs a program of Python.
    async fn python(&self, script: &str) -> String {
        let command = Command::argv(["python3", "-c", script]).timeout(Duration::from_secs(60));
        let output = self.sandbox.run(command).await.expect("a command");
        assert!(!output.timed_out, "{script} hangs");
        format!("{}{}", output.stdout.text(), output.stderr.text())
    }

    /// What was denied since the last call: `target reason`.
    fn denied(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.denials.try_recv().ok())
            .map(|denial| format!("{} {}", denial.target, denial.reason))
            .collect()
    }

    async fn done(self) {
        self.sandbox.destroy().await.expect("destroyed");
    }
}
