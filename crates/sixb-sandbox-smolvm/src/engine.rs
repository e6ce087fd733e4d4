//! The `smolvm` program behind one seam: what is asked of it, and the command line that does it.
//!
//! Commands of a sandbox do not pass through here. smolvm makes, starts and removes machines; a socket that it exposes
//! leads to our own program in the guest (`link`). Only its command line can expose a socket, so that is what is used.

use std::{
    ffi::OsString,
    fmt,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use async_trait::async_trait;
use sixb_sandbox::{Result, SandboxError};
use tokio::{io::AsyncReadExt, time::Instant};

use crate::{console, install::Installation};

/// More than this is not read of what smolvm prints.
const MAX_OUTPUT: u64 = 4 << 20;
/// What of the host's environment smolvm gets. Keys and tokens are not among it.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SMOLVM_VM_UID_DROP",
    "SMOLVM_START_TIMEOUT_SECS",
    "SMOLVM_AGENT_READY_TIMEOUT_SECS",
];

/// A machine to make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) cpus: u32,
    pub(crate) memory_mib: u64,
    pub(crate) storage_gib: Option<u32>,
    pub(crate) overlay_gib: Option<u32>,
    /// A registry reference, an archive or an unpacked root file system; `None` = the bare machine.
    pub(crate) image: Option<String>,
    /// Everything is reachable.
    pub(crate) open_network: bool,
    /// A network card that leads to these hosts only: for pulling the image.
    pub(crate) pull_hosts: Vec<String>,
    /// Host folder, guest path, read-only.
    pub(crate) mounts: Vec<(PathBuf, String, bool)>,
    /// A socket of the guest that shows on the host.
    pub(crate) socket: String,
    /// What the machine runs from its start on; only machines with an image can.
    pub(crate) workload: Vec<String>,
}

/// What a backend needs of smolvm.
#[async_trait]
pub(crate) trait Smolvm: fmt::Debug + Send + Sync {
    async fn create(&self, spec: &Spec) -> Result<()>;
    async fn start(&self, name: &str) -> Result<()>;
    /// Copies a program of the host into the machine.
    async fn place(&self, name: &str, program: &Path, guest: &str) -> Result<()>;
    /// Starts a program in the machine that lives on.
    async fn launch(&self, name: &str, argv: &[String]) -> Result<()>;
    /// Ends and removes a machine; one that does not exist is removed already.
    async fn delete(&self, name: &str) -> Result<()>;
    /// Names of all machines, and whether each runs.
    async fn machines(&self) -> Result<Vec<(String, bool)>>;
}

/// The command line.
#[derive(Debug, Clone)]
pub(crate) struct Cli {
    installation: Installation,
    /// Everything smolvm keeps lies below it.
    state: PathBuf,
    boot_deadline: Duration,
}

impl Cli {
    pub(crate) fn new(installation: Installation, state: &Path, boot_deadline: Duration) -> Self {
        Self {
            installation,
            state: state.to_owned(),
            boot_deadline,
        }
    }

    async fn call(
        &self,
        op: &'static str,
        words: Vec<OsString>,
        deadline: Duration,
    ) -> Result<Vec<u8>> {
        let mut command = tokio::process::Command::new(&self.installation.program);
        command
            .args(["--error-format", "json", "machine"])
            .args(&words)
            .env_clear()
            .envs(
                PASSED
                    .iter()
                    .filter_map(|name| Some((name, std::env::var_os(name)?))),
            )
            .envs(self.installation.environment())
            .env("SMOLVM_SECCOMP", "enforce")
            .env("SMOLVM_LANDLOCK", "enforce")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            SandboxError::provider(
                op,
                format!(
                    "{} does not start: {error}",
                    self.installation.program.display()
                ),
                None,
            )
        })?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ended = async {
            // The machine inherits neither pipe for long, but a broken one must not hold the call: the exit ends it.
            let reading = async { tokio::join!(read(stdout), read(stderr)) };
            let (status, output) =
                tokio::join!(child.wait(), tokio::time::timeout(deadline, reading));
            (status, output.unwrap_or_default())
        };
        let (status, (stdout, stderr)) =
            tokio::time::timeout(deadline, ended)
                .await
                .map_err(|_| SandboxError::Timeout {
                    op,
                    after: deadline,
                })?;
        let status = status.map_err(|error| SandboxError::io(op, error))?;
        if status.success() {
            return Ok(stdout);
        }
        let failure = Failure::parse(&stderr);
        tracing::debug!(
            op,
            code = failure.code,
            message = failure.message,
            "smolvm failed"
        );
        Err(failure.into_error(op))
    }

    /// The last lines that a machine printed; empty where it printed none.
    async fn console(&self, name: &str) -> String {
        let words = self.words("data-dir", name);
        let Ok(folder) = self.call("find the machine's folder", words, SHORT).await else {
            return String::new();
        };
        let folder = PathBuf::from(OsString::from_vec(folder.trim_ascii_end().to_vec()));
        let told = tokio::task::spawn_blocking(move || console::last_lines(&folder));
        told.await.unwrap_or_default()
    }

    fn words(&self, verb: &str, name: &str) -> Vec<OsString> {
        [
            verb.into(),
            "--state-dir".into(),
            self.state.clone().into(),
            "--name".into(),
            name.into(),
        ]
        .into()
    }
}

