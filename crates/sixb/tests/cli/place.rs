//! A folder, a home and a sandbox state of the test's own, and the ways to start `sixb` there.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A secret in the environment of every `sixb` that a test starts. No output may show it.
pub(crate) const SECRET: &str = "sk-test-000";

pub(crate) struct Place {
    root: tempfile::TempDir,
}

/// What came of a `sixb`.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("tempdir");
        for folder in ["home", "work"] {
            fs::create_dir(root.path().join(folder)).expect("folder");
        }
        Self { root }
    }

    /// Where `sixb` starts.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Where sandboxes of this place keep their state.
    pub(crate) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Where the transcript of a run is.
    pub(crate) fn transcript(&self, run: &str) -> PathBuf {
        self.state()
            .join("sixb/runs")
            .join(run)
            .join("transcript.jsonl")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(&path, text).expect("file");
        path
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.work().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn environment(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME", self.root.path().join("home")),
            ("XDG_STATE_HOME", self.state()),
            ("FAKE_API_KEY", SECRET.into()),
        ]
    }

    /// Runs `sixb` to its end, at most a minute.
    pub(crate) fn sixb(&self, args: &[&str]) -> Ended {
        self.sixb_with_input(args, b"")
    }

    /// Runs `sixb` to its end with these bytes piped in.
    pub(crate) fn sixb_with_input(&self, args: &[&str], input: &[u8]) -> Ended {
        let started = Instant::now();
        let output = assert_cmd::Command::new(binary())
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .envs(self.environment())
            .write_stdin(input)
            .timeout(Duration::from_secs(60))
            .output()
            .expect("sixb starts");
        let ended = Ended {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            elapsed: started.elapsed(),
        };
        for text in [&ended.stdout, &ended.stderr] {
            assert!(
                !text.contains(SECRET),
                "a secret of the environment is shown: {text}"
            );
        }
        ended
    }

    /// A `sixb` for a test that acts while it runs; nothing is piped in, both outputs are piped out.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .envs(self.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// No sandbox of this place is left, and none of its files.
    pub(crate) fn assert_nothing_left(&self) {
        let list = self.sixb(&["sandbox", "list", "--json"]);
        assert_eq!(list.stdout, "[]\n", "{list:?}");
        let left: Vec<_> = files(&self.state().join("sixb/sandboxes/local"));
        assert!(left.is_empty(), "left in the state folder: {left:?}");
    }
}

impl Ended {
    /// The one line of JSON on stdout.
    pub(crate) fn json(&self) -> serde_json::Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The lines of JSON on stdout.
    pub(crate) fn json_lines(&self) -> Vec<serde_json::Value> {
        let line = |line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}: {self:?}"))
        };
        self.stdout.lines().map(line).collect()
    }
}

/// The program under test.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("SIXB_TEST_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_sixb").into(), PathBuf::from)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

/// Whether a process of this machine has `marker` in its command line.
pub(crate) fn is_running(marker: &str) -> bool {
    let entries = fs::read_dir("/proc").expect("proc").flatten();
    entries
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|line| {
            // A shell that only mentions the marker in a script counts too: it is about to start it.
            line.windows(marker.len())
                .any(|window| window == marker.as_bytes())
        })
}

/// Waits until `condition` holds, at most ten seconds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(
            Instant::now() < deadline,
            "did not happen within 10 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a process of the test.
pub(crate) fn signal(name: &str, process: u32) {
    let sent = Command::new("/usr/bin/env")
        .args(["bash", "-c", &format!("kill -{name} {process}")])
        .status()
        .expect("kill");
    assert!(sent.success(), "kill -{name} {process}");
}
