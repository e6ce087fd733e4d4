//! Faults of smolvm and of the guest, played by fakes. What works is proven on real machines: `cargo xtask smolvm-lab`.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use sixb_sandbox::{
    CancellationToken, Command, CreateOptions, NetworkPolicy, ResourceLimits, Result, Sandbox,
    SandboxError, SandboxExt, SandboxFactory, SandboxStatus, Workspace,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{UnixListener, UnixStream},
};

use crate::{
    Image, SmolvmSandboxFactory,
    engine::{Smolvm, Spec},
    make, wire,
};

/// What the fake machine does with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The connection ends after some output and before the exit frame.
    NoExit,
    /// A frame that is longer than any may be.
    Flood,
    /// The guest never answers.
    Silence,
    /// The whole machine dies.
    MachineDies,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Works,
    Fails,
    Hangs,
}

/// A smolvm without machines: its guest is a task of this process.
#[derive(Debug)]
struct Fake {
    fault: Fault,
    start: Mutex<Start>,
    machines: Mutex<Vec<Spec>>,
    end: CancellationToken,
}

impl Fake {
    fn new(fault: Fault, start: Start) -> Arc<Self> {
        Arc::new(Self {
            fault,
            start: Mutex::new(start),
            machines: Mutex::default(),
            end: CancellationToken::new(),
        })
    }

    fn names(&self) -> Vec<String> {
        self.machines
            .lock()
            .expect("lock")
            .iter()
            .map(|spec| spec.name.clone())
            .collect()
    }
}

#[async_trait]
impl Smolvm for Fake {
    async fn create(&self, spec: &Spec) -> Result<()> {
        self.machines.lock().expect("lock").push(spec.clone());
        Ok(())
    }

    async fn start(&self, name: &str) -> Result<()> {
        let start = *self.start.lock().expect("lock");
        match start {
            Start::Works => {}
            Start::Fails => {
                return Err(SandboxError::provider(
                    "start the machine",
                    "smolvm says SMOLVM_ERROR: no",
                    None,
                ));
            }
            Start::Hangs => std::future::pending().await,
        }
        let spec = self
            .machines
            .lock()
            .expect("lock")
            .iter()
            .find(|spec| spec.name == name)
            .cloned()
            .expect("created");
        let socket = PathBuf::from(spec.socket.split_once(':').expect("a host path").1);
        let listener = UnixListener::bind(socket).expect("bind");
        let (fault, end) = (self.fault, self.end.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(guest(stream, fault, end.clone()));
            }
        });
        Ok(())
    }

    async fn place(&self, _: &str, _: &std::path::Path, _: &str) -> Result<()> {
        Ok(())
    }

    async fn launch(&self, _: &str, _: &[String]) -> Result<()> {
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.machines
            .lock()
            .expect("lock")
            .retain(|spec| spec.name != name);
        Ok(())
    }

    async fn machines(&self) -> Result<Vec<(String, bool)>> {
        Ok(self.names().into_iter().map(|name| (name, true)).collect())
    }
}

async fn guest(mut stream: UnixStream, fault: Fault, end: CancellationToken) {
    let mut first = [0; 5];
    stream.read_exact(&mut first).await.expect("a request");
    let (kind, length) = wire::header(first).expect("header");
    stream
        .read_exact(&mut vec![0; length])
        .await
        .expect("payload");
    match kind {
        wire::HELLO => {
            let _ = stream
                .write_all(&wire::frame(wire::OK, &wire::pack(&[wire::VERSION])))
                .await;
        }
        wire::WATCH => end.cancelled().await,
        wire::RUN => {
            let _ = stream.write_all(&wire::frame(wire::STARTED, &[])).await;
            let _ = stream
                .write_all(&wire::frame(wire::STDOUT, b"so far\n"))
                .await;
            match fault {
                Fault::NoExit => {}
                Fault::Flood => {
                    let _ = stream
                        .write_all(&[wire::STDOUT, 0xff, 0xff, 0xff, 0xff])
                        .await;
                }
                Fault::Silence => std::future::pending().await,
                Fault::MachineDies => {
                    end.cancel();
                    std::future::pending().await
                }
            }
        }
        _ => {}
    }
}

fn factory(fake: &Arc<Fake>, state: &tempfile::TempDir) -> SmolvmSandboxFactory {
    let factory = SmolvmSandboxFactory::default()
        .state_dir(state.path())
        .image(Image::Bare)
        .boot_deadline(Duration::from_secs(5));
    factory.with_engine(fake.clone())
}

async fn sandbox(fake: &Arc<Fake>, state: &tempfile::TempDir) -> Arc<dyn Sandbox> {
    factory(fake, state)
        .create(CreateOptions::default())
        .await
        .expect("create")
}

#[tokio::test]
async fn case_16_an_exit_that_never_comes_is_no_exit_code() {
    for fault in [Fault::NoExit, Fault::Flood, Fault::MachineDies] {
        let (fake, state) = (
            Fake::new(fault, Start::Works),
            tempfile::tempdir().expect("folder"),
        );
        let sandbox = sandbox(&fake, &state).await;
        let output = sandbox
            .run(Command::argv(["x"]))
            .await
            .expect("data, not an error");
        assert_eq!(
            (output.exit_code, output.signal, output.cancelled),
            (None, None, false),
            "{fault:?}"
        );
        assert!(
            output
                .reason
                .as_deref()
                .is_some_and(|reason| reason.contains("lost")),
            "{fault:?}: {:?}",
            output.reason
        );
        assert_eq!(output.stdout.text(), "so far\n", "what came is kept");
        let expect = if fault == Fault::MachineDies {
            SandboxStatus::Failed
        } else {
            SandboxStatus::Running
        };
        assert_eq!(sandbox.status(), expect, "{fault:?}");
        sandbox.destroy().await.expect("destroy");
        assert_eq!(fake.names(), [""; 0], "{fault:?}");
    }
}

