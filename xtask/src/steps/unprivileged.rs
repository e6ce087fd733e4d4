//! The step that runs, as a user without any right, the tests whose subject is what such a user can do.
//!
//! The checkout may lie where that user cannot read (`/root`), so the test binaries, the `sixb` binary and the sources are
//! copied to a fresh folder, and the tests start there with an environment that names nothing of this one.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Artifact, Message, TargetKind};
use tempfile::TempDir;

use super::escape;
use super::tests::{EVERYTHING, TEST_BIN_VARIABLE};
use crate::counts::Counts;
use crate::facts;
use crate::job::Job;

/// Folders of the packages whose tests start sandboxes or the command line.
const PACKAGES: &[&str] = &["crates/sixb-sandbox-local", "crates/sixb", "tests"];
/// The user and group `nobody`.
const NOBODY: u32 = 65534;
/// What a bare Debian user has; nothing of the current user's PATH.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) fn run(job: &mut Job) -> Result<Counts> {
    let built = built(job)?;
    let stage = Stage::new(job, Some(&built.sixb))?;
    let mut total = Counts::default();
    for test in &built.tests {
        let ran = job.run_bounded(stage.command(test, &[])?)?;
        if ran.success && ran.output.contains("running 0 tests") {
            continue; // A package may have a library without unit tests; the total must still hold some.
        }
        total += Counts::tests(ran.success, &ran.output);
    }
    ensure!(
        total != Counts::default(),
        "no tests were found in {}",
        PACKAGES.join(", ")
    );
    Ok(total)
}

struct Built {
    tests: Vec<TestBinary>,
    sixb: PathBuf,
}

pub(crate) struct TestBinary {
    pub(crate) executable: PathBuf,
    /// Folder of its package, relative to the workspace root.
    pub(crate) package: &'static str,
}

/// Builds the tests (nothing to do after `build-tests`) and picks the binaries out of cargo's messages.
fn built(job: &mut Job) -> Result<Built> {
    let command = job.cargo(
        &[
            &["test", "--no-run", "--message-format=json"],
            &EVERYTHING[..],
        ]
        .concat(),
    );
    let stdout = job.stdout(command)?;
    let mut tests = Vec::new();
    let mut sixb = None;
    for message in Message::parse_stream(stdout.as_slice()) {
        let Message::CompilerArtifact(artifact) = message? else {
            continue;
        };
        let Some(executable) = artifact.executable.clone().map(PathBuf::from) else {
            continue;
        };
        if artifact.profile.test {
            if artifact.target.name == escape::TARGET {
                continue; // A step of its own runs it.
            }
            if let Some(package) = package_of(&artifact, &job.root) {
                tests.push(TestBinary {
                    executable,
                    package,
                });
            }
        } else if artifact.target.is_kind(TargetKind::Bin) && artifact.target.name == "sixb" {
            sixb = Some(executable);
        }
    }
    let sixb = sixb.context("cargo did not build the `sixb` binary: its package needs an integration test in crates/sixb/tests/")?;
    Ok(Built { tests, sixb })
}

fn package_of(artifact: &Artifact, root: &Path) -> Option<&'static str> {
    let folder = artifact.manifest_path.parent()?;
    PACKAGES
        .iter()
        .find(|package| folder == root.join(package))
        .copied()
}

/// A readable copy of what the tests need; removed when dropped.
pub(crate) struct Stage {
    dir: TempDir,
    as_nobody: bool,
}

impl Stage {
    pub(crate) fn new(job: &mut Job, sixb: Option<&Path>) -> Result<Self> {
        // Not `$TMPDIR`, which may be private to the current user.
        let dir = tempfile::Builder::new()
            .prefix("sixb-ci-")
            .tempdir_in("/tmp")?;
        let stage = Self {
            dir,
            as_nobody: facts::is_root(),
        };
        fs::set_permissions(stage.dir.path(), Permissions::from_mode(0o755))?;
        for name in ["bin", "tree"] {
            fs::create_dir(stage.path(name))?;
        }
        for name in ["home", "tmp"] {
            fs::create_dir(stage.path(name))?;
            if stage.as_nobody {
                chown(stage.path(name), Some(NOBODY), Some(NOBODY))?;
            }
        }
        if let Some(sixb) = sixb {
            fs::copy(sixb, stage.path("bin/sixb"))?;
        }

        let mut copy = Command::new("cp");
        copy.args(["--recursive", "Cargo.toml", "crates", "tests"])
            .arg(stage.path("tree"));
        ensure!(
            job.run(copy)?.success,
            "cannot copy the sources to {}",
            stage.dir.path().display()
        );
        // Whatever the umask of this user is.
        let mut chmod = Command::new("chmod");
        chmod
            .args(["--recursive", "a+rX"])
            .args([stage.path("bin"), stage.path("tree")]);
        ensure!(
            job.run(chmod)?.success,
            "cannot make {} readable",
            stage.dir.path().display()
        );
        Ok(stage)
    }

    /// `tmp` is the one folder in which the tests may write.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command that runs one test binary from its copy, with some variables more.
    pub(crate) fn command(&self, test: &TestBinary, more: &[(&str, PathBuf)]) -> Result<Command> {
        let name = test
            .executable
            .file_name()
            .context("a test binary has a name")?;
        let copy = self.path("bin").join(name);
        fs::copy(&test.executable, &copy)?;
        fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
        let package = self.path("tree").join(test.package);

        let nobody = NOBODY.to_string();
        let mut command = match self.as_nobody {
            true => {
                let mut setpriv = Command::new("setpriv");
                setpriv.args([
                    "--reuid",
                    &nobody,
                    "--regid",
                    &nobody,
                    "--clear-groups",
                    "env",
                ]);
                setpriv
            }
            false => Command::new("env"),
        };
        command.arg("-i").current_dir(&package);
        let variables = [
            ("PATH", PATH.into()),
            ("HOME", self.path("home")),
            ("TMPDIR", self.path("tmp")),
            ("LANG", "C.UTF-8".into()),
            ("CI", "true".into()),
            ("RUST_BACKTRACE", "1".into()),
            (TEST_BIN_VARIABLE, self.path("bin/sixb")),
            ("CARGO_BIN_EXE_sixb", self.path("bin/sixb")),
            ("CARGO_MANIFEST_DIR", package),
            ("INSTA_WORKSPACE_ROOT", self.path("tree")),
        ];
        for (name, value) in variables.iter().chain(more) {
            command.arg(format!("{name}={}", value.display()));
        }
        command.arg(copy);
        Ok(command)
    }
}
