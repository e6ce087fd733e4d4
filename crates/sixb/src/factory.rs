//! The sandbox factory of this process, and the end of what it made.

use std::{sync::Arc, time::Duration};

use sixb_sandbox::SandboxFactory;
use sixb_sandbox_local::LocalSandboxFactory;

use crate::terminal;

/// How long the end of a sandbox may take before the process ends without it; the next sweep removes the rest.
pub(crate) const DESTROY_TIME: Duration = Duration::from_secs(10);

/// The local factory.
pub(crate) fn local() -> Arc<dyn SandboxFactory> {
    Arc::new(LocalSandboxFactory::default())
}

/// Waits for the end of a sandbox. A failure is told but does not change how the command itself ended.
pub(crate) async fn destroyed(destroy: impl Future<Output = sixb_sandbox::Result<()>>) {
    match tokio::time::timeout(DESTROY_TIME, destroy).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => terminal::note(&format!(
            "the sandbox was not removed: {error}; `sixb sandbox sweep` removes it"
        )),
        Err(_) => terminal::note(
            "the sandbox is not removed yet; `sixb sandbox sweep` removes what is left",
        ),
    }
}
