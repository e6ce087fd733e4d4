//! The `sixb` command: agent runs, sandboxes and tools from a terminal. It composes the crates; they hold the logic.

#![forbid(unsafe_code)]

mod agents;
mod cli;
mod commands;
mod config;
mod factory;
mod failure;
mod host;
mod interrupt;
mod progress;
mod sandbox_args;
mod stdout;
mod terminal;
mod values;

use std::{process::ExitCode, time::Duration};

use clap::Parser;

use crate::cli::Cli;

fn main() -> ExitCode {
    // First of all: in a process that the sandbox backend started from this binary it never returns, and that process
    // may not have threads. Parsing comes next and the runtime last, so that `--version` pays for neither.
    sixb_sandbox_local::init();
    let cli = Cli::parse();
    let ended = runtime().and_then(|runtime| {
        let ended = runtime.block_on(commands::run(cli));
        // A thread may still wait for a terminal's next line: it ends with the process.
        runtime.shutdown_timeout(Duration::from_millis(50));
        ended
    });
    ended.unwrap_or_else(|error| failure::report(&error)).into()
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}
