//! The maintainers' program. `cargo xtask ci` is the whole check that a change must pass; each of its steps also runs alone.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "a maintainers' tool: reading the checkout and starting cargo is its purpose"
)]

mod bench;
mod ci;
mod confined;
mod counts;
mod escape;
mod facts;
mod job;
mod layers;
mod layout;
mod licences;
mod smolvm;
mod source;
mod steps;

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

/// Tasks for those who maintain this workspace.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run the checks a change must pass: every step in order, or only those named
    Ci {
        /// List the steps instead of running them
        #[arg(long)]
        list: bool,
        /// Steps to run, in the order given
        #[arg(value_name = "STEP", value_parser = PossibleValuesParser::new(steps::names()), conflicts_with = "list")]
        steps: Vec<String>,
    },
    /// Attack the local sandbox from inside, and print what was tried, expected and seen
    Escape,
    /// Run the conformance suite in real microVMs: on this machine's KVM, else in an emulated machine that has it
    SmolvmLab {
        /// Run the checks whose names hold one of these: `files::`, `lab::figures`
        #[arg(last = true)]
        filter: Vec<String>,
    },
    /// Build the image that microVMs boot from into the cache folder of this user
    AgentImage,
    /// Measure the figures that the project promises, in release mode, each against its floor
    Bench {
        /// Groups of figures: start, output, read, bash, whole, artifacts, crowd; all when none is named
        filter: Vec<String>,
    },
}

fn main() -> Result<ExitCode> {
    match Args::parse().task {
        Task::Ci { list: true, .. } => {
            ci::list();
            Ok(ExitCode::SUCCESS)
        }
        Task::Ci { steps, .. } => ci::run(&steps),
        Task::Escape => escape::run(),
        Task::SmolvmLab { filter } => smolvm::lab(&filter),
        Task::AgentImage => smolvm::agent_image(),
        Task::Bench { filter } => bench::run(&filter),
    }
}
