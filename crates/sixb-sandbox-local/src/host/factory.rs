//! Makes local sandboxes.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Duration,
};

use async_trait::async_trait;
use sixb_sandbox::{
    Capabilities, CreateOptions, Isolation, LimitSupport, NetworkEnforcement, NetworkPolicy,
    ResourceLimits, Result, Sandbox, SandboxError, SandboxFactory, SandboxRecord, spool::Spool,
};

use super::{
    HOOKED,
    lease::{self, Lease, PROVIDER},
    link::Link,
    sandbox::{ID_PREFIX, Inner, LocalSandbox},
    spawn,
    workspace::{self, Folder},
};
use crate::{
    files::Files,
    plan::{HOME, HostFacts, Plan, Tree, mount_steps},
};

const WORKING_DIRECTORY: &str = "/workspace";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const HOSTNAME: &str = "sixb";
/// Guest folders that a working directory or an extra path may not cover.
const RESERVED: &[&str] = &[
    "/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/tmp", "/usr", HOME,
];

/// Makes sandboxes of Linux namespaces, on this machine, without root, daemon or image.
///
/// ```no_run
/// # async fn example() -> sixb_sandbox::Result<()> {
/// use sixb_sandbox::{CreateOptions, SandboxExt, SandboxFactory};
/// use sixb_sandbox_local::LocalSandboxFactory;
///
/// // In `main`, before any thread exists: sixb_sandbox_local::init();
/// let sandbox = LocalSandboxFactory::default().create(CreateOptions::default()).await?;
/// assert_eq!(sandbox.sh("echo hello").await?.stdout.text(), "hello\n");
/// sandbox.destroy().await
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LocalSandboxFactory {
    defaults: CreateOptions,
    state: PathBuf,
    helper: Option<PathBuf>,
    extra: Vec<Extra>,
    swept: Arc<OnceLock<()>>,
}

#[derive(Debug, Clone)]
struct Extra {
    host: PathBuf,
    guest: String,
    read_only: bool,
}

impl Default for LocalSandboxFactory {
    /// Keeps its state in `$XDG_STATE_HOME/sixb`, else `~/.local/state/sixb`, else a folder of this user below the
    /// temporary directory.
    fn default() -> Self {
        Self {
            defaults: CreateOptions::default(),
            state: state_folder(),
            helper: None,
            extra: Vec::new(),
            swept: Arc::default(),
        }
    }
}

impl LocalSandboxFactory {
    /// Sets what sandboxes get when their own options say nothing.
    pub fn defaults(mut self, defaults: CreateOptions) -> Self {
        self.defaults = defaults;
        self
    }

