//! What the suite cannot ask of every backend: machines and owners that die, full disks, and figures against the bare
//! `smolvm` program.

use std::{
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::FutureExt;
use sixb_sandbox::{
    AllowedOrigin, ByteRange, Command, CreateOptions, FileSource, FileWrite, NetworkPolicy,
    ResourceLimits, SandboxError, SandboxExt, SandboxFactory, SandboxPath, SandboxStatus,
};

use crate::{emulated, factory, setting, state};

type Check = (
    &'static str,
    fn() -> futures::future::BoxFuture<'static, ()>,
);

const CHECKS: &[Check] = &[
    ("lab::a_killed_machine_is_seen_and_leaves_nothing", || {
        killed_machine().boxed()
    }),
    ("lab::a_full_disk_leaves_the_sandbox_usable", || {
        full_disk().boxed()
    }),
    (
        "lab::a_memory_eater_is_ended_and_the_sandbox_answers",
        || memory_eater().boxed(),
    ),
    ("lab::a_start_that_fails_half_way_is_undone", || {
        half_failed().boxed()
    }),
    ("lab::a_start_that_is_killed_half_way_is_undone", || {
        killed_start().boxed()
    }),
    ("lab::the_gateway_is_reached_by_its_name", || {
        gateway().boxed()
    }),
    ("lab::a_scripted_run_of_the_command_line", || {
        scripted_run().boxed()
    }),
    ("lab::figures", || figures().boxed()),
];

/// Runs the checks whose names are `chosen`; gives how many held and how many did not.
pub(crate) async fn run(chosen: impl Fn(&str) -> bool) -> (usize, usize) {
    let (mut passed, mut failed) = (0, 0);
    for (name, check) in CHECKS.iter().filter(|(name, _)| chosen(name)) {
        let begun = Instant::now();
        let held = AssertUnwindSafe(check()).catch_unwind().await;
        let took = begun.elapsed().as_secs_f64();
        match held {
            Ok(()) => {
                passed += 1;
                eprintln!("ok   {took:7.2} s  {name}");
            }
            Err(panic) => {
                failed += 1;
                let text = panic.downcast_ref::<String>().cloned();
                let text = text
                    .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                    .unwrap_or_default();
                eprintln!("FAIL {took:7.2} s  {name}: {text}");
            }
        }
    }
    (passed, failed)
}

fn path(name: &str) -> SandboxPath {
    SandboxPath::parse(name).expect("path")
}

/// Process ids of all machines below our state folder.
fn machines() -> Vec<String> {
    processes(&format!("_boot-vm {}", state().display()))
}

fn kill(pid: &str) {
    let killed = std::process::Command::new("kill")
        .args(["-9", pid])
        .status();
    assert!(killed.expect("kill").success());
}

/// Process ids of all whose command line holds `words`.
fn processes(words: &str) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(words) {
            all.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    all
}

/// Nothing of ours is left, and the next run works.
async fn nothing_is_left() {
    let begun = Instant::now();
    loop {
        let left = (machines(), factory().list().await.expect("list"));
        if left.0.is_empty() && left.1.is_empty() {
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "left behind: {left:?}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let sandbox = factory()
        .create(CreateOptions::default())
        .await
        .expect("the next sandbox");
    assert_eq!(
        sandbox.sh("echo works").await.expect("run").stdout.text(),
        "works\n"
    );
    sandbox.destroy().await.expect("destroy");
}

async fn killed_machine() {
    let sandbox = factory()
        .create(CreateOptions::default())
        .await
        .expect("create");
    let running = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.sh("echo begun; sleep 600").await }
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    let pids = machines();
    assert_eq!(pids.len(), 1, "one machine runs: {pids:?}");
    kill(&pids[0]);
    let output = tokio::time::timeout(Duration::from_secs(60), running)
        .await
        .expect("in time")
        .expect("join")
        .expect("a result");
    assert_eq!(output.exit_code, None, "never made up");
    assert!(output.reason.is_some() && !output.cancelled, "{output:?}");
    assert_eq!(sandbox.status(), SandboxStatus::Failed);
    assert!(matches!(
        sandbox.sh("true").await,
        Err(SandboxError::NotRunning { .. })
    ));
    sandbox.destroy().await.expect("destroy");
    nothing_is_left().await;
}

async fn full_disk() {
    let sandbox = factory()
        .storage_gib(1)
        .create(CreateOptions::default())
        .await
        .expect("create");
    // Asked for, not written: blocks that are promised are as gone as blocks that hold bytes.
    let script = "fallocate -l 900M a; for n in b c d e f; do fallocate -l 64M $n || break; done; head -c 200000000 /dev/zero > g";
    let output = sandbox
        .run(Command::script(script).timeout(Duration::from_secs(200)))
        .await
        .expect("run");
    assert!(
        !output.success() && output.stderr.text().contains("No space left"),
        "{}",
        output.stderr.text()
    );
    let refused = sandbox
        .write_files(vec![FileWrite::new(path("more"), vec![1; 8 << 20])])
        .await;
    assert!(refused.is_err(), "a file that does not fit is refused");
    assert_eq!(
        sandbox.sh("echo alive").await.expect("run").stdout.text(),
        "alive\n"
    );
    sandbox.sh("rm -f a b c d e f g").await.expect("run");
    sandbox
        .write_files(vec![FileWrite::new(path("more"), "fits")])
        .await
        .expect("room again");
    sandbox.destroy().await.expect("destroy");
    nothing_is_left().await;
}

async fn memory_eater() {
    let limits = ResourceLimits::default().memory_bytes(192 << 20);
    let sandbox = factory()
        .create(CreateOptions::default().limits(limits))
        .await
        .expect("create");
    // In steps: one large request is refused by the kernel before a byte of it is touched.
    let eater = Command::argv([
        "python3",
        "-c",
        "x = []\nfor _ in range(600): x.append(b'x' * (1 << 20))",
    ]);
    let output = sandbox
        .run(eater.timeout(Duration::from_secs(200)))
        .await
        .expect("run");
    assert!(
        !output.success() && output.oom_killed == Some(true),
        "{output:?}"
    );
    assert_eq!(
        sandbox.sh("echo alive").await.expect("run").stdout.text(),
        "alive\n"
    );
    sandbox.destroy().await.expect("destroy");
}

/// A smolvm whose `start` fails after it started something.
async fn half_failed() {
    let folder = state().join("half-failed");
    std::fs::create_dir_all(&folder).expect("folder");
    let real = setting("SIXB_LAB_BIN", "smolvm");
    let wrapper = folder.join("smolvm");
    let script = format!(
        "#!/bin/sh\nexport SMOLVM_LIB_DIR=${{SMOLVM_LIB_DIR:-{lib}}} SMOLVM_AGENT_ROOTFS=${{SMOLVM_AGENT_ROOTFS:-{lib}/agent-rootfs}}\n\
         '{real}' \"$@\" || exit 1\ncase \"$*\" in *' start '*) exit 1;; esac\n",
        lib = std::path::Path::new(&real)
            .parent()
            .expect("folder")
            .display(),
    );
    std::fs::write(&wrapper, script).expect("wrapper");
    std::fs::set_permissions(
        &wrapper,
        <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755),
    )
    .expect("mode");
    // The trial boot was cached by now, so the failure is that of the sandbox itself.
    let failing = factory().bin(&wrapper);
    let error = failing
        .create(CreateOptions::default())
        .await
        .expect_err("its start fails");
    eprintln!("     as expected: {error}");
    nothing_is_left().await;
    std::fs::remove_dir_all(folder).expect("removed");
}

/// The smolvm program is killed while it starts a machine.
async fn killed_start() {
    let create = tokio::spawn(async { factory().create(CreateOptions::default()).await });
    let begun = Instant::now();
    let start = loop {
        let words = format!("machine start --state-dir {}", state().display());
        if let Some(pid) = processes(&words).pop() {
            break pid;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no start is seen"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    // It has begun the machine by then, and waits for it.
    while machines().is_empty() && begun.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    kill(&start);
    let error = create
        .await
        .expect("join")
        .expect_err("its start was killed");
    eprintln!("     as expected: {error}");
    nothing_is_left().await;
}

async fn gateway() {
    let server = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port of the host");
    let address = server.local_addr().expect("address");
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        while let Ok((mut peer, _)) = server.accept().await {
            let mut bytes = [0; 4096];
            let _ = peer.read(&mut bytes).await;
            let _ = peer
                .write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\nconnection: close\r\n\r\ngateway\n",
                )
                .await;
        }
    });
    let policy = NetworkPolicy::Restricted(Vec::<AllowedOrigin>::new());
    let sandbox = factory()
        .gateway(address)
        .create(CreateOptions::default().network(policy))
        .await
        .expect("create");
    let curl = |url: &str| {
        Command::argv([
            "curl",
            "-sS",
            "-m",
            "60",
            "-o",
            "-",
            "-w",
            "%{http_code}",
            url,
        ])
    };
    let output = sandbox
        .run(curl("http://gateway.sixb.internal/v1/x"))
        .await
        .expect("run");
    assert_eq!(
        output.stdout.text(),
        "gateway\n200",
        "{}",
        output.stderr.text()
    );
    let other = Command::argv([
        "curl",
        "-sS",
        "-m",
        "60",
        "-H",
        "Host: other.test",
        "-D",
        "-",
        "http://gateway.sixb.internal/",
    ]);
    let output = sandbox.run(other).await.expect("run");
    assert!(
        output.stdout.text().contains("x-sixb-denied: authority"),
        "{}",
        output.stdout.text()
    );
    for url in [
        "http://gateway.sixb.internal:8080/",
        &format!("http://127.0.0.1:{}/", address.port()),
    ] {
        assert!(
            !sandbox.run(curl(url)).await.expect("run").success(),
            "{url} is another port"
        );
    }
    sandbox.destroy().await.expect("destroy");
}