async fn read(pipe: Option<impl tokio::io::AsyncRead + Unpin>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let _ = pipe.take(MAX_OUTPUT).read_to_end(&mut bytes).await;
    }
    bytes
}

/// What smolvm says of a failure: an object on the last line of stderr that is one.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    code: String,
    message: String,
}

impl Failure {
    fn parse(stderr: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stderr);
        let told = text.lines().rev().find_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line.trim()).ok()?;
            let error = value.get("error")?;
            Some(Self {
                code: error.get("code")?.as_str()?.to_owned(),
                message: error.get("message")?.as_str()?.to_owned(),
            })
        });
        told.unwrap_or_else(|| {
            let lines: Vec<&str> = text
                .lines()
                .filter(|line| !line.trim().is_empty())
                .collect();
            Self {
                code: "UNKNOWN".into(),
                message: lines[lines.len().saturating_sub(3)..].join("; "),
            }
        })
    }

    fn into_error(self, op: &'static str) -> SandboxError {
        match self.code.as_str() {
            "NOT_FOUND" => SandboxError::NotFound {
                what: "machine",
                name: self.message,
            },
            "KVM_UNAVAILABLE" | "HYPERVISOR_UNAVAILABLE" => SandboxError::IsolationUnavailable {
                what: format!("smolvm cannot use KVM: {}", self.message),
                remedy: "`sixb doctor` says what is missing; without KVM use the local sandbox"
                    .into(),
            },
            code => {
                SandboxError::provider(op, format!("smolvm says {code}: {}", self.message), None)
            }
        }
    }
}

const SHORT: Duration = Duration::from_secs(60);

#[async_trait]
impl Smolvm for Cli {
    async fn create(&self, spec: &Spec) -> Result<()> {
        let mut words = self.words("create", &spec.name);
        words.extend(arguments(spec));
        self.call("create the machine", words, self.boot_deadline)
            .await
            .map(drop)
    }

    async fn start(&self, name: &str) -> Result<()> {
        let op = "start the machine";
        let started = self.call(op, self.words("start", name), self.boot_deadline);
        match started.await {
            Ok(_) => Ok(()),
            // smolvm tells that the machine ended; why, only the machine's own console does.
            Err(SandboxError::Provider { op, detail, source }) => {
                let console = self.console(name).await;
                let detail = match console.is_empty() {
                    true => detail,
                    false => format!("{detail}; its console ends: {console}"),
                };
                Err(SandboxError::Provider { op, detail, source })
            }
            Err(error) => Err(error),
        }
    }

    async fn place(&self, name: &str, program: &Path, guest: &str) -> Result<()> {
        let words = [
            "cp".into(),
            "--state-dir".into(),
            self.state.clone().into(),
            "--mode".into(),
            "755".into(),
            program.into(),
            format!("{name}:{guest}").into(),
        ];
        let op = "copy the guest's program";
        self.call(op, words.into(), self.boot_deadline)
            .await
            .map(drop)
    }

