//! Where a run tells what happens: the transcript first, then whoever reads the events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use super::{Diagnostic, RunEvent, RunState, stop::Stop};
use crate::transcript::{RecordBody, TranscriptError, Writer};

/// Cheap to clone; shared by the run's tasks.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    events: mpsc::Sender<RunEvent>,
    stop: Stop,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug)]
struct Kept {
    transcript: Option<Writer>,
    /// A transcript that cannot be written is told once.
    broken: bool,
    diagnostics: Vec<Diagnostic>,
}

/// Diagnostics of one run; what comes after is counted by the log only.
const MAX_DIAGNOSTICS: usize = 500;

impl Feed {
    pub(super) fn new(
        events: mpsc::Sender<RunEvent>,
        transcript: Option<Writer>,
        stop: Stop,
    ) -> Self {
        Self {
            events,
            stop,
            kept: Arc::new(Mutex::new(Kept {
                transcript,
                broken: false,
                diagnostics: Vec::new(),
            })),
        }
    }

    /// Sends an event; waits for a slow reader until the run has to end.
    pub(super) async fn send(&self, event: RunEvent) {
        match self.events.try_send(event) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(event)) => {
                tokio::select! {
                    biased;
                    _ = self.events.send(event) => {}
                    _ = self.stop.fired() => {}
                }
            }
        }
    }

    /// Sends an event unless the reader is slow.
    pub(super) fn try_send(&self, event: RunEvent) {
        let _ = self.events.try_send(event);
    }

    /// Appends to the transcript. A failure is a diagnostic, once: the run is worth more than its transcript.
    pub(super) fn record(&self, body: RecordBody) {
        self.record_all([body]);
    }

    /// [`record`](Self::record) of several at once: a killed process loses all of them or, with bad luck, some.
    pub(super) fn record_all(&self, bodies: impl IntoIterator<Item = RecordBody>) {
        let mut kept = self.kept();
        let Some(error) = kept
            .transcript
            .as_mut()
            .and_then(|writer| writer.append(bodies).err())
        else {
            return;
        };
        if !std::mem::replace(&mut kept.broken, true) {
            let diagnostic =
                Diagnostic::error("transcript", "transcript_write_failed", error.to_string());
            kept.diagnostics.push(diagnostic.clone());
            self.try_send(RunEvent::Diagnostic { diagnostic });
        }
    }

    pub(super) async fn state(&self, state: RunState) {
        self.record(RecordBody::State {
            state: state.clone(),
        });
        self.send(RunEvent::State { state }).await;
    }

    /// [`state`](Self::state) for places that cannot wait.
    pub(super) fn state_now(&self, state: RunState) {
        self.record(RecordBody::State {
            state: state.clone(),
        });
        self.try_send(RunEvent::State { state });
    }

    pub(super) async fn diagnostic(&self, diagnostic: Diagnostic) {
        self.keep(&diagnostic);
        self.send(RunEvent::Diagnostic { diagnostic }).await;
    }

    /// [`diagnostic`](Self::diagnostic) for places that cannot wait.
    pub(super) fn diagnostic_now(&self, diagnostic: Diagnostic) {
        self.keep(&diagnostic);
        self.try_send(RunEvent::Diagnostic { diagnostic });
    }

    fn keep(&self, diagnostic: &Diagnostic) {
        tracing::debug!(code = diagnostic.code, "{}", diagnostic.message);
        self.record(RecordBody::Diagnostic {
            diagnostic: diagnostic.clone(),
        });
        let mut kept = self.kept();
        if kept.diagnostics.len() < MAX_DIAGNOSTICS {
            kept.diagnostics.push(diagnostic.clone());
        }
    }

    pub(super) fn diagnostics(&self) -> Vec<Diagnostic> {
        self.kept().diagnostics.clone()
    }

    pub(super) fn transcript_path(&self) -> Option<std::path::PathBuf> {
        self.kept()
            .transcript
            .as_ref()
            .map(|writer| writer.path().to_owned())
    }

    /// Makes the transcript survive a power loss.
    pub(super) async fn sync(&self) -> Result<(), TranscriptError> {
        let kept = self.kept.clone();
        let synced = tokio::task::spawn_blocking(move || {
            let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.transcript.as_ref().map_or(Ok(()), Writer::sync)
        });
        // A runtime that shuts down drops the task: the kernel writes the pages back anyway.
        synced.await.unwrap_or(Ok(()))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No half-done change can be seen: each holder only pushes or appends.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