/// `sixb run`, as a user calls it, with a script in the place of a model.
async fn scripted_run() {
    let folder = state().join("scripted-run");
    std::fs::create_dir_all(&folder).expect("folder");
    let script = r#"{"steps": [
        {"toolCalls": [{"id": "kernel", "name": "bash", "arguments": {"command": "uname -r; id -u; uname -r > $SIXB_OUTPUT_DIR/kernel.txt"}}]},
        {"text": "The kernel is written down."}
    ]}"#;
    std::fs::write(folder.join("script.json"), script).expect("script");
    let output = std::process::Command::new(setting("SIXB_LAB_SIXB", "sixb"))
        .args([
            "run",
            "--sandbox",
            "smolvm",
            "--timeout",
            "10m",
            "--script",
            "script.json",
            "--out",
            "out",
        ])
        .arg("Write down the kernel's version")
        .current_dir(&folder)
        .env("XDG_STATE_HOME", state().parent().expect("a folder"))
        .stdin(std::process::Stdio::null())
        .output()
        .expect("sixb");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let runs = std::fs::read_dir(folder.join("out"))
        .expect("out")
        .flatten();
    let kernels: Vec<String> = runs
        .filter_map(|run| std::fs::read_to_string(run.path().join("kernel.txt")).ok())
        .collect();
    let host = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("osrelease");
    assert!(
        kernels.len() == 1 && !kernels[0].is_empty() && kernels[0] != host,
        "a kernel of its own: {kernels:?}, the host's is {host}{told}"
    );
    std::fs::remove_dir_all(folder).expect("removed");
}

