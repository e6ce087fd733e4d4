#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "this crate starts smolvm and keeps its data, leases and sockets on the host"
)]
#![cfg(unix)]

mod console;
mod engine;
mod factory;
mod files;
mod guest;
mod image;
mod install;
mod lease;
mod link;
mod make;
mod preflight;
mod relay;
mod run;
mod sandbox;
#[cfg(test)]
mod tests;
#[path = "../guest/wire.rs"]
mod wire;

pub use factory::SmolvmSandboxFactory;
pub use image::{Image, agent_image_folder};
pub use install::{Installation, VERSION, install};
pub use preflight::Finding;

const PROVIDER: &str = "smolvm";
