//! What a backend really enforces. Tools ask this, never the provider's name.

use serde::Serialize;

/// The wall between the sandbox and the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Isolation {
    /// None: commands run as the host user. Only by explicit, dangerous choice.
    None,
    /// Kernel namespaces: the host kernel is shared.
    Namespaces,
    /// A virtual machine with a kernel of its own.
    MicroVm,
}

/// How finely network access can be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NetworkEnforcement {
    /// Nothing can be enforced.
    Nothing,
    /// `none` or `all`.
    AllOrNothing,
    /// Scheme, host and port of each allowed origin.
    PerOrigin,
}

/// Who enforces a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Enforcer {
    /// A cgroup: exact, for all processes together.
    Cgroup,
    /// A resource limit of the kernel, per process or per user namespace.
    Rlimit,
    /// The backend measures and kills.
    Supervisor,
    /// The size of a memory file system.
    Tmpfs,
    /// The size of the virtual machine.
    Vm,
}

/// Which limits are enforced, and by what. `None` = asking for it is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LimitSupport {
    /// Memory.
    pub memory: Option<Enforcer>,
    /// Processor time.
    pub cpus: Option<Enforcer>,
    /// Processes and threads.
    pub pids: Option<Enforcer>,
    /// Bytes written.
    pub disk: Option<Enforcer>,
}

/// What one sandbox, or a factory on this machine, really enforces.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// The wall.
    pub isolation: Isolation,
    /// What the wall is made of here, for people: `userns+pidns+netns, seccomp, landlock 7`.
    pub level: String,
    /// Network policies that are enforced.
    pub network: NetworkEnforcement,
    /// Limits that are enforced.
    pub limits: LimitSupport,
    /// Processes outlive the command that began them.
    pub background: bool,
    /// A graphical desktop can run.
    pub desktop: bool,
    /// `snapshot` works.
    pub snapshots: bool,
}

impl Capabilities {
    /// Capabilities with no limits, no background processes, no desktop and no snapshots; set the fields that hold.
    pub fn new(
        isolation: Isolation,
        level: impl Into<String>,
        network: NetworkEnforcement,
    ) -> Self {
        Self {
            isolation,
            level: level.into(),
            network,
            limits: LimitSupport::default(),
            background: false,
            desktop: false,
            snapshots: false,
        }
    }
}
