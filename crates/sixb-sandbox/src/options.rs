//! How a sandbox is made.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{NetworkDenial, NetworkPolicy};

/// What the working directory holds at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Workspace {
    /// An empty directory that is removed with the sandbox.
    Empty,
    /// A folder of the host. It is never removed.
    HostFolder {
        /// Where it is on the host.
        path: PathBuf,
        /// Nothing in the sandbox can change it, nor can file calls.
        read_only: bool,
    },
}

/// Bounds on what the processes of a sandbox may use together. `None` = the backend's default.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Processor time, in cores: 0.5 = half a core.
    pub cpus: Option<f64>,
    /// Processes and threads at the same time.
    pub pids: Option<u32>,
    /// What may be written, in bytes.
    pub disk_bytes: Option<u64>,
    /// Files that one process may hold open.
    pub open_files: Option<u64>,
    /// Take what the machine can enforce instead of failing with `IsolationUnavailable`.
    pub best_effort: bool,
}

impl ResourceLimits {
    /// Bounds memory, in bytes.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }
    /// Bounds processor time, in cores.
    pub fn cpus(mut self, cores: f64) -> Self {
        self.cpus = Some(cores);
        self
    }
    /// Bounds processes and threads.
    pub fn pids(mut self, count: u32) -> Self {
        self.pids = Some(count);
        self
    }
    /// Bounds what may be written, in bytes.
    pub fn disk_bytes(mut self, bytes: u64) -> Self {
        self.disk_bytes = Some(bytes);
        self
    }
    /// Bounds the files that one process may hold open.
    pub fn open_files(mut self, count: u64) -> Self {
        self.open_files = Some(count);
        self
    }
    /// Takes what the machine can enforce.
    pub fn best_effort(mut self) -> Self {
        self.best_effort = true;
        self
    }
}

/// Options of one sandbox; also the defaults of a factory.
///
/// ```
/// use sixb_sandbox::CreateOptions;
/// let options = CreateOptions::default().env("LANG", "C.UTF-8").label("run", "42");
/// let merged = options.over(&CreateOptions::default().env("LANG", "C").env("A", "1"));
/// assert_eq!(merged.env["LANG"], "C.UTF-8");
/// assert_eq!(merged.env["A"], "1");
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CreateOptions {
    /// Absolute guest path of the working directory. Default: `/workspace`.
    pub working_directory: Option<String>,
    /// What the working directory holds. Default: empty.
    pub workspace: Option<Workspace>,
    /// Environment of every command. Nothing of the host's environment is added.
    pub env: BTreeMap<String, String>,
    /// Deadline of a command that names none. Default: the backend's (2 minutes in ours).
    pub default_timeout: Option<Duration>,
    /// Default: [`NetworkPolicy::None`].
    pub network: Option<NetworkPolicy>,
    /// Hears what the sandbox tried to reach and may not. Default: nobody.
    pub on_denied: Option<mpsc::Sender<NetworkDenial>>,
    /// Bounds on resources.
    pub limits: ResourceLimits,
    /// Free text for people who list sandboxes.
    pub labels: BTreeMap<String, String>,
    /// Ends the creation. It does not end the sandbox once made.
    pub cancel: CancellationToken,
}

impl CreateOptions {
    /// Sets the guest path of the working directory.
    pub fn working_directory(mut self, path: impl Into<String>) -> Self {
        self.working_directory = Some(path.into());
        self
    }
    /// Sets what the working directory holds.
    pub fn workspace(mut self, workspace: Workspace) -> Self {
        self.workspace = Some(workspace);
        self
    }
    /// Sets one variable.
    pub fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(key.into(), value.into());
        self
    }
    /// Sets the deadline of commands that name none.
    pub fn default_timeout(mut self, timeout: Duration) -> Self {
        self.default_timeout = Some(timeout);
        self
    }
    /// Sets what the sandbox may reach.
    pub fn network(mut self, policy: NetworkPolicy) -> Self {
        self.network = Some(policy);
        self
    }
    /// Sets who hears of what the sandbox tried to reach and may not.
    ///
    /// Nothing ever waits for the channel: what finds no place is counted in [`NetworkDenial::missed`] of the next one
    /// that does. The guest decides how many there are.
    pub fn on_denied(mut self, denials: mpsc::Sender<NetworkDenial>) -> Self {
        self.on_denied = Some(denials);
        self
    }
    /// Sets bounds on resources.
    pub fn limits(mut self, limits: ResourceLimits) -> Self {
        self.limits = limits;
        self
    }
    /// Sets one label.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }
    /// Sets the token that ends the creation.
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = token;
        self
    }

    /// These options, completed by `defaults`. Maps merge per key; a bound that is not named here is taken from there.
    pub fn over(mut self, defaults: &CreateOptions) -> Self {
        fn fill(own: &mut BTreeMap<String, String>, other: &BTreeMap<String, String>) {
            for (key, value) in other {
                own.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        fill(&mut self.env, &defaults.env);
        fill(&mut self.labels, &defaults.labels);
        self.working_directory = self
            .working_directory
            .or_else(|| defaults.working_directory.clone());
        self.workspace = self.workspace.or_else(|| defaults.workspace.clone());
        self.default_timeout = self.default_timeout.or(defaults.default_timeout);
        self.network = self.network.or_else(|| defaults.network.clone());
        self.on_denied = self.on_denied.or_else(|| defaults.on_denied.clone());
        let limits = &defaults.limits;
        self.limits = ResourceLimits {
            memory_bytes: self.limits.memory_bytes.or(limits.memory_bytes),
            cpus: self.limits.cpus.or(limits.cpus),
            pids: self.limits.pids.or(limits.pids),
            disk_bytes: self.limits.disk_bytes.or(limits.disk_bytes),
            open_files: self.limits.open_files.or(limits.open_files),
            best_effort: self.limits.best_effort || limits.best_effort,
        };
        self
    }
}

impl fmt::Debug for CreateOptions {
    /// Environment values are left out: they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateOptions")
            .field("working_directory", &self.working_directory)
            .field("workspace", &self.workspace)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("default_timeout", &self.default_timeout)
            .field("network", &self.network)
            .field("limits", &self.limits)
            .field("labels", &self.labels)
            .finish_non_exhaustive()
    }
}
