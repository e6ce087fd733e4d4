//! Making and ending sandboxes.

use std::collections::BTreeSet;

use tokio::time::{sleep, timeout};

use super::{
    Suite, differences,
    guest::{becomes, describe, fails_with, file, path, within},
};
use crate::{
    BackgroundId, ByteRange, CancellationToken, Command, CreateOptions, FileWrite, LazySandbox,
    ListOptions, OutputId, Sandbox, SandboxError, SandboxRecord, SandboxStatus, SeekLine,
    SnapshotOptions,
};

async fn records(suite: &Suite) -> Vec<SandboxRecord> {
    suite.factory.list().await.expect("list")
}

/// Waits until no sandbox is listed but those of `before`.
async fn nothing_is_left(suite: &Suite, before: &BTreeSet<String>, why: &str) {
    becomes(
        suite.scale.seconds(20.0),
        &format!("{why}: no sandbox is left in the list"),
        || async { ids(suite).await.is_subset(before) },
    )
    .await;
}

async fn ids(suite: &Suite) -> BTreeSet<String> {
    records(suite)
        .await
        .into_iter()
        .map(|record| record.id)
        .collect()
}

pub(super) async fn a_new_sandbox_describes_itself(suite: &Suite) {
    let guest = suite.guest().await;
    assert_eq!(guest.status(), SandboxStatus::Running);
    assert_eq!(guest.provider(), suite.factory.provider());
    assert!(!guest.id().is_empty() && !guest.to_string().is_empty());
    assert!(
        guest.working_directory().starts_with('/'),
        "absolute: {:?}",
        guest.working_directory()
    );
    assert_eq!(
        guest.out("pwd -P").await.trim_end(),
        guest.working_directory()
    );
    let listed = records(suite)
        .await
        .into_iter()
        .find(|record| record.id == guest.id());
    let record = listed.unwrap_or_else(|| panic!("{} is not listed", guest.id()));
    assert!(
        record.running && record.owner_alive && record.owner_pid == std::process::id(),
        "{record:?}"
    );
    assert_eq!(record.provider, suite.factory.provider());
    guest.done().await;
}

pub(super) async fn capabilities_are_as_expected(suite: &Suite) {
    let guest = suite.guest().await;
    let probed = suite.factory.probe().await.expect("probe");
    for (who, claimed) in [
        ("the sandbox", guest.capabilities()),
        ("the probe", &probed),
    ] {
        let differences = differences(&suite.expect, claimed);
        assert!(
            differences.is_empty(),
            "{who} claims other capabilities than expected: {}",
            differences.join("; ")
        );
        assert!(
            !claimed.level.is_empty(),
            "{who} says what the isolation is made of"
        );
    }
    guest.done().await;
}

pub(super) async fn ids_are_unique(suite: &Suite) {
    let new = || suite.guest_with(CreateOptions::default());
    let guests: [_; 3] = tokio::join!(suite.guest(), new(), new()).into();
    let unique: BTreeSet<_> = guests.iter().map(|guest| guest.id().to_owned()).collect();
    assert_eq!(unique.len(), 3, "{unique:?}");
    assert!(
        unique.is_subset(&ids(suite).await),
        "all are listed: {unique:?}"
    );
    for guest in guests {
        guest.done().await;
    }
}

pub(super) async fn destroy_twice(suite: &Suite) {
    let before = ids(suite).await;
    let guest = suite.guest_with(CreateOptions::default()).await;
    for call in ["first", "second", "third"] {
        guest
            .destroy()
            .await
            .unwrap_or_else(|error| panic!("{call} destroy: {error}"));
        assert!(
            !ids(suite).await.contains(guest.id()),
            "gone when {call} destroy returns"
        );
    }
    guest.stop().await.expect("stop after destroy");
    nothing_is_left(suite, &before, "destroy").await;
}

/// Calls everything on a sandbox that has ended.
async fn every_call_fails(sandbox: &dyn Sandbox) {
    assert_eq!(sandbox.status(), SandboxStatus::Stopped);
    let kinds = &["NotRunning"];
    fails_with("run", sandbox.run(Command::argv(["true"])).await, kinds);
    fails_with("start", sandbox.start(Command::argv(["true"])).await, kinds);
    fails_with(
        "write_files",
        sandbox
            .write_files(vec![FileWrite::new(path("a"), "a")])
            .await,
        kinds,
    );
    fails_with(
        "read_range",
        sandbox.read_range(&file("a"), ByteRange::new(0, 1)).await,
        kinds,
    );
    fails_with("stat", sandbox.stat(&file("a")).await, kinds);
    fails_with(
        "list",
        sandbox.list(&path("."), ListOptions::default()).await,
        kinds,
    );
    fails_with("remove", sandbox.remove(&path("a")).await, kinds);
    fails_with(
        "seek_line",
        sandbox.seek_line(&file("a"), SeekLine::new(1)).await,
        kinds,
    );
    fails_with(
        "snapshot",
        sandbox.snapshot(SnapshotOptions::default()).await,
        kinds,
    );
    // A process may have ended before its sandbox did, but this one never was.
    let id = BackgroundId(OutputId::for_call("never"));
    fails_with(
        "wait",
        sandbox.wait(&id, &CancellationToken::new()).await,
        &["Lost", "NotRunning"],
    );
    match sandbox.kill(&id).await {
        Ok(()) | Err(SandboxError::Lost { .. } | SandboxError::NotRunning { .. }) => {}
        Err(other) => panic!("kill after the end is Ok, Lost or NotRunning, not: {other}"),
    }
}