    /// Keeps leases, empty workspaces and spools below this folder of the host.
    pub fn state_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = folder.into();
        self
    }

    /// Uses the installed `sixb-sandbox-helper` at this path instead of starting this program once more; then
    /// [`init`](crate::init) need not be called.
    pub fn helper(mut self, program: impl Into<PathBuf>) -> Self {
        self.helper = Some(program.into());
        self
    }

    /// Shows a folder of the host at an absolute guest path; nothing inside can change it.
    pub fn read_only_path(self, host: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        self.path(host.into(), guest.into(), true)
    }

    /// Shows a folder of the host at an absolute guest path, for reading and writing.
    pub fn read_write_path(self, host: impl Into<PathBuf>, guest: impl Into<String>) -> Self {
        self.path(host.into(), guest.into(), false)
    }

    fn path(mut self, host: PathBuf, guest: String, read_only: bool) -> Self {
        self.extra.push(Extra {
            host,
            guest,
            read_only,
        });
        self
    }

    fn sandboxes(&self) -> PathBuf {
        self.state.join("sandboxes").join(PROVIDER)
    }

    fn program(&self) -> Result<PathBuf> {
        match &self.helper {
            Some(helper) => Ok(helper.clone()),
            None if HOOKED.load(Ordering::Relaxed) => Ok(PathBuf::from("/proc/self/exe")),
            None => Err(SandboxError::IsolationUnavailable {
                what: "this program cannot start its sandbox helper".into(),
                remedy: "Call `sixb_sandbox_local::init()` first in `main`, before any thread exists; or install \
                         `sixb-sandbox-helper` and give its path with `LocalSandboxFactory::helper`; in tests, enable the \
                         feature `early-init`"
                    .into(),
            }),
        }
    }

    /// The whole creation. Runs in a task of its own: what it made is dropped, and so removed, if nobody waits any more.
    async fn make(self, options: CreateOptions) -> Result<LocalSandbox> {
        let options = options.over(&self.defaults);
        let program = self.program()?;
        let working_directory = guest_folder(
            "working_directory",
            options
                .working_directory
                .as_deref()
                .unwrap_or(WORKING_DIRECTORY),
        )?;
        let host_network = match options.network.clone().unwrap_or_default() {
            NetworkPolicy::None => false,
            NetworkPolicy::All => true,
            policy => {
                return Err(SandboxError::IsolationUnavailable {
                    what: format!("the local sandbox cannot limit the network to single origins yet (asked for: {policy:?})"),
                    remedy: "Use the network policy `none` or, if the sandbox may reach everything, `all`".into(),
                });
            }
        };
        refuse_limits(&options.limits)?;
        let provider = |error: io::Error| SandboxError::io("make the sandbox's folder", error);
        let state = self.sandboxes();
        if self.swept.set(()).is_ok() {
            let state = state.clone();
            let swept = blocking(move || lease::sweep(&state))
                .await
                .map_err(provider)?;
            if !swept.is_empty() {
                tracing::info!(?swept, "removed sandboxes of dead owners");
            }
        }
        let id = format!(
            "{ID_PREFIX}{}",
            ulid::Ulid::new().to_string().to_lowercase()
        );
        let (folder_state, folder_id) = (state.clone(), id.clone());
        let lease = blocking(move || Lease::take(&folder_state, &folder_id))
            .await
            .map_err(provider)?;
        // From here on a failure removes the folder.
        let mut lease = Unwind(Some(lease));

        let drop_to = workspace::drop_to();
        let folder = Folder::prepare(options.workspace.as_ref(), lease.get().folder(), drop_to)?;
        let mut trees: Vec<Tree> = vec![folder.tree()?];
        let mut targets = vec![working_directory.clone()];
        let mut writable: Vec<String> = ["/tmp", "/run", "/dev", "/proc", HOME]
            .map(str::to_owned)
            .to_vec();
        if !folder.read_only {
            writable.push(working_directory.clone());
        }
        for extra in &self.extra {
            let target = guest_folder("extra path", &extra.guest)?;
            trees.push(workspace::extra(&extra.host, extra.read_only, drop_to)?);
            if !extra.read_only {
                writable.push(target.clone());
            }
            targets.push(target);
        }
        let plan = Plan {
            drop_to,
            trees,
            steps: mount_steps(facts(), HOSTNAME, host_network, &targets),
            writable,
            host_network,
            hostname: HOSTNAME.to_owned(),
        };
        let booted = spawn::boot(&program, &plan).await?;
        let mut lease = lease.keep();
        lease.record(booted.init.pid).map_err(provider)?;
        let files = Files::open(
            &folder.path,
            &working_directory,
            folder.act_as,
            folder.read_only,
        )?;
        Ok(LocalSandbox::new(Inner {
            capabilities: capabilities(host_network, booted.landlock_abi),
            link: Link::new(booted.control),
            init: booted.init,
            spool: Spool::new(lease.folder().join("spool")),
            files: Arc::new(files),
            default_timeout: options.default_timeout.unwrap_or(DEFAULT_TIMEOUT),
            env: options.env,
            stopped: false.into(),
            working_directory,
            id,
            lease,
        }))
    }
}

impl fmt::Display for LocalSandboxFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("local sandboxes (Linux namespaces)")
    }
}

#[async_trait]
impl SandboxFactory for LocalSandboxFactory {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    async fn create(&self, options: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        let cancel = options.cancel.clone();
        let cancelled = || SandboxError::Cancelled {
            op: "create the sandbox",
        };
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let mut making = tokio::spawn(self.clone().make(options));
        let made = tokio::select! {
            made = &mut making => made,
            // A boot takes some 10 ms: it is brought to its end, and what came up is removed.
            () = cancel.cancelled() => {
                if let Ok(Ok(sandbox)) = making.await {
                    sandbox.destroy().await?;
                }
                return Err(cancelled());
            }
        };
        let sandbox =
            made.map_err(|error| SandboxError::provider("create the sandbox", error, None))??;
        Ok(Arc::new(sandbox))
    }

    async fn probe(&self) -> Result<Capabilities> {
        let sandbox = self.create(CreateOptions::default()).await?;
        let output = sandbox.run(sixb_sandbox::Command::argv(["true"])).await;
        let capabilities = sandbox.capabilities().clone();
        sandbox.destroy().await?;
        if output?.success() {
            return Ok(capabilities);
        }
        Err(SandboxError::provider(
            "probe",
            "the program `true` did not run in a trial sandbox",
            None,
        ))
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        let state = self.sandboxes();
        blocking(move || lease::list(&state))
            .await
            .map_err(|error| SandboxError::io("list sandboxes", error))
    }

    async fn sweep(&self) -> Result<Vec<String>> {
        let state = self.sandboxes();
        blocking(move || lease::sweep(&state))
            .await
            .map_err(|error| SandboxError::io("sweep sandboxes", error))
    }
}

