//! The factory of one run: boots a sandbox of the project's factory and puts the run's files in place, as one step.
//!
//! A `LazySandbox` never drops a boot half-way: it cancels it and waits. So nothing here guards against a drop.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use sixb_sandbox::{
    Capabilities, CreateOptions, Result, Sandbox, SandboxError, SandboxFactory, SandboxRecord,
    Workspace,
};

use super::{
    brought::PlacedFiles,
    claim::Claim,
    layout::Identity,
    prepared::{ForeignOutputs, PreparedSandbox},
};

/// What a run does to its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    /// It has context files and output directories: not in a read-only workspace.
    pub(super) writes_files: bool,
    /// It removes them in the end: not in a workspace that goes away by itself.
    pub(super) cleans_up: bool,
}

impl Plan {
    fn of(workspace: Option<&Workspace>) -> Self {
        match workspace {
            Some(Workspace::Empty) => Self {
                writes_files: true,
                cleans_up: false,
            },
            Some(Workspace::HostFolder {
                read_only: true, ..
            }) => Self {
                writes_files: false,
                cleans_up: false,
            },
            // The factory's default may be a host folder: looking costs one call.
            _ => Self {
                writes_files: true,
                cleans_up: true,
            },
        }
    }
}

/// Told how the boot went and how long it took.
pub(crate) type BootReport = Box<dyn Fn(&Result<Arc<dyn Sandbox>>, Duration) + Send + Sync>;

/// Makes the sandbox of one run.
pub(crate) struct RunSandboxes {
    pub(crate) inner: Arc<dyn SandboxFactory>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) report: BootReport,
    /// The right to write to the workspace, where it outlives the sandbox.
    pub(crate) claim: Option<Arc<Claim>>,
    /// Written at the boot.
    pub(crate) brought: PlacedFiles,
    /// Set by the boot.
    pub(crate) foreign: Arc<OnceLock<ForeignOutputs>>,
}

impl RunSandboxes {
    /// Whether a run in this workspace has an output directory.
    pub(crate) fn has_outputs(workspace: Option<&Workspace>) -> bool {
        Plan::of(workspace).writes_files
    }
}

#[async_trait]
impl SandboxFactory for RunSandboxes {
    fn provider(&self) -> &'static str {
        self.inner.provider()
    }

    async fn create(&self, options: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        let begun = Instant::now();
        let made = self.boot(options).await;
        (self.report)(&made, begun.elapsed());
        made
    }

    async fn probe(&self) -> Result<Capabilities> {
        self.inner.probe().await
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        self.inner.list().await
    }

    async fn sweep(&self) -> Result<Vec<String>> {
        self.inner.sweep().await
    }
}

impl RunSandboxes {
    async fn boot(&self, options: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        let plan = Plan::of(options.workspace.as_ref());
        let cancel = options.cancel.clone();
        let sandbox = self.inner.create(options).await?;
        let prepared = PreparedSandbox::prepare(
            sandbox.clone(),
            &self.identity,
            plan,
            &self.brought,
            self.claim.as_deref(),
        )
        .await;
        let error = match prepared {
            Ok(prepared) if !cancel.is_cancelled() => {
                let _ = self.foreign.set(prepared.foreign_outputs().clone());
                return Ok(Arc::new(prepared));
            }
            Ok(prepared) => {
                prepared.clean_up().await;
                SandboxError::Cancelled { op: "boot" }
            }
            Err(error) => error,
        };
        if let Err(error) = sandbox.destroy().await {
            tracing::warn!("a sandbox that could not be prepared is not destroyed: {error}");
        }
        Err(error)
    }
}

impl fmt::Display for RunSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Debug for RunSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSandboxes")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
