//! The host's side: makes sandboxes, talks to their supervisors, cleans up.

mod cgroup;
mod factory;
mod image;
mod lease;
mod limits;
mod link;
mod make;
mod request;
mod run;
mod sandbox;
mod spawn;
mod stdio;
mod unisolated;
mod user;
mod workspace;

use std::sync::atomic::{AtomicBool, Ordering};

pub use factory::LocalSandboxFactory;

/// Whether this program lets [`init`] take over when it is started as the helper.
static HOOKED: AtomicBool = AtomicBool::new(false);

/// Call this first in `main`, before any thread exists (so before a tokio runtime).
///
/// A sandbox is set up by this same program, started once more under another name: this call notices that, does the
/// work, and does not return. In every other case it returns at once. Without it, making a sandbox fails with an error
/// that says so.
pub fn init() {
    if std::env::args_os()
        .next()
        .is_some_and(|name| name == crate::helper::ARGV0)
    {
        crate::helper::main();
    }
    HOOKED.store(true, Ordering::Relaxed);
}