    async fn launch(&self, name: &str, argv: &[String]) -> Result<()> {
        let mut words = self.words("exec", name);
        words.extend(["--detach".into(), "--".into()]);
        words.extend(argv.iter().map(OsString::from));
        self.call("start the program in the guest", words, self.boot_deadline)
            .await
            .map(drop)
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let mut words = self.words("delete", name);
        words.push("--force".into());
        let until = Instant::now() + SHORT;
        loop {
            match self.call("remove the machine", words.clone(), SHORT).await {
                Err(SandboxError::NotFound { .. }) => return Ok(()),
                // It was killed, and on a busy host its end takes longer than smolvm waits for.
                Err(SandboxError::Provider { detail, .. })
                    if detail.contains("still alive after stop") && Instant::now() < until =>
                {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                result => return result.map(drop),
            }
        }
    }

    async fn machines(&self) -> Result<Vec<(String, bool)>> {
        let op = "list machines";
        let words = [
            "ls".into(),
            "--state-dir".into(),
            self.state.clone().into(),
            "--json".into(),
        ]
        .into();
        let text = self.call(op, words, SHORT).await?;
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| {
            SandboxError::provider(
                op,
                format!("smolvm printed something else than JSON: {error}"),
                None,
            )
        })?;
        let all = value
            .as_array()
            .or_else(|| value.get("machines")?.as_array())
            .cloned()
            .unwrap_or_default();
        Ok(all
            .iter()
            .filter_map(|machine| {
                let name = machine.get("name")?.as_str()?.to_owned();
                Some((
                    name,
                    machine.get("state").and_then(|state| state.as_str()) == Some("running"),
                ))
            })
            .collect())
    }
}

/// The words of `machine create` behind the name. Nothing in here is secret: the host's process list shows it.
fn arguments(spec: &Spec) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![
        "--cpus".into(),
        spec.cpus.to_string().into(),
        "--mem".into(),
        spec.memory_mib.to_string().into(),
    ];
    let mut pair = |flag: &str, value: OsString| words.extend([flag.into(), value]);
    if let Some(gib) = spec.storage_gib {
        pair("--storage", gib.to_string().into());
    }
    if let Some(gib) = spec.overlay_gib {
        pair("--overlay", gib.to_string().into());
    }
    if let Some(image) = &spec.image {
        pair("--image", image.into());
    }
    for (host, guest, read_only) in &spec.mounts {
        let mut value = host.clone().into_os_string();
        value.push(format!(":{guest}{}", if *read_only { ":ro" } else { "" }));
        pair("--volume", value);
    }
    for host in &spec.pull_hosts {
        pair("--allow-host", host.into());
    }
    pair("--expose-socket", spec.socket.clone().into());
    if spec.open_network {
        words.push("--net".into());
    }
    if !spec.workload.is_empty() {
        words.push("--".into());
        words.extend(spec.workload.iter().map(OsString::from));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_by_words() {
        let spec = Spec {
            name: "m".into(),
            cpus: 2,
            memory_mib: 1024,
            storage_gib: Some(4),
            image: Some("./a.tar".into()),
            mounts: vec![("/data/x".into(), "/workspace".into(), true)],
            socket: "/run/s".into(),
            workload: vec!["/bin/w".into(), "--x".into()],
            ..Spec::default()
        };
        let words: Vec<_> = arguments(&spec)
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            words.join(" "),
            "--cpus 2 --mem 1024 --storage 4 --image ./a.tar --volume /data/x:/workspace:ro --expose-socket /run/s -- /bin/w --x"
        );
        let open = Spec {
            open_network: true,
            ..Spec::default()
        };
        assert!(arguments(&open).contains(&"--net".into()));
        assert!(
            !arguments(&spec).contains(&"--net".into()),
            "no network card unless asked for"
        );
    }

    #[test]
    fn failures_are_told_by_code_or_by_the_last_lines() {
        for (stderr, code, message) in [
            (
                "noise\n{\"error\":{\"code\":\"CONFLICT\",\"message\":\"exists\"}}\n",
                "CONFLICT",
                "exists",
            ),
            ("a\nb\n\nc\nd\n", "UNKNOWN", "b; c; d"),
            ("", "UNKNOWN", ""),
            ("{\"error\":\"x\"}", "UNKNOWN", "{\"error\":\"x\"}"),
        ] {
            let failure = Failure::parse(stderr.as_bytes());
            assert_eq!(
                (failure.code.as_str(), failure.message.as_str()),
                (code, message),
                "{stderr:?}"
            );
        }
        let kvm = Failure {
            code: "KVM_UNAVAILABLE".into(),
            message: "no".into(),
        }
        .into_error("start");
        assert!(
            matches!(kvm, SandboxError::IsolationUnavailable { .. }),
            "{kvm}"
        );
    }
}
