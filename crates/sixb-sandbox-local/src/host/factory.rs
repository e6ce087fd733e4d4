//! Makes local sandboxes.

use std::{
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, atomic::Ordering},
};

use async_trait::async_trait;
use sixb_sandbox::{
    Capabilities, CreateOptions, Result, Sandbox, SandboxError, SandboxFactory, SandboxRecord,
};

use super::{
    HOOKED,
    cgroup::Delegated,
    lease::{self, PROVIDER},
    make::make,
};

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
    pub(super) defaults: CreateOptions,
    state: PathBuf,
    helper: Option<PathBuf>,
    pub(super) extra: Vec<Extra>,
    pub(super) gateway: Option<SocketAddr>,
    cgroup: Option<PathBuf>,
    pub(super) unisolated: bool,
    delegated: Arc<OnceLock<Option<Delegated>>>,
    /// Set by the first creation, which sweeps.
    pub(super) swept: Arc<OnceLock<()>>,
}

/// One more folder of the host.
#[derive(Debug, Clone)]
pub(super) struct Extra {
    pub(super) host: PathBuf,
    pub(super) guest: String,
    pub(super) read_only: bool,
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
            gateway: None,
            cgroup: None,
            unisolated: false,
            delegated: Arc::default(),
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

    /// Enforces limits on memory and processor time by cgroups below this folder of the cgroup (version 2) file system.
    /// It must hold no processes, and this user must be allowed to make folders in it. Default: this process's own
    /// cgroup, where it was delegated so.
    pub fn cgroup(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cgroup = Some(folder.into());
        self.delegated = Arc::default();
        self
    }

    /// Lets sandboxes with [`NetworkPolicy::Restricted`](sixb_sandbox::NetworkPolicy::Restricted) reach the project's
    /// gateway, which listens at this address of the host (its loopback, for example). Inside it is always
    /// `http://gateway.sixb.internal`, and it needs no place in the list.
    pub fn gateway(mut self, address: SocketAddr) -> Self {
        self.gateway = Some(address);
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

    /// Where cgroups can be made, if anywhere. A folder that was named and cannot serve is an error.
    pub(super) fn delegated(&self) -> Result<Option<&Delegated>> {
        let found = self
            .delegated
            .get_or_init(|| Delegated::find(self.cgroup.as_deref()))
            .as_ref();
        match (&self.cgroup, found) {
            (Some(named), None) => Err(SandboxError::InvalidInput {
                field: "cgroup",
                value: named.display().to_string(),
                reason: "cannot hold sandboxes: name an empty cgroup v2 folder that this user may write, with the \
                         controllers cpu and memory"
                    .into(),
            }),
            (_, found) => Ok(found),
        }
    }

    /// Runs commands **without any isolation**: as the user of this program, in its file system and its network. For
    /// machines that cannot isolate and code that is trusted. Nothing ever falls back to this by itself.
    ///
    /// The environment, deadlines, output bounds and the end of all processes are as in a sandbox. The working directory
    /// is the host folder itself. A list of allowed origins and limits are refused; `capabilities()` says
    /// [`Isolation::None`](sixb_sandbox::Isolation::None).
    pub fn dangerously_unisolated(mut self) -> Self {
        self.unisolated = true;
        self
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    pub(super) fn sandboxes(&self) -> PathBuf {
        self.state.join("sandboxes").join(PROVIDER)
    }

    pub(super) fn program(&self) -> Result<PathBuf> {
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
        let mut making = tokio::spawn(make(self.clone(), options));
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
        let swept = blocking(move || lease::sweep(&state))
            .await
            .map_err(|error| SandboxError::io("sweep sandboxes", error))?;
        match swept.failed.first() {
            None => Ok(swept.ids),
            Some((folder, error)) => Err(SandboxError::provider(
                "sweep sandboxes",
                format!(
                    "{} cannot be removed: {error}. Remove it by hand; {} others were removed",
                    folder.display(),
                    swept.ids.len()
                ),
                None,
            )),
        }
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(call)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
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
