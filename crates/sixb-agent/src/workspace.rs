//! The run's place in its sandbox: files below `.sixb/agent`, variables of its commands, and what is removed at the end.

mod boot;
mod brought;
mod claim;
pub(crate) mod layout;
mod prepared;

pub(crate) use boot::{BootReport, RunSandboxes};
pub(crate) use brought::PlacedFiles;
pub(crate) use claim::Claim;
pub use claim::{SweptWorkspace, state_folder, sweep_workspaces};
pub(crate) use prepared::ForeignOutputs;
