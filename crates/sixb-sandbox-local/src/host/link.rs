//! The connection to a supervisor: requests out, answers to whoever waits for them.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{io::unix::AsyncFd, sync::mpsc};
use tokio_util::sync::CancellationToken;

use super::{image, spawn};
use crate::protocol::{End, Killed, NotStarted, RunRequest, ToHost, ToSupervisor, send};

/// What became of a command. A channel that closes without `Exited` means that the sandbox is gone.
#[derive(Debug)]
pub(super) enum Event {
    Started,
    NotStarted(NotStarted),
    Exited { end: End, killed: Option<Killed> },
}

#[derive(Debug)]
pub(super) struct Link {
    control: AsyncFd<OwnedFd>,
    waiting: Mutex<HashMap<u64, mpsc::Sender<Event>>>,
    next: AtomicU64,
    gone: CancellationToken,
}

impl Link {
    /// Takes over the connection. A task on the current runtime reads it until the supervisor is gone.
    pub(super) fn new(control: AsyncFd<OwnedFd>) -> Arc<Self> {
        let link = Arc::new(Self {
            control,
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
            gone: CancellationToken::new(),
        });
        let reader = link.clone();
        tokio::spawn(async move {
            // A packet that is no message is an attack or a bug: nothing after it can be trusted.
            while let Ok(Some((message, _))) = spawn::next(&reader.control).await {
                if !reader.dispatch(message) {
                    break;
                }
            }
            reader.gone.cancel();
            reader.waiting().clear();
        });
        link
    }

    /// Fires when the supervisor is gone.
    pub(super) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, mpsc::Sender<Event>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dispatch(&self, message: ToHost) -> bool {
        let (id, event) = match message {
            ToHost::Started { id } => (id, Event::Started),
            ToHost::NotStarted { id, why } => (id, Event::NotStarted(why)),
            ToHost::Exited { id, end, killed } => (id, Event::Exited { end, killed }),
            ToHost::Init { .. } | ToHost::Ready { .. } | ToHost::BootFailed { .. } => return false,
        };
        let mut waiting = self.waiting();
        let sender = if matches!(event, Event::Started) {
            waiting.get(&id).cloned()
        } else {
            waiting.remove(&id)
        };
        if let Some(sender) = sender {
            // Two places are enough for an honest supervisor; what a hostile one adds is dropped.
            let _ = sender.try_send(event);
        }
        true
    }

    /// Sends a command with its three standard descriptors.
    pub(super) async fn run(
        &self,
        request: &RunRequest,
        stdio: [OwnedFd; 3],
    ) -> io::Result<(u64, mpsc::Receiver<Event>)> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let memory = image::memory(c"sixb-request", &serde_json::to_vec(request)?)?;
        let (sender, receiver) = mpsc::channel(2);
        self.waiting().insert(id, sender);
        if self.gone.is_cancelled() {
            self.waiting().clear();
        }
        let fds = [
            stdio[0].as_fd(),
            stdio[1].as_fd(),
            stdio[2].as_fd(),
            memory.as_fd(),
        ];
        loop {
            let mut ready = self.control.writable().await?;
            match ready.try_io(|control| send(control.get_ref(), &ToSupervisor::Run { id }, &fds)) {
                Ok(Ok(())) => return Ok((id, receiver)),
                Ok(Err(error)) => {
                    self.waiting().remove(&id);
                    return Err(error);
                }
                Err(_would_block) => {}
            }
        }
    }

    /// Asks for the end of a command and all its descendants. `false` when the supervisor does not take it.
    pub(super) fn kill(&self, id: u64) -> bool {
        send(self.control.get_ref(), &ToSupervisor::Kill { id }, &[]).is_ok()
    }

    /// Nobody waits for this command any more: ends it, if it has not ended.
    pub(super) fn forget(&self, id: u64) {
        if self.waiting().remove(&id).is_some() {
            self.kill(id);
        }
    }
}
