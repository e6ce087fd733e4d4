//! When a run has to end early: cancelled, or out of time.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    Cancelled,
    TimedOut,
}

#[derive(Debug, Clone)]
pub(super) struct Stop {
    pub(super) cancel: CancellationToken,
    pub(super) deadline: Instant,
    pub(super) limit: Duration,
}

impl Stop {
    pub(super) fn new(cancel: CancellationToken, limit: Duration) -> Self {
        // A limit too large for the clock is none that anybody lives to see: a year stands for it.
        let year = Duration::from_secs(365 * 24 * 60 * 60);
        Self {
            cancel,
            deadline: Instant::now() + limit.min(year),
            limit,
        }
    }

    /// Resolves when the run has to end.
    pub(super) async fn fired(&self) -> StopReason {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => StopReason::Cancelled,
            () = tokio::time::sleep_until(self.deadline.into()) => StopReason::TimedOut,
        }
    }

    /// Why the run has to end, if it has to.
    pub(super) fn reason(&self) -> Option<StopReason> {
        if self.cancel.is_cancelled() {
            return Some(StopReason::Cancelled);
        }
        (self.deadline <= Instant::now()).then_some(StopReason::TimedOut)
    }
}