/// Ends the sandbox under a command that runs, and calls what cannot be called any more.
async fn ends_everything(suite: &Suite, destroy: bool) {
    let guest = suite.guest_with(CreateOptions::default()).await;
    guest.write("a", "a").await;
    let sandbox = guest.clone();
    let running = tokio::spawn(async move {
        sandbox
            .run(Command::script("echo begun | tee mark; sleep 1000"))
            .await
    });
    guest.appears("mark").await;
    let end = async {
        match destroy {
            true => guest.destroy().await,
            false => guest.stop().await,
        }
    };
    within(suite.scale.seconds(10.0), "ending the sandbox", end)
        .await
        .expect("ending the sandbox");
    let output = within(
        suite.scale.seconds(2.0),
        "the command resolves when its sandbox ends",
        running,
    )
    .await;
    let output = output
        .expect("join")
        .unwrap_or_else(|error| panic!("it must resolve as cancelled, not fail: {error}"));
    assert!(
        output.cancelled && !output.timed_out && output.exit_code.is_none(),
        "{}",
        describe(&output)
    );
    assert_eq!(output.stdout.text(), "begun\n", "what it wrote is kept");
    guest.stop().await.expect("stop again");
    every_call_fails(&**guest).await;
    guest.done().await;
}

pub(super) async fn stop_ends_the_command_and_later_calls_fail(suite: &Suite) {
    ends_everything(suite, false).await;
}

pub(super) async fn destroy_ends_the_command_and_later_calls_fail(suite: &Suite) {
    ends_everything(suite, true).await;
}

/// Moments of a boot, in ms: at once, and early enough that some hit it.
const MOMENTS: [u64; 6] = [0, 1, 3, 8, 20, 60];

pub(super) async fn destroy_during_boot_leaves_nothing(suite: &Suite) {
    let before = ids(suite).await;
    for millis in MOMENTS {
        let lazy = LazySandbox::boot(suite.factory.clone(), CreateOptions::default());
        sleep(suite.scale.passing(millis as f64 / 1000.0)).await;
        within(
            suite.scale.seconds(20.0),
            "destroy during boot",
            lazy.destroy(),
        )
        .await
        .expect("destroy");
        assert!(
            ids(suite).await.is_subset(&before),
            "destroyed {millis} ms after its boot began, yet listed"
        );
        fails_with("get after destroy", lazy.get().await, &["NotRunning"]);
    }
}

pub(super) async fn a_cancelled_create_leaves_nothing(suite: &Suite) {
    let before = ids(suite).await;
    let token = CancellationToken::new();
    token.cancel();
    let result = suite
        .factory
        .create(CreateOptions::default().cancel(token))
        .await;
    fails_with(
        "create with a token that fired before",
        result,
        &["Cancelled"],
    );
    for millis in MOMENTS {
        let token = CancellationToken::new();
        let create = suite
            .factory
            .create(CreateOptions::default().cancel(token.clone()));
        let fire = async {
            sleep(suite.scale.passing(millis as f64 / 1000.0)).await;
            token.cancel();
        };
        match tokio::join!(create, fire).0 {
            Ok(sandbox) => {
                // It was up before; the token does not end it.
                assert_eq!(sandbox.status(), SandboxStatus::Running);
                sandbox.destroy().await.expect("destroy");
            }
            Err(error) => fails_with::<()>("a cancelled create", Err(error), &["Cancelled"]),
        }
    }
    nothing_is_left(suite, &before, "create was cancelled").await;
}

pub(super) async fn a_dropped_create_leaves_nothing(suite: &Suite) {
    let before = ids(suite).await;
    for millis in MOMENTS {
        let moment = suite.scale.passing(millis as f64 / 1000.0);
        if let Ok(created) = timeout(moment, suite.factory.create(CreateOptions::default())).await {
            created.expect("create").destroy().await.expect("destroy");
        }
    }
    nothing_is_left(suite, &before, "the future of create was dropped").await;
}

pub(super) async fn dropping_the_sandbox_ends_it(suite: &Suite) {
    let before = ids(suite).await;
    let guest = suite.guest_with(CreateOptions::default()).await;
    guest.sh("sleep 1000 >/dev/null 2>&1 &").await;
    drop(guest);
    nothing_is_left(suite, &before, "the last reference was dropped").await;
}
