//! tests

mod agent_lab;
mod agent_network;
mod agent_outputs;
mod agent_runs;
mod agent_workspace;
mod tools_bash;
mod tools_lab;
mod tools_read;
