//! A sandbox that boots at once, in the background, and is awaited at first use.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{CreateOptions, Result, Sandbox, SandboxError, SandboxFactory, SandboxStatus};

/// A sandbox whose boot began already. Cheap to clone; all clones share one boot, and together they own the sandbox:
/// when the last clone is dropped it is destroyed in the background, whoever still holds what [`get`](Self::get) gave.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use sixb_sandbox::{CreateOptions, LazySandbox, SandboxExt, SandboxFactory};
/// # async fn example(factory: Arc<dyn SandboxFactory>) -> sixb_sandbox::Result<()> {
/// let sandbox = LazySandbox::boot(factory, CreateOptions::default());
/// // … ask the model, which takes a second; the sandbox is up by then …
/// let output = sandbox.get().await?.sh("uname -a").await?;
/// sandbox.destroy().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LazySandbox {
    shared: Arc<Shared>,
    /// Begins the end when the last clone goes.
    _owners: Arc<DropGuard>,
}

struct Shared {
    provider: &'static str,
    used: AtomicBool,
    /// Fires once the sandbox is not wanted any more.
    close: CancellationToken,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone)]
enum State {
    Booting,
    Up(Arc<dyn Sandbox>),
    Failed(SandboxError),
    /// Closed, and nothing is left.
    Gone {
        id: Option<String>,
    },
    /// Closed, but `destroy` failed.
    Stuck(Arc<dyn Sandbox>, SandboxError),
}

impl LazySandbox {
    /// Begins the boot now, on the current tokio runtime. `options.cancel` ends the boot; waiters then get `Cancelled`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn boot(factory: Arc<dyn SandboxFactory>, options: CreateOptions) -> Self {
        let close = CancellationToken::new();
        let shared = Arc::new(Shared {
            provider: factory.provider(),
            used: AtomicBool::new(false),
            close: close.clone(),
            state: watch::Sender::new(State::Booting),
        });
        let task = tokio::spawn(live(factory, options, shared.clone()));
        // A boot that panics must not leave its waiters waiting.
        let watched = shared.clone();
        tokio::spawn(async move {
            if let Err(error) = task.await {
                let error =
                    SandboxError::provider("boot", "the boot ended early", Some(Arc::new(error)));
                watched.state.send_replace(State::Failed(error));
            }
        });
        Self {
            shared,
            _owners: Arc::new(close.drop_guard()),
        }
    }

    /// The sandbox, once it is up. Any number of callers wait for the same boot, and may ask any number of times.
    ///
    /// # Errors
    /// What the factory said, told to everyone who asks; `NotRunning` after [`destroy`](Self::destroy) began.
    ///
    /// # Cancellation
    /// Dropping this future does not end the boot.
    pub async fn get(&self) -> Result<Arc<dyn Sandbox>> {
        self.shared.used.store(true, Ordering::Relaxed);
        let mut states = self.shared.state.subscribe();
        let booted = tokio::select! {
            biased;
            () = self.shared.close.cancelled() => None,
            booted = states.wait_for(|state| !matches!(state, State::Booting)) => booted.ok().map(|state| state.clone()),
        };
        match booted {
            Some(State::Up(sandbox)) => Ok(sandbox),
            Some(State::Failed(error)) => Err(error),
            _ => Err(self.not_running()),
        }
    }

    /// The sandbox, if it is up. Does not count as use.
    pub fn ready(&self) -> Option<Arc<dyn Sandbox>> {
        match &*self.shared.state.borrow() {
            State::Up(sandbox) if !self.shared.close.is_cancelled() => Some(sandbox.clone()),
            _ => None,
        }
    }

    /// Whether someone ever asked for it with [`get`](Self::get).
    pub fn used(&self) -> bool {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// Ends the boot or destroys the sandbox, and waits until nothing is left. Idempotent; a destroy that failed is
    /// tried again by the next call. From the start of this call on, every `get` fails with `NotRunning`.
    ///
    /// # Errors
    /// Those of [`Sandbox::destroy`]. A boot that failed or was ended is no error here.
    ///
    /// # Cancellation
    /// Dropping this future does not stop the work, which goes on in the background.
    pub async fn destroy(&self) -> Result<()> {
        self.shared.close.cancel();
        let before = self.shared.state.borrow().clone();
        if let State::Stuck(sandbox, _) = before {
            sandbox.destroy().await?;
            self.shared.state.send_replace(State::Gone {
                id: Some(sandbox.id().to_owned()),
            });
            return Ok(());
        }
        let mut states = self.shared.state.subscribe();
        let ended = states
            .wait_for(|state| !matches!(state, State::Booting | State::Up(_)))
            .await;
        match ended.as_deref() {
            Ok(State::Stuck(_, error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn not_running(&self) -> SandboxError {
        let id = match &*self.shared.state.borrow() {
            State::Up(sandbox) | State::Stuck(sandbox, _) => Some(sandbox.id().to_owned()),
            State::Gone { id } => id.clone(),
            State::Booting | State::Failed(_) => None,
        };
        SandboxError::NotRunning {
            id: id.unwrap_or_else(|| format!("{} (never up)", self.shared.provider)),
            status: SandboxStatus::Stopped,
        }
    }
}

impl fmt::Debug for LazySandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazySandbox")
            .field("state", &*self.shared.state.borrow())
            .field("used", &self.used())
            .finish_non_exhaustive()
    }
}

/// The one task that owns the sandbox, from its boot to its end.
async fn live(factory: Arc<dyn SandboxFactory>, options: CreateOptions, shared: Arc<Shared>) {
    let cancel = options.cancel.child_token();
    let create = factory.create(options.cancel(cancel.clone()));
    tokio::pin!(create);
    let created = tokio::select! {
        created = &mut create => created,
        () = shared.close.cancelled() => {
            // Not dropped: the factory cleans up, and may be up nevertheless.
            cancel.cancel();
            create.await
        }
    };
    let sandbox = match created {
        Ok(sandbox) => sandbox,
        Err(error) => {
            if shared.close.is_cancelled() {
                tracing::debug!(%error, "boot ended");
            }
            shared.state.send_replace(State::Failed(error));
            return;
        }
    };
    shared.state.send_replace(State::Up(sandbox.clone()));
    shared.close.cancelled().await;
    let end = match sandbox.destroy().await {
        Ok(()) => State::Gone {
            id: Some(sandbox.id().to_owned()),
        },
        Err(error) => {
            tracing::warn!(%error, id = sandbox.id(), "destroying a sandbox failed");
            State::Stuck(sandbox, error)
        }
    };
    shared.state.send_replace(end);
}

#[cfg(test)]
mod tests;
