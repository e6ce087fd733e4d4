//! What the checks say of a sandbox, in few words.

use std::{fmt::Debug, ops::Deref, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout};

use super::Scale;
use crate::{
    ByteRange, Command, CommandOutput, FileContents, FileSource, FileWrite, Result, Sandbox,
    SandboxPath,
};

/// A sandbox under test.
#[derive(Debug)]
pub(super) struct Guest {
    sandbox: Arc<dyn Sandbox>,
    owned: bool,
    scale: Scale,
}

impl Deref for Guest {
    type Target = Arc<dyn Sandbox>;

    fn deref(&self) -> &Arc<dyn Sandbox> {
        &self.sandbox
    }
}

impl Guest {
    pub(super) fn own(sandbox: Arc<dyn Sandbox>, scale: Scale) -> Self {
        Self {
            sandbox,
            owned: true,
            scale,
        }
    }

    pub(super) fn shared(sandbox: Arc<dyn Sandbox>, scale: Scale) -> Self {
        Self {
            sandbox,
            owned: false,
            scale,
        }
    }

    /// Ends the check's own sandbox.
    pub(super) async fn done(self) {
        if self.owned {
            self.sandbox.destroy().await.expect("destroy");
        }
    }

    /// Runs a command that must end within 60 s.
    pub(super) async fn command(&self, command: Command) -> CommandOutput {
        let shown = format!("{command:?}");
        within(self.scale.seconds(60.0), &shown, self.sandbox.run(command))
            .await
            .unwrap_or_else(|error| panic!("{shown}\nfailed: {error}"))
    }

    /// Runs a script.
    pub(super) async fn sh(&self, script: &str) -> CommandOutput {
        self.command(Command::script(script)).await
    }

    /// Runs a script that must exit with 0, and gives its standard output.
    pub(super) async fn out(&self, script: &str) -> String {
        self.out_of(Command::script(script)).await
    }

    /// Runs a command that must exit with 0, and gives its standard output.
    pub(super) async fn out_of(&self, command: Command) -> String {
        let shown = format!("{command:?}");
        let output = self.command(command).await;
        assert!(
            output.success(),
            "{shown}\nmust exit with 0: {}",
            describe(&output)
        );
        output.stdout.text()
    }

    pub(super) async fn write(&self, name: impl AsRef<[u8]>, contents: impl Into<FileContents>) {
        let name = path(name);
        let result = self
            .sandbox
            .write_files(vec![FileWrite::new(name.clone(), contents)])
            .await;
        assert!(result.is_ok(), "writing {name:?} failed: {result:?}");
    }

    pub(super) async fn try_read(&self, name: impl AsRef<[u8]>) -> Result<Bytes> {
        self.sandbox
            .read_range(
                &FileSource::Path(path(name)),
                ByteRange::new(0, ByteRange::MAX_LEN),
            )
            .await
    }

    pub(super) async fn read(&self, name: impl AsRef<[u8]>) -> Bytes {
        let name = path(name);
        self.try_read(name.as_bytes())
            .await
            .unwrap_or_else(|error| panic!("reading {name:?} failed: {error}"))
    }

    /// Waits until a command made a file.
    pub(super) async fn appears(&self, name: &str) {
        self.becomes(&format!("{name} appears"), || async {
            self.try_read(name)
                .await
                .is_ok_and(|bytes| !bytes.is_empty())
        })
        .await;
    }

    /// Waits, for at most 10 s, until `holds`.
    pub(super) async fn becomes<F: Future<Output = bool>>(
        &self,
        what: &str,
        holds: impl FnMut() -> F,
    ) {
        becomes(self.scale.seconds(10.0), what, holds).await;
    }

    /// Asserts that each file holds the id of a process, and that those processes end within 10 s.
    ///
    /// Not one `kill -0`: a killed process may wait a moment to be reaped.
    pub(super) async fn processes_end(&self, why: &str, pid_files: &[&str]) {
        let files = pid_files.join(" ");
        let found = self.out(&format!("cat {files}")).await;
        assert_eq!(
            found.lines().count(),
            pid_files.len(),
            "all processes were there before: {found:?}"
        );
        let script = format!(
            "for f in {files}; do if kill -0 $(cat $f) 2>/dev/null; then echo $f; fi; done"
        );
        self.becomes(
            &format!("{why}: the processes of {files} are gone"),
            || async { self.out(&script).await.is_empty() },
        )
        .await;
    }

    /// Asserts that the processes named by the files live.
    pub(super) async fn processes_live(&self, why: &str, pid_files: &[&str]) {
        for file in pid_files {
            let output = self.sh(&format!("kill -0 $(cat {file})")).await;
            assert!(
                output.success(),
                "{why}: the process of {file} must live: {}",
                describe(&output)
            );
        }
    }
}

pub(super) fn path(name: impl AsRef<[u8]>) -> SandboxPath {
    let name = name.as_ref();
    SandboxPath::parse(name)
        .unwrap_or_else(|error| panic!("{:?}: {error}", String::from_utf8_lossy(name)))
}

pub(super) fn file(name: impl AsRef<[u8]>) -> FileSource {
    FileSource::Path(path(name))
}

/// How a command ended, for messages.
pub(super) fn describe(output: &CommandOutput) -> String {
    let text = |text: String| {
        if text.len() > 2000 {
            format!("({} bytes)", text.len())
        } else {
            format!("{text:?}")
        }
    };
    format!(
        "exit {:?}, signal {:?}, reason {:?}, timed out {}, cancelled {}, {} ms, stdout {}, stderr {}",
        output.exit_code,
        output.signal,
        output.reason,
        output.timed_out,
        output.cancelled,
        output.duration_ms(),
        text(output.stdout.text()),
        text(output.stderr.text()),
    )
}

/// Awaits, and panics when it takes too long: a hang is a failure with a name.
pub(super) async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    match timeout(limit, future).await {
        Ok(value) => value,
        Err(_) => panic!("not done within {limit:?}: {what}"),
    }
}

/// Polls until `holds`, and panics when it never does.
pub(super) async fn becomes<F: Future<Output = bool>>(
    limit: Duration,
    what: &str,
    mut holds: impl FnMut() -> F,
) {
    let deadline = Instant::now() + limit;
    while !holds().await {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        // A look may cost as much as a command: longer where that is long.
        sleep(limit / 1000 + Duration::from_millis(10)).await;
    }
}

/// Asserts the kind of an error.
#[track_caller]
pub(super) fn fails_with<T: Debug>(what: &str, result: Result<T>, kinds: &[&str]) {
    match result {
        Ok(value) => panic!(
            "{what} must fail with {}, but gave {value:?}",
            kinds.join(" or ")
        ),
        Err(error) => {
            let kind = format!("{error:?}");
            let kind = kind.split([' ', '{']).next().unwrap_or_default();
            assert!(
                kinds.contains(&kind),
                "{what} must fail with {}, not {kind}: {error}",
                kinds.join(" or ")
            );
        }
    }
}
