//! The run's place in its sandbox: files below `.sixb/agent`, variables of its commands, and what is removed at the end.

mod boot;
pub(crate) mod layout;
mod prepared;

pub(crate) use boot::{BootReport, RunSandboxes};
pub(crate) use prepared::ForeignOutputs;
