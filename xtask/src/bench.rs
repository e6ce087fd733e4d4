//! `cargo xtask bench`: builds the command line and the benchmark in release mode, and runs the latter.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

/// Measures the figures whose group contains one of `filter`; all when there is none.
pub(crate) fn run(filter: &[String]) -> Result<ExitCode> {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
    let built = cargo(&["build", "--release", "--package", "sixb"])
        .status()
        .context("starting cargo")?;
    if !built.success() {
        bail!("sixb does not build in release mode");
    }
    let measured = cargo(&[
        "bench",
        "--quiet",
        "--package",
        "sixb-tests",
        "--bench",
        "figures",
        "--",
    ])
    .args(filter)
    .env(
        "SIXB_TEST_BIN",
        metadata.target_directory.join("release/sixb"),
    )
    .status()
    .context("starting cargo")?;
    Ok(if measured.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments);
    command
}
