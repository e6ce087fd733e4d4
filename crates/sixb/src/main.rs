//! The `sixb` command: agent runs, sandboxes and tools from a terminal. It composes the crates; they hold the logic.

#![forbid(unsafe_code)]

mod agents;
mod blobs;
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
mod web;

use std::{ffi::OsString, process::ExitCode, time::Duration};

use clap::{Parser, error::ErrorKind};

use crate::cli::Cli;

fn main() -> ExitCode {
    // First of all: in a process that the sandbox backend started from this binary it never returns, and that process
    // may not have threads. Parsing comes next and the runtime last, so that `--version` pays for neither.
    sixb_sandbox_local::init();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => {
            return failure::report(&not_text(std::env::args_os())).into();
        }
        Err(error) => error.exit(),
    };
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

/// Names the arguments that are no text: clap does not say which.
fn not_text(args: impl IntoIterator<Item = OsString>) -> anyhow::Error {
    let named: Vec<String> = args
        .into_iter()
        .enumerate()
        .filter(|(_, arg)| arg.to_str().is_none())
        .map(|(place, arg)| {
            format!(
                "argument {place} ({})",
                terminal::plain(&arg.to_string_lossy())
            )
        })
        .collect();
    failure::usage(format!(
        "{}: not UTF-8 text; only names of files on this machine may be other bytes: write it as text, or put it into a file",
        named.join(", ")
    ))
}
