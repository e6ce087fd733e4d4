//! A sandbox that boots at once, in the background, and is awaited at first use.

use std::sync::Arc;

use crate::{CreateOptions, Result, Sandbox, SandboxFactory};

/// A sandbox whose boot began already. Cheap to clone; all clones share one boot.
#[derive(Debug, Clone)]
pub struct LazySandbox {}

impl LazySandbox {
    /// Begins the boot now, on the current tokio runtime.
    pub fn boot(factory: Arc<dyn SandboxFactory>, options: CreateOptions) -> Self {
        let _ = (factory, options);
        Self {}
    }

    /// The sandbox, once it is up. A boot failure is told to everyone who asks; it can be asked any number of times.
    /// Dropping this future does not end the boot.
    pub async fn get(&self) -> Result<Arc<dyn Sandbox>> {
        std::future::pending().await
    }

    /// The sandbox, if it is up already.
    pub fn ready(&self) -> Option<Arc<dyn Sandbox>> {
        None
    }

    /// Whether someone ever asked for it.
    pub fn used(&self) -> bool {
        false
    }

    /// Ends the boot or destroys the sandbox, and waits for it. Idempotent; later `get`s fail.
    pub async fn destroy(&self) -> Result<()> {
        Ok(())
    }
}
