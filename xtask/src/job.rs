//! One step at work: starts commands in the workspace root and keeps what they print in `target/ci/STEP.log`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// No command of a step may take longer: a test that hangs must end as a failed test, not as a CI job that never ends.
const DEADLINE_SECONDS: u64 = 10 * 60;
/// What `timeout` exits with after the deadline.
const TIMED_OUT: i32 = 124;

pub(crate) struct Job {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    log: File,
}

/// What came of a command: whether it succeeded, and all it printed on both streams.
pub(crate) struct Ran {
    pub(crate) success: bool,
    pub(crate) output: String,
}

impl Job {
    pub(crate) fn new(root: &Path, step: &str) -> Result<Self> {
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => root.join(dir),
            None => root.join("target"),
        };
        let logs = target.join("ci");
        fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
        let path = logs.join(format!("{step}.log"));
        let open = || -> std::io::Result<File> {
            File::create(&path)?;
            // Commands and this program write in turn: only appending keeps them from overwriting each other.
            File::options().append(true).read(true).open(&path)
        };
        let log = open().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self {
            root: root.to_owned(),
            target,
            log,
        })
    }

    /// A cargo command whose settings are the same in every step, so that steps share what they build.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command
            .args(args)
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_TERM_COLOR", "never")
            .env("NO_COLOR", "1");
        command
    }

    /// Runs `command` to its end; a non-zero exit is a value, not an error.
    pub(crate) fn run(&mut self, mut command: Command) -> Result<Ran> {
        self.note(&format!("$ {}", shown(&command)));
        let from = self.log.seek(SeekFrom::End(0))?;
        if command.get_current_dir().is_none() {
            command.current_dir(&self.root);
        }
        let status = command
            .stdin(Stdio::null())
            .stdout(self.log.try_clone()?)
            .stderr(self.log.try_clone()?)
            .status()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let output = self.log_from(from)?;
        if status.code() == Some(TIMED_OUT) {
            self.note(&format!("timed out after {DEADLINE_SECONDS} s"));
        } else if !status.success() {
            self.note(&format!("ended with {status}"));
        }
        Ok(Ran {
            success: status.success(),
            output,
        })
    }

    /// Like [`Job::run`], but `command` and all it started end at the deadline, or when this program ends.
    pub(crate) fn run_bounded(&mut self, command: Command) -> Result<Ran> {
        self.run(bounded(&command))
    }

    /// Runs `command` and returns its stdout alone, for output that a program reads. A non-zero exit is an error.
    pub(crate) fn stdout(&mut self, mut command: Command) -> Result<Vec<u8>> {
        self.note(&format!("$ {}", shown(&command)));
        let output = command
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stderr(self.log.try_clone()?)
            .output()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        anyhow::ensure!(
            output.status.success(),
            "{} ended with {}",
            shown(&command),
            output.status
        );
        Ok(output.stdout)
    }

    /// Writes a line of ours to the log. The log only informs, so failing to write it fails nothing.
    pub(crate) fn note(&mut self, line: &str) {
        let _ = writeln!(self.log, "{line}");
    }

    pub(crate) fn log_tail(&mut self, lines: usize) -> String {
        let log = self.log_from(0).unwrap_or_default();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    fn log_from(&mut self, offset: u64) -> Result<String> {
        self.log.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        self.log.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// `timeout` ends the whole process group of the command, and `--pdeathsig` ends `timeout` with this program (Ctrl-C).
fn bounded(command: &Command) -> Command {
    let mut wrapped = Command::new("setpriv");
    wrapped.args([
        "--pdeathsig",
        "TERM",
        "timeout",
        "--kill-after=10",
        &DEADLINE_SECONDS.to_string(),
    ]);
    wrapped.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(key, value),
            None => wrapped.env_remove(key),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        wrapped.current_dir(dir);
    }
    wrapped
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