fn seconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64()
}

/// Against the smolvm program itself, in the same run.
async fn figures() {
    const BYTES: usize = 10_000_000;
    let begun = Instant::now();
    let sandbox = factory()
        .create(CreateOptions::default())
        .await
        .expect("create");
    let boot = seconds(begun);
    let begun = Instant::now();
    sandbox.run(Command::argv(["true"])).await.expect("run");
    let first = seconds(begun);
    let mut warm = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        sandbox.run(Command::argv(["true"])).await.expect("run");
        warm.push(seconds(begun));
    }
    let contents = Bytes::from(
        (0..BYTES)
            .map(|at| (at * 31 % 251) as u8)
            .collect::<Vec<_>>(),
    );
    let begun = Instant::now();
    sandbox
        .write_files(vec![FileWrite::new(path("big"), contents.clone())])
        .await
        .expect("write");
    let up = seconds(begun);
    let begun = Instant::now();
    let back = sandbox
        .read_range(&FileSource::Path(path("big")), ByteRange::new(0, BYTES))
        .await
        .expect("read");
    let down = seconds(begun);
    assert!(back == contents, "10 MB come back as they were");
    sandbox.destroy().await.expect("destroy");

    let program = setting("SIXB_LAB_BIN", "smolvm");
    let lib = std::path::Path::new(&program)
        .parent()
        .expect("folder")
        .to_owned();
    let direct_state = state().join("direct");
    let direct = |words: &[&str]| {
        let begun = Instant::now();
        let output = std::process::Command::new(&program)
            .arg("machine")
            .arg(words[0])
            .arg("--state-dir")
            .arg(&direct_state)
            .args(&words[1..])
            .env("SMOLVM_LIB_DIR", &lib)
            .env("SMOLVM_AGENT_ROOTFS", lib.join("agent-rootfs"))
            .stdin(std::process::Stdio::null())
            .output()
            .expect("smolvm");
        (seconds(begun), output)
    };
    let image = setting("SIXB_LAB_IMAGE", "agent");
    let (cpus, memory) = if emulated() {
        ("1", "512")
    } else {
        ("2", "1024")
    };
    let mut create = vec![
        "create", "--name", "direct", "--cpus", cpus, "--mem", memory,
    ];
    if image != "bare" {
        create.extend(["--image", &image]);
    }
    let (made, output) = direct(&create);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (started, output) = direct(&["start", "--name", "direct"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let exec = ["exec", "--name", "direct", "--", "true"];
    let (direct_first, _) = direct(&exec);
    let mut direct_warm: Vec<f64> = (0..3).map(|_| direct(&exec).0).collect();
    let file = state().join("ten-megabytes");
    std::fs::write(&file, &contents).expect("file");
    let (direct_up, _) = direct(&["cp", &file.display().to_string(), "direct:/workspace/big"]);
    let (direct_down, _) = direct(&[
        "cp",
        "direct:/workspace/big",
        &format!("{}.back", file.display()),
    ]);
    direct(&["delete", "--name", "direct", "--force"]);
    let _ = std::fs::remove_dir_all(&direct_state);

    let median = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    eprintln!("     seconds             here   smolvm itself");
    for (what, ours, theirs) in [
        ("boot", boot, made + started),
        ("first command", first, direct_first),
        ("warm command", median(&mut warm), median(&mut direct_warm)),
        ("10 MB up", up, direct_up),
        ("10 MB down", down, direct_down),
    ] {
        eprintln!("     {what:<16} {ours:7.3}   {theirs:7.3}");
    }
}
