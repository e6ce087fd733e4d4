//! Runs whose sandbox is never needed, or never comes up. Runs in a real one are tested in the workspace's own tests.

mod build;
mod faults;
mod limits;
mod support;
mod transcript;
