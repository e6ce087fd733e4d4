//! The connection to a supervisor: requests out, answers to whoever waits for them.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
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

/// An honest supervisor tells of a command that it started and that it ended. A hostile one could flood: each message costs
/// the host a wake-up.
const PER_COMMAND: u64 = 2;
/// A supervisor that takes no request for so long is broken or taken over.
const TAKES_REQUESTS: Duration = Duration::from_secs(10);

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
            // A packet that is no message is an attack or a bug: nothing after it can be trusted. So is one too many.
            let mut told: u64 = 0;
            while let Ok(Some((message, _))) = spawn::next(&reader.control).await {
                told += 1;
                let due = (reader.next.load(Ordering::Relaxed) - 1).saturating_mul(PER_COMMAND);
                if told > due || !reader.dispatch(message) {
                    tracing::warn!("the supervisor broke its protocol: it gets no more attention");
                    break;
                }
            }
            reader.end();
        });
        link
    }

    /// The supervisor is gone: everybody who waits learns that.
    pub(super) fn end(&self) {
        self.gone.cancel();
        self.waiting().clear();
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
        let sent = tokio::time::timeout(TAKES_REQUESTS, self.send(id, &fds)).await;
        match sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(()) => Ok((id, receiver)),
            Err(error) => {
                self.waiting().remove(&id);
                Err(error)
            }
        }
    }

    async fn send(&self, id: u64, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            let mut ready = self.control.writable().await?;
            match ready.try_io(|control| send(control.get_ref(), &ToSupervisor::Run { id }, fds)) {
                Ok(sent) => return sent,
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

#[cfg(test)]
mod tests;
