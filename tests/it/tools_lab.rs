//! A registry of the sandbox tools with a real local sandbox behind it.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use sixb_artifacts::{
    Budget, RunFiles,
    store::{ArtifactStore, BlobStore},
};
use sixb_sandbox::{CreateOptions, FileWrite, LazySandbox, Sandbox, SandboxPath};
use sixb_sandbox_local::LocalSandboxFactory;
use sixb_tools::{
    CancellationToken, ToolContext, ToolContextBuilder, ToolError, ToolRegistry,
    sandbox::materialise_in, sandbox_tools,
};

/// A guard against waiting for ever, far beyond what any machine needs: no measurement.
pub(crate) async fn unless_hung<F: Future>(work: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("nothing hangs")
}

pub(crate) struct Lab {
    pub(crate) tools: ToolRegistry,
    pub(crate) lazy: LazySandbox,
    pub(crate) artifacts: ArtifactStore,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let lazy = LazySandbox::boot(
            Arc::new(LocalSandboxFactory::default()),
            CreateOptions::default(),
        );
        let tools = ToolRegistry::builder()
            .tools(sandbox_tools())
            .build()
            .expect("registry");
        let artifacts = ArtifactStore::new(
            BlobStore::memory(),
            Budget::default(),
            RunFiles::default(),
            materialise_in(lazy.clone()),
        );
        Self {
            tools,
            lazy,
            artifacts,
        }
    }

    pub(crate) fn cx(&self, call_id: &str) -> ToolContextBuilder {
        ToolContext::builder(call_id)
            .extension(self.lazy.clone())
            .extension(self.artifacts.call(call_id, CancellationToken::new()))
            .extension(self.artifacts.files().clone())
    }

    pub(crate) async fn call(
        &self,
        call_id: &str,
        tool: &str,
        input: Value,
    ) -> Result<Value, ToolError> {
        let call = self.tools.call(tool, self.cx(call_id).build(), input);
        unless_hung(call).await.map(|output| output.to_json())
    }

    /// A call that must give a result.
    pub(crate) async fn ok(&self, call_id: &str, tool: &str, input: Value) -> Value {
        self.call(call_id, tool, input.clone())
            .await
            .unwrap_or_else(|error| panic!("{tool} {input}: {error:?}"))
    }

    /// `bash` with a command alone.
    pub(crate) async fn sh(&self, command: &str) -> Value {
        self.ok("sh", "bash", serde_json::json!({"command": command}))
            .await
    }

    pub(crate) async fn sandbox(&self) -> Arc<dyn Sandbox> {
        self.lazy.get().await.expect("boot")
    }

    pub(crate) async fn write(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        let file = FileWrite::new(SandboxPath::parse(path).expect("path"), bytes.into());
        self.sandbox()
            .await
            .write_files(vec![file])
            .await
            .expect("write");
    }

    pub(crate) async fn end(self) {
        self.lazy.destroy().await.expect("destroy");
    }
}
