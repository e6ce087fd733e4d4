//! Many sandboxes at once, and what each costs the host.

use std::sync::Arc;

use futures::future::join_all;
use sixb_sandbox::{CreateOptions, Sandbox, SandboxExt, SandboxFactory};
use sixb_sandbox_local::LocalSandboxFactory;

use crate::figure::Report;

const CROWD: usize = 100;

pub(crate) async fn run(report: &mut Report) {
    if !report.wants("crowd") {
        return;
    }
    let state = tempfile::tempdir().expect("folder");
    let factory = LocalSandboxFactory::default().state_dir(state.path());
    // The sealed copy of the program is shared by all: made before the count begins.
    let first = factory
        .create(CreateOptions::default())
        .await
        .expect("sandbox");
    let before = used_kib();
    let begin = std::time::Instant::now();
    let sandboxes: Vec<Arc<dyn Sandbox>> =
        join_all((0..CROWD).map(|_| factory.create(CreateOptions::default())))
            .await
            .into_iter()
            .map(|made| made.expect("sandbox"))
            .collect();
    let answers = join_all(sandboxes.iter().map(|sandbox| sandbox.sh("echo up"))).await;
    assert!(answers.iter().all(|answer| {
        answer
            .as_ref()
            .is_ok_and(|output| output.stdout.head == "up\n")
    }));
    let elapsed = begin.elapsed().as_secs_f64();
    let each = (used_kib() - before) / 1024.0 / CROWD as f64;
    report.value(
        "crowd: host memory for each of 100 sandboxes",
        "MiB",
        each,
        6.0,
    );
    report.value(
        "crowd: 100 sandboxes up and one command in each",
        "s",
        elapsed,
        30.0,
    );
    for sandbox in sandboxes.iter().chain([&first]) {
        sandbox.destroy().await.expect("destroyed");
    }
}

/// Memory of the machine that is not available, in KiB: page tables, kernel objects and all.
fn used_kib() -> f64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("meminfo");
    let value = |name: &str| -> f64 {
        let line = meminfo
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("a line");
        line.split_ascii_whitespace()
            .next()
            .and_then(|kib| kib.parse().ok())
            .expect("a number")
    };
    value("MemTotal:") - value("MemAvailable:")
}
