//! tests

mod agent_files;
mod agent_lab;
mod agent_network;
mod agent_outputs;
mod agent_runs;
mod agent_workspace;
mod examples;
mod tools_bash;
mod tools_lab;
mod tools_read;
mod tools_view;
