//! The creation of a sandbox: from options to a plan, from a plan to a running supervisor.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};

use sixb_sandbox::{
    Capabilities, CreateOptions, Isolation, LimitSupport, NetworkEnforcement, NetworkPolicy,
    Result, SandboxError, Workspace, spool::Spool,
};

use super::{
    cgroup::Cgroup,
    factory::{LocalSandboxFactory, blocking},
    lease::{self, Lease},
    limits,
    link::Link,
    request,
    sandbox::{Env, ID_PREFIX, Inner, LocalSandbox},
    spawn, unisolated, user,
    workspace::{self, Folder},
};
use crate::{
    files::Files,
    plan::{HOME, HostFacts, Plan, View, mount_steps},
    relay::{self, Relay, RelayPlan},
};

const WORKING_DIRECTORY: &str = "/workspace";
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
const HOSTNAME: &str = "sixb";
/// Guest folders that a working directory or an extra path may not cover.
const RESERVED: &[&str] = &[
    "/", "/bin", "/dev", "/etc", "/home", "/lib", "/lib64", "/mnt", "/proc", "/root", "/run",
    "/sbin", "/tmp", "/usr", "/var", HOME,
];

/// The whole creation. Runs in a task of its own: what it made is dropped, and so removed, if nobody waits any more.
pub(super) async fn make(
    factory: LocalSandboxFactory,
    options: CreateOptions,
) -> Result<LocalSandbox> {
    let options = options.over(&factory.defaults);
    let program = factory.program()?;
    request::check(&options)?;
    if factory.unisolated {
        return unisolated::make(factory, options).await;
    }
    let working_directory = guest_folder(
        "working_directory",
        options
            .working_directory
            .as_deref()
            .unwrap_or(WORKING_DIRECTORY),
    )?;
    let (host_network, relay) = match options.network.as_ref() {
        None | Some(NetworkPolicy::None) => (false, None),
        Some(NetworkPolicy::All) => (true, None),
        Some(NetworkPolicy::Restricted(allowed)) => {
            (false, Some(relay::plan(allowed, factory.gateway)?))
        }
        Some(policy) => {
            return Err(SandboxError::IsolationUnavailable {
                what: format!("the local sandbox does not know the network policy {policy:?}"),
                remedy: "Use the network policy `none`, a list of origins, or `all`".into(),
            });
        }
    };
    let empty = matches!(options.workspace, None | Some(Workspace::Empty));
    let delegated = factory.delegated()?;
    let ladder = limits::climb(&options.limits, empty, delegated.is_some())?;
    // A bounded disk is memory: then the working directory lives inside, else in a folder of the host.
    let inside = empty && ladder.disk_bytes.is_some();

    let drop_to = user::drop_to()?;
    let state = factory.sandboxes();
    let mut lease = take_lease(&factory, options.labels.clone()).await?;
    let folder = match inside {
        true => None,
        false => Some(Folder::prepare(
            options.workspace.as_ref(),
            lease.get().folder(),
            factory.state(),
            drop_to,
        )?),
    };
    let mut trees = Vec::new();
    let mut targets = Vec::new();
    let mut writable: Vec<String> = ["/tmp", "/run", "/dev", "/proc", HOME]
        .map(str::to_owned)
        .to_vec();
    if let Some(folder) = &folder {
        trees.push(folder.tree()?);
        targets.push(working_directory.clone());
    }
    if folder.as_ref().is_none_or(|folder| !folder.read_only) {
        writable.push(working_directory.clone());
    }
    for extra in &factory.extra {
        let target = guest_folder("extra path", &extra.guest)?;
        trees.push(workspace::extra(
            &extra.host,
            extra.read_only,
            factory.state(),
            drop_to,
        )?);
        if !extra.read_only {
            writable.push(target.clone());
        }
        targets.push(target);
    }
    let view = View {
        hostname: HOSTNAME,
        host_network,
        hosts: relay.as_ref().map_or("", |relay| &relay.hosts),
        trees: &targets,
        working_directory: inside.then_some(working_directory.as_str()),
        disk_bytes: ladder.disk_bytes,
    };
    let plan = Plan {
        unisolated: false,
        drop_to,
        steps: mount_steps(facts(), &view),
        trees,
        writable,
        host_network,
        hostname: HOSTNAME.to_owned(),
        limits: ladder.limits,
        listen: relay.as_ref().map_or_else(Vec::new, RelayPlan::addresses),
        hand_over: inside.then(|| working_directory.clone()),
    };
    let mut booted = spawn::boot(&program, &plan).await?;
    let cgroup = match ladder.cgroup.as_ref().zip(delegated) {
        Some((bounds, delegated)) => Some(
            delegated
                .make(lease.get().id(), bounds)
                .map_err(cgroup_error)?,
        ),
        None => None,
    };
    lease
        .get_mut()
        .record(booted.init.pid, cgroup.as_ref().map(Cgroup::folder))
        .map_err(folder_error(&state))?;
    if let Some(cgroup) = &cgroup {
        // Nothing runs inside yet: all that will is born under the bounds.
        cgroup.enter(booted.init.pid).map_err(cgroup_error)?;
    }
    let files = match &folder {
        Some(folder) => Files::open(
            &folder.path,
            &working_directory,
            folder.act_as,
            folder.read_only,
        )?,
        None => {
            let root = booted.handed.pop().ok_or_else(|| {
                SandboxError::provider(
                    "create the sandbox",
                    "no working directory was handed over",
                    None,
                )
            })?;
            Files::at(root, &working_directory, drop_to, false)
        }
    };
    let link = Link::new(booted.control);
    let mut env = options.env;
    let relay = relay
        .map(|plan| {
            relay::fill(&mut env, &plan.env);
            let end = link.gone().child_token();
            Relay::start(
                lease.get().id(),
                plan,
                booted.handed,
                options.on_denied,
                end,
            )
        })
        .transpose()
        .map_err(|error| SandboxError::io("start the relay", error))?;
    let lease = lease.keep();
    Ok(LocalSandbox::new(Inner {
        capabilities: capabilities(host_network, booted.landlock_abi, ladder.support),
        link,
        init: booted.init,
        cgroup,
        spool: Spool::new(lease.folder().join("spool")),
        files: Arc::new(files),
        default_timeout: options.default_timeout.unwrap_or(DEFAULT_TIMEOUT),
        memory_limited: options.limits.memory_bytes.is_some(),
        env: Env(env),
        relay,
        stopped: false.into(),
        working_directory,
        id: lease.id().to_owned(),
        lease,
    }))
}

