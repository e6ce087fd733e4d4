//! Bounds on memory, processes and disk: they hold and the sandbox answers on, or they are refused.

use super::{
    Suite,
    guest::{Guest, describe, within},
};
use crate::{Capabilities, Command, CreateOptions, LimitSupport, OutputLimits, ResourceLimits};

const MIB: u64 = 1 << 20;

/// Makes a sandbox with one limit. `None` where the limit cannot be enforced: then it was refused, and best effort did
/// without it and said so.
async fn limited(
    suite: &Suite,
    what: &str,
    enforced: bool,
    limits: ResourceLimits,
    of: fn(&LimitSupport) -> bool,
) -> Option<Guest> {
    let options = |limits| CreateOptions::default().limits(limits);
    let claims = |capabilities: &Capabilities| of(&capabilities.limits);
    if enforced {
        let guest = suite.guest_with(options(limits)).await;
        assert!(
            claims(guest.capabilities()),
            "the sandbox says who enforces the limit on {what}"
        );
        return Some(guest);
    }
    suite
        .refuses(&format!("a limit on {what}"), options(limits.clone()))
        .await;
    let guest = suite.guest_with(options(limits.best_effort())).await;
    assert!(
        !claims(guest.capabilities()),
        "best effort does not claim a limit on {what} that is not enforced"
    );
    assert_eq!(guest.out("echo up").await, "up\n");
    guest.done().await;
    None
}

/// Asserts that the sandbox answers, by command and by call.
async fn answers(suite: &Suite, guest: &Guest, after: &str) {
    let command = within(
        suite.scale.seconds(10.0),
        &format!("a command after {after}"),
        guest.out("echo alive"),
    )
    .await;
    assert_eq!(command, "alive\n");
    guest.write("alive", "alive").await;
    assert_eq!(&guest.read("alive").await[..], b"alive");
}

pub(super) async fn memory(suite: &Suite) {
    let limit = suite.scale.size(256 * MIB).max(96 * MIB);
    let limits = ResourceLimits::default().memory_bytes(limit);
    let Some(guest) = limited(suite, "memory", suite.expect.memory, limits, |limits| {
        limits.memory.is_some()
    })
    .await
    else {
        return;
    };
    // One line of 1 GiB: `tail` must hold it.
    let greedy =
        Command::script("set -o pipefail; head -c 1073741824 /dev/zero | tail -n 1 | wc -c")
            .limits(OutputLimits::head_tail(1000, 1000))
            .timeout(suite.scale.seconds(50.0));
    let output = guest.command(greedy).await;
    assert!(
        !output.success() && !output.timed_out,
        "1 GiB in {limit} bytes: {}",
        describe(&output)
    );
    assert_ne!(
        output.oom_killed,
        Some(false),
        "a backend that knows says so: {}",
        describe(&output)
    );
    answers(suite, &guest, "a command took all memory").await;
    let modest = guest
        .out("head -c 33554432 /dev/zero | tail -n 1 | wc -c")
        .await;
    assert_eq!(modest.trim(), "33554432", "32 MiB fit");
    guest.done().await;
}

pub(super) async fn case_23_processes(suite: &Suite) {
    let limits = ResourceLimits::default().pids(64);
    let Some(guest) = limited(suite, "processes", suite.expect.pids, limits, |limits| {
        limits.pids.is_some()
    })
    .await
    else {
        return;
    };
    let script = r"
import os, signal, time
children = []
try:
    while len(children) < 200:
        child = os.fork()
        if child == 0:
            time.sleep(60); os._exit(0)
        children.append(child)
except OSError as error:
    print(error.strerror)
open('forked', 'w').write(str(len(children)))
while not os.path.exists('forks-end'):
    time.sleep(0.05)
for child in children:
    os.kill(child, signal.SIGKILL)
";
    let forking = guest.run(Command::argv(["python3", "-c", script]));
    let checking = async {
        guest.appears("forked").await;
        let count: u32 = String::from_utf8_lossy(&guest.read("forked").await)
            .parse()
            .expect("a count");
        assert!(
            (8..64).contains(&count),
            "64 processes allowed, {count} made"
        );
        guest.write("forks-end", "").await;
    };
    let (output, ()) = tokio::join!(forking, checking);
    let output = output.expect("run");
    assert!(
        output.stdout.text().contains("unavailable"),
        "fork failed with EAGAIN: {}",
        describe(&output)
    );
    answers(suite, &guest, "a command took all processes").await;

    let bomb = Command::script(":(){ :|:& };:").timeout(suite.scale.passing(3.0));
    within(
        suite.scale.seconds(20.0),
        "a fork bomb under a limit ends",
        guest.command(bomb),
    )
    .await;
    guest.write("beside-bomb", "x").await;
    assert_eq!(
        &guest.read("beside-bomb").await[..],
        b"x",
        "file calls answer beside a fork bomb"
    );
    within(
        suite.scale.seconds(10.0),
        "destroy beside a fork bomb",
        guest.done(),
    )
    .await;
}

pub(super) async fn disk(suite: &Suite) {
    let limits = ResourceLimits::default().disk_bytes(32 * MIB);
    let Some(guest) = limited(suite, "disk", suite.expect.disk, limits, |limits| {
        limits.disk.is_some()
    })
    .await
    else {
        return;
    };
    let output = guest.sh("head -c 67108864 /dev/zero > big").await;
    assert!(!output.success(), "64 MiB in 32 MiB: {}", describe(&output));
    guest.out("rm big; head -c 4194304 /dev/zero > small").await;
    answers(suite, &guest, "a command filled the disk").await;
    guest.done().await;
}
