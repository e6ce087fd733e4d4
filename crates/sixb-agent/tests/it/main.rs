//! Runs whose sandbox is never needed, or never comes up. Runs in a real one are tested in the workspace's own tests.

mod build;
mod connectors;
mod faults;
mod kinds;
mod limits;
mod resume;
mod support;
mod transcript;
#[cfg(feature = "openai")]
mod wire;
