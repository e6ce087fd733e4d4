//! The creation of a sandbox: from options to a machine, from a machine to one that answers. Undone where it fails.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use sixb_sandbox::{
    CancellationToken, Capabilities, CreateOptions, Enforcer, Isolation, LimitSupport,
    NetworkEnforcement, NetworkPolicy, ResourceLimits, Result, SandboxError, Workspace,
    spool::Spool,
};

use crate::{
    engine::{Smolvm, Spec},
    factory::SmolvmSandboxFactory,
    guest,
    image::Source,
    lease::{Lease, PREFIX},
    link::Link,
    relay::{self, Denials, Relay},
    sandbox::{Inner, SmolvmSandbox},
    wire,
};

const WORKING_DIRECTORY: &str = "/workspace";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest path of a Unix socket on Linux, with its NUL.
const MAX_SOCKET: usize = 108;
const MIB: u64 = 1 << 20;
/// What the guest's kernel, smolvm's agent and our program need beside the commands.
const OVERHEAD_MIB: u64 = 128;
const LEAST_MIB: u64 = 256;
/// Guest folders that a working directory may not cover.
const RESERVED: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/mnt",
    "/opt",
    "/oldroot",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/storage",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
    guest::FOLDER,
];

/// All that is decided before anything is made.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) spec: Spec,
    pub(crate) working_directory: String,
    pub(crate) serve: Vec<String>,
    pub(crate) relay: Option<Relay>,
    pub(crate) limits: LimitSupport,
}

/// Decides. Pure: what is wrong with the options is said here.
pub(crate) fn plan(
    factory: &SmolvmSandboxFactory,
    options: &CreateOptions,
    name: &str,
) -> Result<Plan> {
    let working_directory = guest_folder(
        options
            .working_directory
            .as_deref()
            .unwrap_or(WORKING_DIRECTORY),
    )?;
    let limits = &options.limits;
    let support = support(limits)?;
    let (mut mounts, mut read_only) = (Vec::new(), false);
    if let Some(Workspace::HostFolder {
        path,
        read_only: ro,
    }) = &options.workspace
    {
        let shown = path.to_str().filter(|path| !path.contains(':')).ok_or_else(|| SandboxError::InvalidInput {
            field: "workspace",
            value: path.display().to_string(),
            reason: "cannot be shown to a microVM: its path holds a colon or is not UTF-8; move it or name another folder".into(),
        })?;
        mounts.push((PathBuf::from(shown), working_directory.clone(), *ro));
        read_only = *ro;
    }
    let policy = options.network.clone().unwrap_or_default();
    let registry = factory.image.registry_host();
    let mut pull_hosts = Vec::new();
    let relay = match (&policy, &registry) {
        (NetworkPolicy::All, _) => None,
        (NetworkPolicy::None, Some(host)) => {
            return Err(SandboxError::InvalidInput {
                field: "image",
                value: factory.image.to_string(),
                reason: format!(
                    "is pulled from {host} by the machine itself, which the network policy `none` forbids: use the agent image or a file \
                     (`docker save`), or a restricted policy, to which the registry is added"
                ),
            });
        }
        (NetworkPolicy::None, None) => None,
        (NetworkPolicy::Restricted(allowed), _) => {
            if let Some(host) = registry {
                pull_hosts.push(host);
                pull_hosts.extend(factory.registry_hosts.clone());
            }
            Some(Relay::new(allowed, factory.gateway)?)
        }
        (policy, _) => {
            return Err(SandboxError::IsolationUnavailable {
                what: format!("the smolvm sandbox does not know this network policy: {policy:?}"),
                remedy: "Use none, restricted or all".into(),
            });
        }
    };
    let memory_mib = match limits.memory_bytes {
        Some(bytes) => (bytes.div_ceil(MIB) + OVERHEAD_MIB).max(LEAST_MIB),
        None => factory.memory_bytes.div_ceil(MIB).max(LEAST_MIB),
    };
    let cpus = match limits.cpus {
        Some(cores) if cores.is_finite() && cores > 0.0 => (cores.ceil() as u32).max(1),
        Some(cores) => {
            return Err(SandboxError::InvalidInput {
                field: "limits.cpus",
                value: cores.to_string(),
                reason: "is no number of cores: use one above 0, such as 0.5 or 2".into(),
            });
        }
        None => factory.cpus,
    };
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    let mut serve = vec![
        format!("{}/{}", guest::FOLDER, guest::FILE),
        "serve".into(),
        guest::SOCKET.into(),
        working_directory.clone(),
        if read_only { "ro" } else { "rw" }.into(),
        text(limits.memory_bytes.map(|bytes| bytes.to_string())),
        text(limits.pids.map(|count| count.to_string())),
        text(
            limits
                .cpus
                .map(|cores| ((cores * 1000.0).ceil() as u64).max(1).to_string()),
        ),
    ];
    if let Some(relay) = &relay {
        serve.extend(relay.addresses());
        serve.push("--".into());
        serve.extend(relay.hosts());
    }
    let image = match factory.image.source()? {
        Source::Container(image) => Some(image),
        // The engine boots from it.
        Source::Root(_) | Source::Own => None,
    };
    let spec = Spec {
        name: name.to_owned(),
        cpus,
        memory_mib,
        storage_gib: factory.storage_gib,
        overlay_gib: factory.overlay_gib,
        open_network: policy == NetworkPolicy::All,
        pull_hosts,
        mounts,
        socket: guest::SOCKET.into(),
        workload: if image.is_some() {
            serve.clone()
        } else {
            Vec::new()
        },
        image,
    };
    Ok(Plan {
        spec,
        working_directory,
        serve,
        relay,
        limits: support,
    })
}

