//! What the processes of a sandbox may use, in the form in which it is enforced.

use serde::{Deserialize, Serialize};

/// Processes and threads where the options name no number: enough for builds, small enough that a fork bomb is dull.
const DEFAULT_PIDS: u32 = 1024;
/// Open files of one process where the options name no number.
const DEFAULT_OPEN_FILES: u64 = 16_384;

/// The limits of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Processes and threads of all commands together (`RLIMIT_NPROC` counts per user namespace). `None` = not limited:
    /// without a namespace the whole user would be counted.
    pub(crate) pids: Option<u32>,
    /// Bytes: each process's writable memory by `RLIMIT_DATA`, and all together by the supervisor, who looks often.
    /// `None` also where a cgroup enforces it.
    pub(crate) memory_bytes: Option<u64>,
    /// Open files of one process.
    pub(crate) open_files: u64,
}

impl Limits {
    /// Fills in what is not named.
    pub(crate) fn new(
        pids: Option<u32>,
        memory_bytes: Option<u64>,
        open_files: Option<u64>,
    ) -> Self {
        Self {
            pids: Some(pids.unwrap_or(DEFAULT_PIDS)),
            memory_bytes,
            open_files: open_files.unwrap_or(DEFAULT_OPEN_FILES),
        }
    }

    /// As good as none.
    pub(crate) fn unisolated() -> Self {
        Self {
            pids: None,
            memory_bytes: None,
            open_files: DEFAULT_OPEN_FILES,
        }
    }
}
