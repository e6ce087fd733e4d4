//! `cargo xtask smolvm-lab` and `cargo xtask agent-image`: smolvm for real, on machines with and without KVM.

mod emulator;
mod fetch;
mod image;
mod outer;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::counts::Counts;
use crate::job::Job;
use crate::steps::setup;

pub(crate) use image::run as agent_image;

/// The example of `sixb-sandbox-smolvm` that runs the checks.
const RUNNER: &str = "smolvm-conformance";
/// The processor that smolvm's wheel and the outer machine are for.
const ARCH: &str = "x86_64";

/// Where the lab keeps what it downloads and builds.
pub(crate) struct Lab {
    folder: PathBuf,
}

impl Lab {
    fn new(job: &Job) -> Result<Self> {
        let folder = job.target.join("smolvm-lab");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The command: what the machines print goes to the terminal as it comes.
pub(crate) fn lab(arguments: &[String]) -> Result<ExitCode> {
    let root = crate::facts::root()?;
    let mut job = Job::new(&root, "smolvm-lab")?;
    let output = run_lab(&mut job, &arguments.join(","))?;
    let counts = last_total(&output)?;
    if counts.passed + counts.failed == 0 {
        bail!("no check's name holds one of {arguments:?}");
    }
    if counts.failed > 0 {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The runner's own last line. Without it the machine or the runner died, which is no success.
fn last_total(output: &str) -> Result<Counts> {
    let total = output.lines().rev().find_map(total);
    total.context("the lab did not end with a line `N passed, N failed`")
}

fn total(line: &str) -> Option<Counts> {
    let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
    let (passed, failed) = (passed.parse().ok()?, failed.parse().ok()?);
    Some(Counts {
        passed,
        failed,
        ..Counts::default()
    })
}

fn run_lab(job: &mut Job, filter: &str) -> Result<String> {
    if std::env::consts::ARCH != ARCH {
        bail!("the lab needs {ARCH}: that is what smolvm's wheel and the outer machine are for");
    }
    setup::install(job, setup::LAB_NEEDED)?;
    let build = job.cargo(&[
        "build",
        "-p",
        "sixb-sandbox-smolvm",
        "--example",
        RUNNER,
        "-p",
        "sixb",
        "--bin",
        "sixb",
        "--all-features",
    ]);
    if !job.run(build)?.success {
        bail!("the test runner does not build");
    }
    let lab = Lab::new(job)?;
    let wheel = fetch::wheel(job, &lab)?;
    let image = image::build(job, &lab, &wheel)?;
    let binaries = Binaries {
        runner: job.target.join("debug/examples").join(RUNNER),
        sixb: job.target.join("debug/sixb"),
    };
    if boots_here(job, &wheel, &binaries)? {
        return native(job, &lab, &wheel, &image, &binaries, filter);
    }
    outer::run(job, &lab, &wheel, &image, &binaries, filter)
}

struct Binaries {
    runner: PathBuf,
    sixb: PathBuf,
}

/// Whether a machine boots here. A device that can be opened is not enough: many containers show one that gives none.
fn boots_here(job: &mut Job, wheel: &Path, binaries: &Binaries) -> Result<bool> {
    let kvm = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm");
    if kvm.is_err() {
        return Ok(false);
    }
    let state = tempfile::Builder::new().prefix("sixb-probe").tempdir()?;
    let mut command = native_runner(wheel, binaries, state.path());
    command.arg("--probe");
    Ok(job.run_bounded(command)?.success)
}

fn native_runner(wheel: &Path, binaries: &Binaries, state: &Path) -> Command {
    let mut command = Command::new(&binaries.runner);
    command
        .env("SIXB_LAB_BIN", wheel.join("smolvm"))
        // As the command line has it below XDG_STATE_HOME.
        .env("SIXB_LAB_STATE", state.join("sixb"))
        // As root smolvm would start machines as users who may not open /dev/kvm.
        .env("SMOLVM_VM_UID_DROP", "off");
    command
}

/// On this very machine, at full size.
fn native(
    job: &mut Job,
    lab: &Lab,
    wheel: &Path,
    image: &Path,
    binaries: &Binaries,
    filter: &str,
) -> Result<String> {
    let state = tempfile::Builder::new().prefix("sixb-lab").tempdir()?;
    // Where `sixb sandbox install` and `cargo xtask agent-image` place things for the command line.
    let home = state.path().join("home/sixb/smolvm");
    std::fs::create_dir_all(&home)?;
    std::os::unix::fs::symlink(wheel, home.join("1.32.2"))?;
    std::os::unix::fs::symlink(image, home.join("agent-image"))?;
    let mut command = native_runner(wheel, binaries, state.path());
    command
        .arg(filter)
        .env("SIXB_LAB_IMAGE", image)
        .env("SIXB_LAB_SIXB", &binaries.sixb)
        .env("XDG_DATA_HOME", state.path().join("home"))
        .env("XDG_CACHE_HOME", state.path().join("home"))
        .env("FAKE_API_KEY", "sk-test-000")
        .current_dir(&lab.folder);
    eprintln!("on this machine's own KVM");
    let output = job.run(command)?.output;
    println!("{output}");
    Ok(output)
}

/// Runs a command of the lab's making.
fn must(job: &mut Job, command: Command) -> Result<()> {
    let shown = format!("{command:?}");
    if !job.run(command)?.success {
        bail!("{shown} failed; its output is in the log of this step");
    }
    Ok(())
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_the_last_line() {
        let counts = total("104 passed, 2 failed").expect("counts");
        assert_eq!((counts.passed, counts.failed), (104, 2));
        assert!(total("nothing passed, at all failed").is_none());
        let output = "1 passed, 0 failed\n3 passed, 1 failed\n[ 9.1] reboot: Power down\n";
        assert_eq!(last_total(output).expect("counts").failed, 1);
        assert!(last_total("sixb-lab up\n").is_err());
    }
}