/// Removes the folder of a sandbox that did not come up.
struct Unwind(Option<Lease>);

impl Unwind {
    fn get(&self) -> &Lease {
        self.0.as_ref().expect("kept only at the end")
    }

    fn keep(&mut self) -> Lease {
        self.0.take().expect("kept once")
    }
}

impl Drop for Unwind {
    fn drop(&mut self) {
        if let Some(leavings) = self.0.take().and_then(|lease| lease.take_folder())
            && let Err(error) = leavings.remove()
        {
            tracing::warn!(%error, "the folder of a sandbox that did not come up was not removed");
        }
    }
}

async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(call)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn facts() -> &'static HostFacts {
    static FACTS: OnceLock<HostFacts> = OnceLock::new();
    FACTS.get_or_init(HostFacts::gather)
}

fn state_folder() -> PathBuf {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if let Some(state) = absolute("XDG_STATE_HOME") {
        return state.join("sixb");
    }
    match absolute("HOME") {
        Some(home) => home.join(".local/state/sixb"),
        None => std::env::temp_dir().join(format!("sixb-{}", rustix::process::geteuid().as_raw())),
    }
}

/// An absolute guest path, normalised, that covers nothing that a sandbox needs.
fn guest_folder(field: &'static str, path: &str) -> Result<String> {
    let invalid = |reason: &str| SandboxError::InvalidInput {
        field,
        value: path.to_owned(),
        reason: reason.to_owned(),
    };
    let relative = path
        .strip_prefix('/')
        .ok_or_else(|| invalid("is not an absolute guest path"))?;
    let parts: Vec<&str> = relative
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    if parts
        .iter()
        .any(|part| matches!(*part, "." | "..") || part.contains('\0'))
    {
        return Err(invalid("holds `.`, `..` or a NUL: write the plain path"));
    }
    let normal = format!("/{}", parts.join("/"));
    let covered = RESERVED.contains(&normal.as_str())
        || ["/proc/", "/dev/", "/etc/", "/usr/"]
            .iter()
            .any(|system| normal.starts_with(system));
    if covered {
        return Err(invalid(
            "would cover a system folder of the sandbox: use a path such as /workspace or /data",
        ));
    }
    Ok(normal)
}

fn capabilities(host_network: bool, landlock_abi: u32) -> Capabilities {
    let net = if host_network {
        "host network"
    } else {
        "netns"
    };
    let landlock = match landlock_abi {
        0 => "no landlock".to_owned(),
        abi => format!("landlock abi {abi}"),
    };
    let level = format!("userns, mntns, pidns, ipcns, utsns, cgroupns, {net}; seccomp; {landlock}");
    let mut capabilities = Capabilities::new(
        Isolation::Namespaces,
        level,
        NetworkEnforcement::AllOrNothing,
    );
    capabilities.limits = LimitSupport::default();
    capabilities.background = true;
    capabilities.snapshots = true;
    capabilities
}

/// A limit that cannot be enforced is refused, not ignored.
fn refuse_limits(limits: &ResourceLimits) -> Result<()> {
    let asked = [
        ("memory", limits.memory_bytes.is_some()),
        ("cpus", limits.cpus.is_some()),
        ("pids", limits.pids.is_some()),
        ("disk", limits.disk_bytes.is_some()),
    ];
    let asked: Vec<&str> = asked
        .iter()
        .filter(|(_, asked)| *asked)
        .map(|(name, _)| *name)
        .collect();
    if asked.is_empty() || limits.best_effort {
        return Ok(());
    }
    Err(SandboxError::IsolationUnavailable {
        what: format!(
            "the local sandbox does not enforce these limits yet: {}",
            asked.join(", ")
        ),
        remedy: "Leave the limit out, or ask for best effort".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_folders_cover_nothing_that_is_needed() {
        for (path, expect) in [
            ("/workspace", Some("/workspace")),
            ("//data//in/", Some("/data/in")),
            ("/home/agent/project", Some("/home/agent/project")),
            ("/", None),
            ("/usr", None),
            ("/etc/ssl", None),
            ("/tmp", None),
            ("relative", None),
            ("/a/../etc", None),
        ] {
            assert_eq!(
                guest_folder("working_directory", path).ok().as_deref(),
                expect,
                "{path}"
            );
        }
    }

    #[test]
    fn limits_are_refused_unless_best_effort_is_enough() {
        let error = refuse_limits(&ResourceLimits::default().memory_bytes(1))
            .expect_err("refused")
            .to_string();
        assert!(
            error.contains("memory") && error.contains("best effort"),
            "{error}"
        );
        assert!(refuse_limits(&ResourceLimits::default().memory_bytes(1).best_effort()).is_ok());
    }
}
