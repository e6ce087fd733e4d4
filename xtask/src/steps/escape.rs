//! The step that attacks the local sandbox, as the current user and, as root, once more as a user without any right.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use cargo_metadata::Message;

use super::tests::EVERYTHING;
use super::unprivileged::{Stage, TestBinary};
use crate::counts::Counts;
use crate::facts;
use crate::job::Job;

/// The test target.
pub(crate) const TARGET: &str = "escape";
/// Names the file to which each attempt adds a line.
const REPORT: &str = "SIXB_ESCAPE_REPORT";

pub(crate) fn run(job: &mut Job) -> Result<Counts> {
    let attacks = attack(job, false)?;
    Ok(attacks.into_iter().fold(Counts::default(), |mut sum, run| {
        sum += run.counts;
        sum
    }))
}

/// One run of all attempts.
pub(crate) struct Attack {
    /// As whom, for people.
    pub(crate) user: &'static str,
    pub(crate) counts: Counts,
    /// The lines that the attempts wrote, if they were asked to.
    pub(crate) report: String,
}

/// Runs all attempts; with `report` they write lines, and are made under `bwrap`, too.
pub(crate) fn attack(job: &mut Job, report: bool) -> Result<Vec<Attack>> {
    let test = built(job)?;
    let stage = Stage::new(job, None)?;
    let mut attacks = Vec::new();
    if facts::is_root() {
        let file = stage.path("report-of-root");
        let mut command = Command::new(&test.executable);
        command.current_dir(job.root.join(test.package));
        if report {
            command.env(REPORT, &file);
        }
        attacks.push(ran(job, "root", command, &file)?);
    }
    let file = stage.path("tmp").join("report");
    let more: &[_] = if report {
        &[(REPORT, file.clone())]
    } else {
        &[]
    };
    let command = stage.command(&test, more)?;
    attacks.push(ran(job, "unprivileged", command, &file)?);
    Ok(attacks)
}

fn ran(
    job: &mut Job,
    user: &'static str,
    mut command: Command,
    report: &PathBuf,
) -> Result<Attack> {
    // Most attempts wait more than they compute.
    command.args(["--test-threads", "4"]);
    let ran = job.run_bounded(command)?;
    Ok(Attack {
        user,
        counts: Counts::tests(ran.success, &ran.output),
        report: fs::read_to_string(report).unwrap_or_default(),
    })
}

/// Builds the attempts (nothing to do after `build-tests`).
fn built(job: &mut Job) -> Result<TestBinary> {
    let build = [
        "test",
        "--no-run",
        "--message-format=json",
        "--test",
        TARGET,
    ];
    let command = job.cargo(&[&build[..], &EVERYTHING[..]].concat());
    let stdout = job.stdout(command)?;
    for message in Message::parse_stream(stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message?
            && artifact.target.name == TARGET
            && let Some(executable) = artifact.executable
        {
            return Ok(TestBinary {
                executable: executable.into(),
                package: "tests",
            });
        }
    }
    None.context("cargo did not build the test target `escape`")
}
