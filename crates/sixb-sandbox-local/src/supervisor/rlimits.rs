//! Limits that the kernel enforces on each command from its first instruction on.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::plan::Limits;

/// Limits this process, which is about to become a command, and all that descend from it.
///
/// `own` processes of the supervisor (itself and the leaders) count as the same user's, but are not the command's.
pub(super) fn apply(limits: &Limits, own: u32) -> rustix::io::Result<()> {
    if let Some(pids) = limits.pids {
        lower(Resource::Nproc, u64::from(pids.saturating_add(own)))?;
    }
    lower(Resource::Nofile, limits.open_files)?;
    if let Some(bytes) = limits.memory_bytes {
        // Not RLIMIT_AS: runtimes such as V8, Go and the JVM reserve address space that they never use.
        lower(Resource::Data, bytes)?;
    }
    Ok(())
}

/// Sets a limit that nothing can raise again. One that is lower already stays: raising it needs root.
fn lower(resource: Resource, value: u64) -> rustix::io::Result<()> {
    let value = value.min(getrlimit(resource).maximum.unwrap_or(u64::MAX));
    setrlimit(
        resource,
        Rlimit {
            current: Some(value),
            maximum: Some(value),
        },
    )
}
