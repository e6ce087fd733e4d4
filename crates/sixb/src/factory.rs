//! The sandbox factory of this process, and the end of what it made.

use std::{sync::Arc, time::Duration};

use sixb_sandbox::{CreateOptions, SandboxFactory};
use sixb_sandbox_local::LocalSandboxFactory;
use sixb_sandbox_smolvm::SmolvmSandboxFactory;

use crate::{terminal, values::Provider};

/// How long the end of a sandbox may take before the process ends without it; the next sweep removes the rest.
pub(crate) const DESTROY_TIME: Duration = Duration::from_secs(10);

/// The local factory.
pub(crate) fn local() -> Arc<dyn SandboxFactory> {
    Arc::new(LocalSandboxFactory::default())
}

/// The factory of a provider.
pub(crate) fn of(provider: Provider) -> Arc<dyn SandboxFactory> {
    match provider {
        Provider::Local => local(),
        Provider::Smolvm => Arc::new(smolvm()),
    }
}

/// The factory of microVMs.
pub(crate) fn smolvm() -> SmolvmSandboxFactory {
    SmolvmSandboxFactory::default()
}

/// Tells on stderr what the sandbox of these options tries to reach and may not. Needs a runtime.
pub(crate) fn tell_denials(options: CreateOptions) -> CreateOptions {
    // What comes faster than it can be told is counted in the next one.
    let (sender, mut denials) = tokio::sync::mpsc::channel::<sixb_sandbox::NetworkDenial>(64);
    tokio::spawn(async move {
        while let Some(denial) = denials.recv().await {
            let more = match denial.missed {
                0 => String::new(),
                missed => format!("; {missed} more before it"),
            };
            terminal::note(&format!(
                "the sandbox may not reach {} ({}{more}); --net allows origins",
                terminal::plain(&denial.target),
                denial.reason
            ));
        }
    });
    options.on_denied(sender)
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