/// What of the limits is enforced, and by what.
fn support(limits: &ResourceLimits) -> Result<LimitSupport> {
    let refused = |what: &str, remedy: &str| match limits.best_effort {
        true => Ok(()),
        false => Err(SandboxError::IsolationUnavailable {
            what: what.to_owned(),
            remedy: remedy.to_owned(),
        }),
    };
    if let Some(bytes) = limits.disk_bytes {
        refused(
            &format!("the disks of a microVM are whole GiB, so {bytes} bytes cannot be a limit"),
            "Set the size of the disks with `SmolvmSandboxFactory::storage_gib` and `overlay_gib`, or ask for best effort",
        )?;
    }
    if let Some(count) = limits.open_files {
        refused(
            &format!("open files per process ({count}) cannot be limited in a microVM yet"),
            "Leave the limit out, or ask for best effort: the machine's memory bounds it",
        )?;
    }
    let mut support = LimitSupport::default();
    (support.memory, support.cpus, support.pids) = (
        Some(Enforcer::Vm),
        Some(Enforcer::Cgroup),
        Some(Enforcer::Cgroup),
    );
    Ok(support)
}

/// An absolute guest path, normalised, that covers nothing that a machine needs.
fn guest_folder(path: &str) -> Result<String> {
    let invalid = |reason: &str| SandboxError::InvalidInput {
        field: "working_directory",
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
        .any(|part| matches!(*part, "." | "..") || part.contains(['\0', ':']))
    {
        return Err(invalid(
            "holds `.`, `..`, a colon or a NUL: write the plain path",
        ));
    }
    let normal = format!("/{}", parts.join("/"));
    let covered = RESERVED.contains(&normal.as_str())
        || ["/proc/", "/dev/", "/etc/", "/sys/", "/usr/", "/opt/sixb/"]
            .iter()
            .any(|system| normal.starts_with(system));
    if covered {
        return Err(invalid(
            "would cover a system folder of the machine: use a path such as /workspace or /data",
        ));
    }
    Ok(normal)
}

/// The whole creation. Runs in a task of its own: what it made is dropped, and so removed, if nobody waits any more.
pub(crate) async fn make(
    factory: SmolvmSandboxFactory,
    options: CreateOptions,
) -> Result<SmolvmSandbox> {
    let options = options.over(&factory.defaults);
    let id = format!(
        "{PREFIX}{}-{}",
        std::process::id(),
        ulid::Ulid::new().to_string().to_lowercase()
    );
    let mut plan = plan(&factory, &options, &id)?;
    let engine = factory.ready().await?;
    let state = factory.smolvm_state();
    let leases = factory.leases();
    let lease_id = id.clone();
    let (lease, guest) = tokio::task::spawn_blocking(move || {
        let lease = Lease::take(&leases, &lease_id)
            .map_err(|error| SandboxError::io("make the sandbox's folder", error))?;
        Ok::<_, SandboxError>((lease, guest::lay_out(&state)?))
    })
    .await
    .map_err(|error| SandboxError::provider("create the sandbox", error, None))??;
    let socket = lease.folder().join("s");
    if socket.as_os_str().len() >= MAX_SOCKET {
        return Err(SandboxError::InvalidInput {
            field: "state_dir",
            value: factory.state.display().to_string(),
            reason: format!(
                "is too long a path: the socket {} would have {} bytes and Linux takes {}; name a shorter one",
                socket.display(),
                socket.as_os_str().len(),
                MAX_SOCKET - 1
            ),
        });
    }
    plan.spec.socket = format!("{}:{}", guest::SOCKET, socket.display());
    if !plan.spec.workload.is_empty() {
        // A container sees only what it is shown, before it runs.
        let folder = guest.clone();
        plan.spec
            .mounts
            .push((folder, guest::FOLDER.to_owned(), true));
    }
    let program = guest.join(guest::FILE);

    // From here on a failure leaves something to undo.
    let unwind = Unwind {
        engine: engine.clone(),
        name: Some(id.clone()),
        lease: Some(lease),
    };
    let link = Link::new(&socket);
    let booted = tokio::select! {
        booted = boot(&*engine, &plan, &program, &link, factory.boot_deadline) => booted,
        () = options.cancel.cancelled() => Err(SandboxError::Cancelled { op: "create the sandbox" }),
    };
    let gone = match booted {
        Ok(gone) => gone,
        Err(error) => {
            unwind.undo().await;
            return Err(error);
        }
    };
    let lease = unwind.keep();
    let serving = CancellationToken::new();
    if let Some(relay) = plan.relay {
        relay::serve(
            Arc::new(relay),
            link.clone(),
            Denials::new(options.on_denied),
            serving.clone(),
        );
    }
    let level = format!(
        "microVM (libkrun on KVM), own kernel, {}",
        match plan.spec.open_network {
            true => "network card",
            false => "no network card",
        }
    );
    let mut capabilities =
        Capabilities::new(Isolation::MicroVm, level, NetworkEnforcement::PerOrigin);
    (
        capabilities.limits,
        capabilities.background,
        capabilities.snapshots,
    ) = (plan.limits, true, true);
    Ok(SmolvmSandbox::new(Inner {
        spool: Spool::new(lease.folder().join("spool")),
        working_directory: plan.working_directory,
        default_timeout: options.default_timeout.unwrap_or(DEFAULT_TIMEOUT),
        env: options.env,
        capabilities,
        engine,
        link,
        gone,
        serving,
        lease,
        stopped: false.into(),
        ended: false.into(),
        id,
    }))
}

/// Makes and starts the machine, and waits until our program in it answers. The token fires when the machine is gone.
async fn boot(
    engine: &dyn Smolvm,
    plan: &Plan,
    program: &Path,
    link: &Link,
    deadline: Duration,
) -> Result<CancellationToken> {
    let name = &plan.spec.name;
    let begun = Instant::now();
    engine.create(&plan.spec).await?;
    engine.start(name).await?;
    if plan.spec.workload.is_empty() {
        // Not a mount: one more device of the machine makes its boot slower by a third where it is emulated.
        let until = begun + deadline;
        once_it_runs(until, || engine.place(name, program, &plan.serve[0])).await?;
        once_it_runs(until, || engine.launch(name, &plan.serve)).await?;
    }
    let mut pause = Duration::from_millis(5);
    loop {
        let answered = tokio::time::timeout(Duration::from_secs(10), link.hello()).await;
        match answered {
            Ok(Ok(())) => break,
            _ if begun.elapsed() >= deadline => {
                return Err(SandboxError::Timeout {
                    op: "boot the machine",
                    after: deadline,
                });
            }
            _ => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_millis(200));
    }
    let watch = link
        .ask::<&[u8]>(wire::WATCH, &[])
        .await
        .map_err(|error| SandboxError::io("watch the machine", error))?;
    let gone = CancellationToken::new();
    tokio::spawn({
        let gone = gone.clone();
        async move {
            // All of it: half a conversation dropped outside of here would end it.
            let mut watch = watch;
            tokio::select! {
                _ = watch.from.receive() => gone.cancel(),
                () = gone.cancelled() => {}
            }
        }
    });
    Ok(gone)
}

/// A machine that just started may be said not to run yet: tried again until the deadline.
async fn once_it_runs<F: Future<Output = Result<()>>>(
    until: Instant,
    mut call: impl FnMut() -> F,
) -> Result<()> {
    loop {
        match call().await {
            Err(SandboxError::Provider { detail, .. })
                if Instant::now() < until && detail.contains("INVALID_STATE") =>
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            result => return result,
        }
    }
}

/// Removes what a failed creation made.
struct Unwind {
    engine: Arc<dyn Smolvm>,
    name: Option<String>,
    lease: Option<Lease>,
}

impl Unwind {
    fn keep(mut self) -> Lease {
        self.name = None;
        self.lease.take().expect("kept once")
    }

    /// Ends and removes the machine, and looks whether it is gone. What cannot be removed keeps its folder, unlocked
    /// once this process ends: a later sweep tries again.
    async fn undo(mut self) {
        let (Some(name), Some(lease)) = (self.name.take(), self.lease.take()) else {
            return;
        };
        let mut left = self.engine.delete(&name).await.err();
        if left.is_none() {
            left = match self.engine.machines().await {
                Ok(machines) if machines.iter().any(|(machine, _)| *machine == name) => {
                    self.engine.delete(&name).await.err()
                }
                _ => None,
            };
        }
        match left {
            Some(error) => {
                tracing::warn!(%error, machine = name, "a machine that did not come up was not removed; a sweep will")
            }
            None => {
                if let Some(folder) = lease.take_folder() {
                    let _ = tokio::task::spawn_blocking(move || folder.remove()).await;
                }
            }
        }
    }
}
