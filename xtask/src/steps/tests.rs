//! Steps that build and run the tests and examples of the whole workspace as the current user.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::counts::Counts;
use crate::job::Job;

/// One set of packages and features for every step, so that each test is built once.
pub(crate) const EVERYTHING: [&str; 2] = ["--workspace", "--all-features"];

/// Names the `sixb` binary for tests; `CARGO_BIN_EXE_sixb` exists only for the tests of the package `sixb`, and names a
/// path that another user may not be able to read.
pub(crate) const TEST_BIN_VARIABLE: &str = "SIXB_TEST_BIN";

pub(crate) fn build(job: &mut Job) -> Result<Counts> {
    let command = job.cargo(&[&["test", "--no-run"], &EVERYTHING[..]].concat());
    Ok(Counts::check(job.run(command)?.success))
}

pub(crate) fn run(job: &mut Job) -> Result<Counts> {
    let runner: &[&str] = match job.run(job.cargo(&["nextest", "--version"]))?.success {
        // A step of its own runs the attacks. Cargo alone cannot leave one target out, and runs them here, too.
        true => &[
            "nextest",
            "run",
            "--no-fail-fast",
            "--filterset",
            "not binary(escape)",
        ],
        false => &["test", "--bins", "--lib", "--tests", "--no-fail-fast"],
    };
    let command = with_test_bin(job, &[runner, &EVERYTHING[..]].concat());
    let ran = job.run_bounded(command)?;
    Ok(Counts::tests(ran.success, &ran.output))
}

pub(crate) fn doctests(job: &mut Job) -> Result<Counts> {
    let command = with_test_bin(
        job,
        &[&["test", "--doc", "--no-fail-fast"], &EVERYTHING[..]].concat(),
    );
    let ran = job.run_bounded(command)?;
    Ok(Counts::tests(ran.success, &ran.output))
}

fn with_test_bin(job: &Job, args: &[&str]) -> Command {
    let sixb: PathBuf = job.target.join("debug/sixb");
    let mut command = job.cargo(args);
    command.env(TEST_BIN_VARIABLE, sixb);
    command
}
