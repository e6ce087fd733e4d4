//! The background processes of one sandbox: their names, their ends, how they are ended. For backends.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{oneshot, watch};

use crate::{
    BackgroundId, CancellationToken, Command, CommandOutput, OutputId, Result, SandboxError,
};

/// Background processes that may be begun in one sandbox.
const MAX: usize = 64;

type Ended = Option<Result<CommandOutput>>;

/// What a backend keeps of the processes that [`Sandbox::start`](crate::Sandbox::start) began.
#[derive(Debug, Default)]
pub struct BackgroundProcesses {
    known: Mutex<HashMap<BackgroundId, Process>>,
}

#[derive(Debug)]
struct Process {
    ended: watch::Receiver<Ended>,
    kill: CancellationToken,
}

impl BackgroundProcesses {
    /// Begins a command and returns once it runs. `run` runs it to its end and fires the sender when it has begun; `name` is
    /// for a command that has none.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is taken, `LimitExceeded` beyond 64 processes, and what `run` says of a command that
    /// never began.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn start<F>(
        &self,
        mut command: Command,
        name: impl FnOnce() -> OutputId,
        run: impl FnOnce(Command, oneshot::Sender<()>) -> F,
    ) -> Result<BackgroundId>
    where
        F: Future<Output = Result<CommandOutput>> + Send + 'static,
    {
        let name = command.output_id.take().unwrap_or_else(name);
        let id = BackgroundId(name.clone());
        command.output_id = Some(name);
        // The log is to be readable from its first byte on.
        command.limits.spool_after = 0;
        let (started, is_started) = oneshot::channel();
        let (end, mut ended) = watch::channel(None);
        let kill = command.cancel.child_token();
        command.cancel = kill.clone();
        let process = Process {
            ended: ended.clone(),
            kill,
        };
        self.add(&id, process)?;
        let work = run(command, started);
        tokio::spawn(async move {
            end.send_replace(Some(work.await));
        });
        // Whichever comes first: it runs, or it never will.
        if is_started.await.is_err() {
            let failed = ended.wait_for(Option::is_some).await;
            let failed = failed.ok().and_then(|output| output.clone());
            if let Some(Err(error)) = failed {
                self.known().remove(&id);
                return Err(error);
            }
        }
        Ok(id)
    }

    fn add(&self, id: &BackgroundId, process: Process) -> Result<()> {
        let mut known = self.known();
        if known.contains_key(id) {
            return Err(SandboxError::InvalidInput {
                field: "output_id",
                value: id.to_string(),
                reason: "names another background process of this sandbox: choose a new one".into(),
            });
        }
        if known.len() >= MAX {
            return Err(SandboxError::LimitExceeded {
                what: "background processes begun in one sandbox".into(),
                limit: MAX as u64,
                actual: None,
            });
        }
        known.insert(id.clone(), process);
        Ok(())
    }

    /// Waits for a process. `gone` fires with the sandbox, and `lost` says what became of it then.
    ///
    /// # Errors
    /// `NotFound` for a process that was never begun, `Cancelled` when `cancel` fires, and `lost`.
    pub async fn wait(
        &self,
        id: &BackgroundId,
        cancel: &CancellationToken,
        gone: &CancellationToken,
        lost: impl Fn() -> SandboxError,
    ) -> Result<CommandOutput> {
        let ended = self.known().get(id).map(|process| process.ended.clone());
        let mut ended = ended.ok_or_else(|| not_found(id))?;
        tokio::select! {
            biased;
            () = gone.cancelled() => Err(lost()),
            output = ended.wait_for(Option::is_some) => match output.ok().and_then(|output| output.clone()) {
                Some(output) => output,
                None => Err(lost()),
            },
            () = cancel.cancelled() => Err(SandboxError::Cancelled { op: "waiting for a background process" }),
        }
    }

    /// Ends a process. Idempotent.
    ///
    /// # Errors
    /// `NotFound` for a process that was never begun.
    pub fn kill(&self, id: &BackgroundId) -> Result<()> {
        let kill = self.known().get(id).map(|process| process.kill.clone());
        kill.map(|kill| kill.cancel()).ok_or_else(|| not_found(id))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<BackgroundId, Process>> {
        // Each holder makes one change: a panic leaves nothing half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(id: &BackgroundId) -> SandboxError {
    SandboxError::NotFound {
        what: "background process",
        name: id.to_string(),
    }
}