#[tokio::test]
async fn a_guest_that_never_answers_is_stopped_with_its_sandbox() {
    let (fake, state) = (
        Fake::new(Fault::Silence, Start::Works),
        tempfile::tempdir().expect("folder"),
    );
    let sandbox = sandbox(&fake, &state).await;
    let running = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.sh("x").await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    sandbox.destroy().await.expect("destroy");
    let output = running.await.expect("join").expect("data");
    assert!(output.cancelled && output.exit_code.is_none(), "{output:?}");
}

#[tokio::test]
async fn case_25_a_failed_start_is_undone_and_the_next_one_works() {
    let (fake, state) = (
        Fake::new(Fault::NoExit, Start::Fails),
        tempfile::tempdir().expect("folder"),
    );
    let factory = factory(&fake, &state);
    let error = factory
        .create(CreateOptions::default())
        .await
        .expect_err("fails")
        .to_string();
    assert!(error.contains("start the machine"), "{error}");
    assert_eq!(fake.names(), [""; 0], "the machine is removed");
    assert!(
        factory.list().await.expect("list").is_empty(),
        "and its folder"
    );
    *fake.start.lock().expect("lock") = Start::Works;
    factory
        .create(CreateOptions::default())
        .await
        .expect("works")
        .destroy()
        .await
        .expect("destroy");
}

#[tokio::test]
async fn a_start_that_hangs_can_be_cancelled_and_leaves_nothing() {
    let (fake, state) = (
        Fake::new(Fault::NoExit, Start::Hangs),
        tempfile::tempdir().expect("folder"),
    );
    let cancel = CancellationToken::new();
    let factory = factory(&fake, &state);
    let creating = tokio::spawn({
        let (factory, options) = (
            factory.clone(),
            CreateOptions::default().cancel(cancel.clone()),
        );
        async move { factory.create(options).await }
    });
    while fake.names().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cancel.cancel();
    let error = creating.await.expect("join").expect_err("cancelled");
    assert!(matches!(error, SandboxError::Cancelled { .. }), "{error}");
    assert_eq!(fake.names(), [""; 0]);
    assert!(factory.list().await.expect("list").is_empty());
}

#[test]
fn a_plan_says_what_the_machine_gets() {
    let factory = SmolvmSandboxFactory::default().image(Image::Bare);
    let limits = ResourceLimits::default()
        .memory_bytes(300 << 20)
        .pids(64)
        .cpus(1.5);
    let plan = make::plan(&factory, &CreateOptions::default().limits(limits), "m").expect("plan");
    assert_eq!(
        (plan.spec.memory_mib, plan.spec.cpus, plan.spec.open_network),
        (428, 2, false)
    );
    assert_eq!(
        plan.serve[3..],
        ["/workspace", "rw", "314572800", "64", "1500"]
    );
    let allowed = sixb_sandbox::AllowedOrigin::new("a", "https://a.test".parse().expect("origin"));
    let restricted = CreateOptions::default().network(NetworkPolicy::Restricted(vec![allowed]));
    let plan = make::plan(&factory, &restricted, "m").expect("plan");
    assert!(
        !plan.spec.open_network && plan.spec.pull_hosts.is_empty(),
        "a listed origin needs no network card"
    );
    assert_eq!(
        plan.serve[8..],
        ["127.71.0.1:443", "--", "127.71.0.1 a.test"]
    );
}

#[test]
fn what_cannot_be_had_is_refused_with_the_value_and_a_remedy() {
    let bare = || SmolvmSandboxFactory::default().image(Image::Bare);
    let options = CreateOptions::default;
    let folder = Workspace::HostFolder {
        path: "/data/a:b".into(),
        read_only: false,
    };
    for (factory, options, value, remedy) in [
        (
            bare(),
            options().working_directory("work"),
            "work",
            "absolute",
        ),
        (
            bare(),
            options().working_directory("/etc/x"),
            "/etc/x",
            "/workspace",
        ),
        (bare(), options().workspace(folder), "/data/a:b", "colon"),
        (
            bare(),
            options().limits(ResourceLimits::default().disk_bytes(5_000_000)),
            "5000000",
            "storage_gib",
        ),
        (
            bare(),
            options().limits(ResourceLimits::default().cpus(0.0)),
            "0",
            "above 0",
        ),
        (
            bare().image(Image::Registry("debian:12".into())),
            options(),
            "debian:12",
            "docker save",
        ),
        (
            bare().image(Image::Path("/nowhere.tar".into())),
            options(),
            "/nowhere.tar",
            "docker save",
        ),
    ] {
        let error = make::plan(&factory, &options, "m")
            .expect_err(value)
            .to_string();
        assert!(error.contains(value) && error.contains(remedy), "{error}");
    }
}
