//! Limits that the kernel enforces on each command from its first instruction on.

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::plan::Limits;

/// Limits this process, which is about to become a command, and all that descend from it.
///
/// `own` processes of the supervisor (itself and the leaders) count as the same user's, but are not the command's.
pub(super) fn apply(limits: &Limits, own: u32) -> rustix::io::Result<()> {
    let both = |value: u64| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    setrlimit(
        Resource::Nproc,
        both(u64::from(limits.pids.saturating_add(own))),
    )?;
    setrlimit(Resource::Nofile, both(limits.open_files))?;
    if let Some(bytes) = limits.memory_bytes {
        // Not RLIMIT_AS: runtimes such as V8, Go and the JVM reserve address space that they never use.
        setrlimit(Resource::Data, both(bytes))?;
    }
    Ok(())
}