fn cgroup_error(error: io::Error) -> SandboxError {
    SandboxError::io("make the sandbox's cgroup", error)
}

pub(super) fn folder_error(state: &Path) -> impl Fn(io::Error) -> SandboxError {
    let state = state.display().to_string();
    move |error| {
        SandboxError::provider(
            "make the sandbox's folder",
            format!(
                "{state}: {error}. Name a state directory that this user may write (XDG_STATE_HOME, or \
                 LocalSandboxFactory::state_dir)"
            ),
            Some(Arc::new(error)),
        )
    }
}

/// Makes the sandbox's folder. The first sandbox of a factory sweeps.
pub(super) async fn take_lease(
    factory: &LocalSandboxFactory,
    labels: BTreeMap<String, String>,
) -> Result<Unwind> {
    let state = factory.sandboxes();
    let sweep = factory.swept.set(()).is_ok();
    let id = format!(
        "{ID_PREFIX}{}",
        ulid::Ulid::new().to_string().to_lowercase()
    );
    let lease = blocking(move || {
        if sweep {
            // Leavings of others must not keep this one from being made.
            match lease::sweep(&state) {
                Ok(swept) => tracing::debug!(?swept, "swept the state folder"),
                Err(error) => tracing::warn!(%error, "the state folder was not swept"),
            }
        }
        Lease::take(&state, &id, labels)
    });
    lease
        .await
        .map(|lease| Unwind(Some(lease)))
        .map_err(folder_error(&factory.sandboxes()))
}

/// Removes the folder of a sandbox that did not come up.
pub(super) struct Unwind(Option<Lease>);

impl Unwind {
    pub(super) fn get(&self) -> &Lease {
        self.0.as_ref().expect("kept only at the end")
    }

    pub(super) fn get_mut(&mut self) -> &mut Lease {
        self.0.as_mut().expect("kept only at the end")
    }

    pub(super) fn keep(mut self) -> Lease {
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

fn facts() -> &'static HostFacts {
    static FACTS: OnceLock<HostFacts> = OnceLock::new();
    FACTS.get_or_init(HostFacts::gather)
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

fn capabilities(host_network: bool, landlock_abi: u32, limits: LimitSupport) -> Capabilities {
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
    let mut capabilities =
        Capabilities::new(Isolation::Namespaces, level, NetworkEnforcement::PerOrigin);
    capabilities.limits = limits;
    capabilities.background = true;
    capabilities.snapshots = true;
    capabilities
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
}
