//! The parameters of the suite: what a backend enforces, and how large the large sizes are.

use std::time::Duration;

use crate::NetworkEnforcement;

/// What a backend enforces on this machine. What is denied here must be refused by the backend, and by its
/// [`Capabilities`](crate::Capabilities).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expectations {
    /// Network policies that are enforced.
    pub network: NetworkEnforcement,
    /// A memory limit is enforced.
    pub memory: bool,
    /// A limit on processes is enforced.
    pub pids: bool,
    /// A limit on bytes written is enforced.
    pub disk: bool,
    /// Processes outlive the command that began them, and `start` works.
    pub background: bool,
    /// `snapshot` works.
    pub snapshots: bool,
}

impl Default for Expectations {
    /// Background processes and snapshots, network all or nothing, no limits.
    fn default() -> Self {
        Self {
            network: NetworkEnforcement::AllOrNothing,
            memory: false,
            pids: false,
            disk: false,
            background: true,
            snapshots: true,
        }
    }
}

impl Expectations {
    /// Sets which network policies are enforced.
    pub fn network(mut self, network: NetworkEnforcement) -> Self {
        self.network = network;
        self
    }

    /// Sets which limits are enforced.
    pub fn limits(mut self, memory: bool, pids: bool, disk: bool) -> Self {
        (self.memory, self.pids, self.disk) = (memory, pids, disk);
        self
    }

    /// Sets whether processes outlive the command that began them.
    pub fn background(mut self, works: bool) -> Self {
        self.background = works;
        self
    }

    /// Sets whether `snapshot` works.
    pub fn snapshots(mut self, works: bool) -> Self {
        self.snapshots = works;
        self
    }
}

/// Divides the sizes of 1 MiB and more, and stretches times, for machines that are emulated: bounds by much, since they
/// cost nothing where all is well, and what a check lets pass by less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    divisor: u64,
    patience: u32,
    pace: u32,
}

impl Scale {
    /// All sizes as the contract names them.
    pub const FULL: Self = Self {
        divisor: 1,
        patience: 1,
        pace: 1,
    };

    /// For emulated machines: 1/20 of the large sizes, bounds of ten times the time, and three times where time must pass.
    pub const EMULATED: Self = Self {
        divisor: 20,
        patience: 10,
        pace: 3,
    };

    /// A large size, in bytes or counts.
    pub fn size(self, full: u64) -> u64 {
        (full / self.divisor).max(1)
    }

    /// A bound: a time after which something must have happened.
    pub fn time(self, full: Duration) -> Duration {
        full * self.patience
    }

    /// [`time`](Self::time) of `seconds`.
    pub(super) fn seconds(self, seconds: f64) -> Duration {
        self.time(Duration::from_secs_f64(seconds))
    }

    /// A time that the check itself lets pass, in which something else gets on.
    pub(super) fn passing(self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds) * self.pace
    }
}

impl std::fmt::Display for Scale {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.divisor {
            1 => f.write_str("full sizes"),
            divisor => write!(
                f,
                "1/{divisor} of the large sizes, {} times the time",
                self.patience
            ),
        }
    }
}
