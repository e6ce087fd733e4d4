#![doc = include_str!("../README.md")]
#![expect(
    clippy::disallowed_methods,
    reason = "this crate is where the host's files and processes become a sandbox"
)]

#[cfg(all(target_os = "linux", feature = "early-init"))]
mod early;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod plan;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod relay;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(not(target_os = "linux"))]
mod unsupported;

/// What the fuzz targets in `fuzz/` call; the same functions run on stable as property tests.
#[cfg(all(target_os = "linux", fuzzing))]
#[doc(hidden)]
pub mod fuzz {
    pub use crate::{protocol::check::supervisor_protocol, relay::check::relay_parser};
}

#[cfg(target_os = "linux")]
pub use host::{LocalSandboxFactory, init};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{LocalSandboxFactory, init};
