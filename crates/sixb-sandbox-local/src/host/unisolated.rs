//! Sandboxes without a wall: the explicit, dangerous choice. Everything else about them is the same.

use std::sync::Arc;

use sixb_sandbox::{
    Capabilities, CreateOptions, Isolation, NetworkEnforcement, NetworkPolicy, ResourceLimits,
    Result, SandboxError, Workspace, spool::Spool,
};

use super::{
    factory::LocalSandboxFactory,
    link::Link,
    make::{DEFAULT_TIMEOUT, folder_error, take_lease},
    sandbox::{Env, Inner, LocalSandbox},
    spawn,
    workspace::Folder,
};
use crate::{
    files::Files,
    plan::{Limits, Plan},
};

/// Makes one, or says what of the options cannot be had without a wall.
pub(super) async fn make(
    factory: LocalSandboxFactory,
    options: CreateOptions,
) -> Result<LocalSandbox> {
    refuse(&factory, &options)?;
    let mut lease = take_lease(&factory, options.labels.clone()).await?;
    let folder = Folder::prepare(
        options.workspace.as_ref(),
        lease.get().folder(),
        factory.state(),
        None,
    )?;
    let working_directory = folder.tree()?.source;
    if let Some(asked) = options
        .working_directory
        .filter(|asked| *asked != working_directory)
    {
        return Err(unavailable(format!(
            "the working directory cannot show at {asked:?}, since it is {working_directory:?} on the host"
        )));
    }
    let plan = Plan {
        unisolated: true,
        drop_to: None,
        trees: Vec::new(),
        steps: Vec::new(),
        writable: Vec::new(),
        host_network: true,
        hostname: String::new(),
        limits: Limits::unisolated(),
        listen: Vec::new(),
        hand_over: None,
    };
    let booted = spawn::boot(&factory.program()?, &plan).await?;
    let state = factory.sandboxes();
    lease
        .get_mut()
        .record(booted.init.pid, None)
        .map_err(folder_error(&state))?;
    let files = Files::open(&folder.path, &working_directory, None, folder.read_only)?;
    let mut env = options.env;
    // The home of the sandbox's user does not exist, and this user's own is not handed out unasked.
    env.entry("HOME".into())
        .or_insert_with(|| working_directory.clone());
    let lease = lease.keep();
    Ok(LocalSandbox::new(Inner {
        capabilities: capabilities(),
        link: Link::new(booted.control),
        init: booted.init,
        cgroup: None,
        spool: Spool::new(lease.folder().join("spool")),
        files: Arc::new(files),
        default_timeout: options.default_timeout.unwrap_or(DEFAULT_TIMEOUT),
        memory_limited: false,
        env: Env(env),
        relay: None,
        stopped: false.into(),
        working_directory,
        id: lease.id().to_owned(),
        lease,
    }))
}

fn capabilities() -> Capabilities {
    let mut capabilities = Capabilities::new(
        Isolation::None,
        "none: commands run as the user of this program, with its files and its network",
        NetworkEnforcement::Nothing,
    );
    capabilities.background = true;
    capabilities.snapshots = true;
    capabilities
}

/// Network policy `none` is the default and passes: who chose this by name knows that nothing is enforced.
fn refuse(factory: &LocalSandboxFactory, options: &CreateOptions) -> Result<()> {
    if matches!(options.network, Some(NetworkPolicy::Restricted(_))) {
        return Err(unavailable(
            "the network cannot be limited to origins".into(),
        ));
    }
    let ResourceLimits {
        memory_bytes,
        cpus,
        pids,
        disk_bytes,
        best_effort,
        ..
    } = options.limits;
    let limited =
        memory_bytes.is_some() || cpus.is_some() || pids.is_some() || disk_bytes.is_some();
    if limited && !best_effort {
        return Err(unavailable("resources cannot be limited".into()));
    }
    if matches!(
        options.workspace,
        Some(Workspace::HostFolder {
            read_only: true,
            ..
        })
    ) {
        return Err(unavailable(
            "nobody keeps commands from writing to a read-only folder".into(),
        ));
    }
    if !factory.extra.is_empty() {
        return Err(unavailable(
            "host folders cannot show at other paths".into(),
        ));
    }
    Ok(())
}

fn unavailable(what: String) -> SandboxError {
    SandboxError::IsolationUnavailable {
        what: format!("without isolation {what}"),
        remedy: "Leave that option out, or make an isolated sandbox".into(),
    }
}
