//! A process that owns a sandbox and dies by SIGKILL: nothing of it is left after a sweep (case 26).

use std::{
    fmt,
    path::{Path, PathBuf},
    process::{Command as HostCommand, Stdio},
    sync::Arc,
};

use tokio::{sync::oneshot, task::spawn_blocking};

use super::{
    Suite,
    guest::{becomes, within},
    host,
};
use crate::{Command, CreateOptions, SandboxFactory};

/// Holds the state folder in the environment of an owner.
const STATE: &str = "SIXB_CONFORMANCE_OWNER_STATE";
/// Begins the line that says the sandbox is up.
const READY: &str = "sixb-conformance-owner ";

/// How to start a process that makes a sandbox, in the state folder of the suite's factory, and waits to be killed.
///
/// The process calls [`Suite::own_a_sandbox`], which prints what the check waits for on standard output.
#[derive(Clone)]
pub struct OwnerCommand(Arc<dyn Fn() -> HostCommand + Send + Sync>);

impl OwnerCommand {
    /// Starts what `command` makes, with its standard output piped.
    pub fn new(command: impl Fn() -> HostCommand + Send + Sync + 'static) -> Self {
        Self(Arc::new(command))
    }

    /// Starts this test binary again as the libtest test `name`, told by its environment to act as the owner.
    pub(super) fn this_test(name: String, state: &Path) -> Self {
        let state = state.to_owned();
        Self::new(move || {
            let mut command = host::this_binary();
            command
                .args([&name, "--exact", "--nocapture"])
                .env(STATE, &state);
            command
        })
    }
}

impl fmt::Debug for OwnerCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerCommand")
    }
}

impl Suite {
    /// The body of an owner's process: makes a sandbox, leaves processes running in it, prints one line, and waits to
    /// be killed.
    pub async fn own_a_sandbox(factory: Arc<dyn SandboxFactory>) -> ! {
        own(factory).await
    }
}

/// The state folder, where this process is to be an owner.
pub(super) fn asked_to_own() -> Option<PathBuf> {
    std::env::var_os(STATE).map(PathBuf::from)
}

/// In the command line of every process of an owner's sandbox.
fn mark(owner: u32) -> String {
    format!("sixb-conformance-{owner}")
}

pub(super) async fn own(factory: Arc<dyn SandboxFactory>) -> ! {
    let sandbox = factory
        .create(CreateOptions::default())
        .await
        .expect("create");
    let mark = mark(std::process::id());
    let script = format!(
        "exec -a {mark} sleep 1000 & (setsid bash -c 'exec -a {mark} sleep 1000' &); echo up; wait"
    );
    let (chunks, mut output) = tokio::sync::mpsc::channel(8);
    let running = {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { sandbox.run(Command::script(script).live(chunks)).await })
    };
    assert!(
        output.recv().await.is_some(),
        "the command ended: {:?}",
        running.await
    );
    println!("\n{READY}{}", sandbox.id());
    std::future::pending().await
}

pub(super) async fn case_26_a_killed_owner_leaves_nothing_after_a_sweep(suite: &Suite) {
    let owner = suite
        .owner
        .clone()
        .expect("Suite::owner says how to start an owner; set it in this runner");
    let mut child = (owner.0)()
        .stdout(Stdio::piped())
        .spawn()
        .expect("starting an owner");
    let stdout = child.stdout.take().expect("piped");
    let pid = child.id();
    let (ready, line) = oneshot::channel();
    let reading = spawn_blocking(move || {
        let mut lines =
            std::io::BufRead::lines(std::io::BufReader::new(stdout)).map_while(Result::ok);
        if let Some(id) = lines.find_map(|line| line.strip_prefix(READY).map(str::to_owned)) {
            let _ = ready.send(id);
        }
    });
    let id = within(suite.scale.seconds(30.0), "the owner's sandbox is up", line).await;
    let id = id.unwrap_or_else(|_| {
        let _ = child.kill();
        panic!("the owner printed no line that begins with {READY:?}: see its standard error")
    });

    let record =
        |records: Vec<crate::SandboxRecord>| records.into_iter().find(|record| record.id == id);
    let alive = record(suite.factory.list().await.expect("list"))
        .unwrap_or_else(|| panic!("{id} is listed while its owner lives"));
    assert!(
        alive.owner_alive && alive.running && alive.owner_pid == pid,
        "of process {pid}: {alive:?}"
    );
    let swept = suite.factory.sweep().await.expect("sweep");
    assert_eq!(
        swept,
        Vec::<String>::new(),
        "a sweep must not touch a sandbox whose owner lives"
    );

    child.kill().expect("SIGKILL");
    spawn_blocking(move || child.wait())
        .await
        .expect("join")
        .expect("wait");
    let _ = reading.await;
    if let Some(dead) = record(suite.factory.list().await.expect("list")) {
        assert!(!dead.owner_alive, "the owner was killed: {dead:?}");
    }
    suite.factory.sweep().await.expect("sweep");
    becomes(
        suite.scale.seconds(10.0),
        "the sandbox is not listed after the sweep",
        || async { record(suite.factory.list().await.expect("list")).is_none() },
    )
    .await;
    becomes(
        suite.scale.seconds(10.0),
        "no process of it runs on this host",
        || async { !host::runs(&mark(pid)) },
    )
    .await;
    assert_eq!(
        suite.factory.sweep().await.expect("sweep"),
        Vec::<String>::new(),
        "a second sweep finds nothing"
    );
}
