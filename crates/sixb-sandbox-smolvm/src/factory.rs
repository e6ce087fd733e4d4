//! Makes sandboxes that are microVMs.

use std::{fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use sixb_sandbox::{
    Capabilities, CreateOptions, Result, Sandbox, SandboxError, SandboxFactory, SandboxRecord,
};
use tokio::sync::OnceCell;

use crate::{
    Finding, Image, Installation, PROVIDER,
    engine::{Cli, Smolvm},
    image::Source,
    lease::{self, Found},
    make, preflight,
};

/// Makes sandboxes that are microVMs, each with a kernel of its own, by the `smolvm` program.
///
/// ```no_run
/// # async fn example() -> sixb_sandbox::Result<()> {
/// use sixb_sandbox::{CreateOptions, SandboxExt, SandboxFactory};
/// use sixb_sandbox_smolvm::SmolvmSandboxFactory;
///
/// let sandbox = SmolvmSandboxFactory::default().create(CreateOptions::default()).await?;
/// assert_eq!(sandbox.sh("echo hello").await?.stdout.text(), "hello\n");
/// sandbox.destroy().await
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SmolvmSandboxFactory {
    pub(crate) defaults: CreateOptions,
    pub(crate) state: PathBuf,
    installation: Option<Installation>,
    pub(crate) image: Image,
    pub(crate) cpus: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) storage_gib: Option<u32>,
    pub(crate) overlay_gib: Option<u32>,
    pub(crate) registry_hosts: Vec<String>,
    pub(crate) gateway: Option<SocketAddr>,
    pub(crate) boot_deadline: Duration,
    ready: Arc<OnceCell<Arc<dyn Smolvm>>>,
}

impl Default for SmolvmSandboxFactory {
    /// The agent image, 2 cores, 1 GiB of memory; state in `$XDG_STATE_HOME/sixb`, else `~/.local/state/sixb`.
    fn default() -> Self {
        Self {
            defaults: CreateOptions::default(),
            state: user_folder("XDG_STATE_HOME", ".local/state")
                .unwrap_or_else(std::env::temp_dir)
                .join("sixb"),
            installation: None,
            image: Image::default(),
            cpus: 2,
            memory_bytes: 1 << 30,
            storage_gib: None,
            overlay_gib: None,
            registry_hosts: Vec::new(),
            gateway: None,
            boot_deadline: Duration::from_secs(120),
            ready: Arc::default(),
        }
    }
}

/// The folder that `variable` names, else one below the home folder.
pub(crate) fn user_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)))
}

impl SmolvmSandboxFactory {
    /// Sets what sandboxes get when their own options say nothing.
    pub fn defaults(mut self, defaults: CreateOptions) -> Self {
        self.defaults = defaults;
        self
    }

