//! The factory of one run: boots a sandbox of the project's factory and puts the run's files in place, as one step.
//!
//! The work is a task of its own: a boot that is given up half-way still removes what it wrote and destroys what it made.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use sixb_sandbox::{
    CancellationToken, Capabilities, CreateOptions, Result, Sandbox, SandboxError, SandboxFactory,
    SandboxRecord, Workspace,
};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::{
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
    pub(crate) report: Arc<BootReport>,
    /// Set by the boot.
    pub(crate) foreign: Arc<OnceLock<ForeignOutputs>>,
    /// Boots that were given up and still clean up.
    pub(crate) tasks: TaskTracker,
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

    async fn create(&self, mut options: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        let cancel = options.cancel.child_token();
        options.cancel = cancel.clone();
        let (sender, receiver) = oneshot::channel();
        let (inner, identity, report) = (
            self.inner.clone(),
            self.identity.clone(),
            self.report.clone(),
        );
        let foreign = self.foreign.clone();
        self.tasks.spawn(async move {
            let begun = Instant::now();
            let made = boot(&*inner, &identity, options, &foreign).await;
            report(&made, begun.elapsed());
            // Nobody waits any more: the boot was given up in its last moment.
            if let Err(Ok(sandbox)) = sender.send(made)
                && let Err(error) = sandbox.destroy().await
            {
                tracing::warn!("a sandbox whose boot was given up is not destroyed: {error}");
            }
        });
        let given_up = cancel.drop_guard();
        let made = receiver.await;
        given_up.disarm();
        made.unwrap_or_else(|_| Err(SandboxError::provider("boot", "the boot panicked", None)))
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

async fn boot(
    factory: &dyn SandboxFactory,
    identity: &Identity,
    options: CreateOptions,
    foreign: &OnceLock<ForeignOutputs>,
) -> Result<Arc<dyn Sandbox>> {
    let plan = Plan::of(options.workspace.as_ref());
    let cancel: CancellationToken = options.cancel.clone();
    let sandbox = factory.create(options).await?;
    let prepared = PreparedSandbox::prepare(sandbox.clone(), identity, plan).await;
    let error = match prepared {
        Ok(prepared) if !cancel.is_cancelled() => {
            let _ = foreign.set(prepared.foreign_outputs().clone());
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