    /// Keeps leases, machines and spools below this folder of the host. Its path must be short: sockets lie in it.
    pub fn state_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.state = folder.into();
        self
    }

    /// Uses this `smolvm` program, with the libraries and the root file system that lie beside it.
    pub fn bin(mut self, program: impl Into<PathBuf>) -> Self {
        self.installation = Some(Installation::at(program));
        self
    }

    /// Sets what the file systems of machines are made of.
    pub fn image(mut self, image: Image) -> Self {
        self.image = image;
        self
    }

    /// Sets how many cores a machine has where the limits say nothing.
    pub fn cpus(mut self, cores: u32) -> Self {
        self.cpus = cores.max(1);
        self
    }

    /// Sets how much memory a machine has, in bytes, where the limits say nothing. At least 256 MiB.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Sets the size of the disk that holds the image's changes and the working directory, in GiB.
    pub fn storage_gib(mut self, gib: u32) -> Self {
        self.storage_gib = Some(gib);
        self
    }

    /// Sets the size of the disk that holds changes to the bare machine's system, in GiB.
    pub fn overlay_gib(mut self, gib: u32) -> Self {
        self.overlay_gib = Some(gib);
        self
    }

    /// Adds a host that an image is pulled from beside the one in its reference, such as where its layers are stored.
    pub fn registry_host(mut self, host: impl Into<String>) -> Self {
        self.registry_hosts.push(host.into());
        self
    }

    /// Makes a server on this host the project's gateway: `http://gateway.sixb.internal` in machines with a restricted
    /// network.
    pub fn gateway(mut self, address: SocketAddr) -> Self {
        self.gateway = Some(address);
        self
    }

    /// Sets how long a machine may take to boot. Default: 120 s.
    pub fn boot_deadline(mut self, deadline: Duration) -> Self {
        self.boot_deadline = deadline;
        self
    }

    /// What smolvm needs on this machine, each with the remedy where it is missing. Boots nothing.
    pub async fn findings(&self) -> Vec<Finding> {
        let (installation, state, image) = (self.found(), self.smolvm_state(), self.image.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let mut all = preflight::look(installation.as_ref(), &state);
            all.push(preflight::image(&image));
            all
        });
        looked.await.unwrap_or_default()
    }

    /// Checks all that the first sandbox would check, with a trial boot. Done once by each factory; the verdict of the boot
    /// is kept until the host boots anew.
    ///
    /// # Errors
    /// `IsolationUnavailable` with what is missing and what to do.
    pub async fn preflight(&self) -> Result<()> {
        self.ready().await.map(drop)
    }

    fn found(&self) -> Option<Installation> {
        self.installation.clone().or_else(Installation::find)
    }

    /// Everything that smolvm itself keeps.
    pub(crate) fn smolvm_state(&self) -> PathBuf {
        self.state.join(PROVIDER)
    }

    pub(crate) fn leases(&self) -> PathBuf {
        self.state.join("sandboxes").join(PROVIDER)
    }

    fn engine(&self) -> Option<Arc<dyn Smolvm>> {
        if let Some(ready) = self.ready.get() {
            return Some(ready.clone());
        }
        let mut installation = self.found()?;
        if let Ok(Source::Root(folder)) = self.image.source() {
            installation.rootfs = Some(folder);
        }
        let cli = Cli::new(installation, &self.smolvm_state(), self.boot_deadline);
        Some(Arc::new(cli))
    }

    /// The program, once everything that it needs was found and the leavings of dead owners were removed.
    pub(crate) async fn ready(&self) -> Result<Arc<dyn Smolvm>> {
        let ready = self.ready.get_or_try_init(|| async {
            for finding in self.findings().await {
                finding.check()?;
            }
            let engine = self
                .engine()
                .ok_or_else(|| SandboxError::IsolationUnavailable {
                    what: "smolvm is not installed".into(),
                    remedy: "sixb sandbox install smolvm".into(),
                })?;
            let state = self.smolvm_state();
            let folder = state.clone();
            tokio::task::spawn_blocking(move || lease::own_folder(&folder))
                .await
                .unwrap_or_else(|error| Err(std::io::Error::other(error)))
                .map_err(|error| SandboxError::io("make the state folder", error))?;
            preflight::probe(&*engine, &state, self.boot_deadline / 2).await?;
            match self.sweep_with(&*engine).await {
                Ok(swept) if !swept.is_empty() => {
                    tracing::info!(?swept, "removed machines of dead owners")
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "machines of dead owners were not removed"),
            }
            Ok(engine)
        });
        ready.await.cloned()
    }

    async fn leases_found(&self) -> Result<Vec<Found>> {
        let leases = self.leases();
        tokio::task::spawn_blocking(move || lease::found(&leases))
            .await
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(|error| SandboxError::io("list sandboxes", error))
    }

    async fn sweep_with(&self, engine: &dyn Smolvm) -> Result<Vec<String>> {
        let mut swept = Vec::new();
        for found in self.leases_found().await? {
            // Holding the lease while removing: two sweeps do not meet.
            let Some(leavings) = found.leavings else {
                continue;
            };
            engine.delete(&found.id).await?;
            tokio::task::spawn_blocking(move || leavings.remove())
                .await
                .unwrap_or_else(|error| Err(std::io::Error::other(error)))
                .map_err(|error| SandboxError::io("remove a sandbox's folder", error))?;
            swept.push(found.id);
        }
        Ok(swept)
    }

    #[cfg(test)]
    pub(crate) fn with_engine(self, engine: Arc<dyn Smolvm>) -> Self {
        Self {
            ready: Arc::new(OnceCell::new_with(Some(engine))),
            ..self
        }
    }
}

impl fmt::Display for SmolvmSandboxFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "smolvm sandboxes (microVMs, image {})", self.image)
    }
}

#[async_trait]
impl SandboxFactory for SmolvmSandboxFactory {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    async fn create(&self, mut options: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        if options.cancel.is_cancelled() {
            return Err(SandboxError::Cancelled {
                op: "create the sandbox",
            });
        }
        // In a task of its own, so that what was begun is undone also for a caller that goes away: that cancels it.
        options.cancel = options.cancel.child_token();
        let gone = options.cancel.clone().drop_guard();
        let made = tokio::spawn(make::make(self.clone(), options)).await;
        let sandbox =
            made.map_err(|error| SandboxError::provider("create the sandbox", error, None))??;
        gone.disarm();
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
            "the program `true` did not run in a trial machine",
            None,
        ))
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        let found = self.leases_found().await?;
        let running: Vec<String> = match (found.is_empty(), self.engine()) {
            (false, Some(engine)) => {
                let machines = engine.machines().await?.into_iter();
                machines
                    .filter(|(_, running)| *running)
                    .map(|(name, _)| name)
                    .collect()
            }
            _ => Vec::new(),
        };
        Ok(found
            .into_iter()
            .map(|found| {
                let (pid, created) = found
                    .content
                    .as_ref()
                    .map_or((0, 0), |content| (content.owner_pid, content.created_at));
                let runs = running.contains(&found.id);
                SandboxRecord::new(
                    found.id,
                    PROVIDER,
                    pid,
                    found.leavings.is_none(),
                    runs,
                    created,
                )
            })
            .collect())
    }

    async fn sweep(&self) -> Result<Vec<String>> {
        let found = self.leases_found().await?;
        if found.iter().all(|found| found.leavings.is_none()) {
            return Ok(Vec::new());
        }
        drop(found);
        let engine = self
            .engine()
            .ok_or_else(|| SandboxError::IsolationUnavailable {
                what: "smolvm is gone, and with it the way to remove machines of dead owners"
                    .into(),
                remedy: "sixb sandbox install smolvm".into(),
            })?;
        self.sweep_with(&*engine).await
    }
}
