//! Making and ending sandboxes.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::{sleep, timeout};

use super::{
    Suite, differences,
    guest::{Guest, becomes, describe, fails_with, file, path, within},
};
use crate::{
    BackgroundId, ByteRange, CancellationToken, Command, CommandOutput, CreateOptions, FileWrite,
    LazySandbox, ListOptions, OutputId, Sandbox, SandboxError, SandboxExt, SandboxRecord,
    SandboxStatus, SeekLine, SnapshotOptions,
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
    // Where a boot is slow, one after the other: an emulated processor loses machines that boot beside each other.
    let guests: [Guest; 3] = match suite.share_sandbox {
        true => [suite.guest().await, new().await, new().await],
        false => tokio::join!(new(), new(), new()).into(),
    };
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

/// Ends the sandbox under a command and background processes, and calls what cannot be called any more.
async fn ends_everything(suite: &Suite, destroy: bool) {
    let before = ids(suite).await;
    let guest = suite.guest_with(CreateOptions::default()).await;
    let command = tokio::spawn({
        let sandbox = guest.clone();
        async move {
            let script = Command::script("echo begun | tee mark; sleep 1000");
            sandbox.run(script).await
        }
    });
    guest.appears("mark").await;
    guest.write("a", "kept until destroy").await;
    let background = match suite.expect.background {
        true => Some(Background::start(&guest).await),
        false => None,
    };
    let end = async {
        match destroy {
            true => guest.destroy().await,
            false => guest.stop().await,
        }
    };
    within(suite.scale.seconds(10.0), "ending the sandbox", end)
        .await
        .expect("ending the sandbox");
    if destroy {
        let left = ids(suite).await.contains(guest.id());
        assert!(!left, "gone when the first destroy returns");
    }
    let output = within(
        suite.scale.seconds(2.0),
        "the command resolves when its sandbox ends",
        command,
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
    if let Some(background) = background {
        background.ended(suite, &guest).await;
    }
    guest.stop().await.expect("stop again");
    every_call_fails(&**guest).await;
    for call in ["one", "another", "a third"] {
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

/// Two background processes: somebody waits for the one, nobody yet for the other.
struct Background {
    waiting: tokio::task::JoinHandle<crate::Result<CommandOutput>>,
    alone: BackgroundId,
}

impl Background {
    async fn start(guest: &Guest) -> Self {
        let waited = guest
            .start(Command::script("echo begun > background; sleep 1000"))
            .await
            .expect("start");
        let alone = guest
            .start(Command::script("sleep 1000"))
            .await
            .expect("start");
        guest.appears("background").await;
        let sandbox = (**guest).clone();
        let waiting = tokio::spawn(async move { sandbox.background(&waited).wait().await });
        tokio::task::yield_now().await;
        Self { waiting, alone }
    }

    /// Case 32. Pids of an ended sandbox cannot be asked inside it, but who waits can.
    async fn ended(self, suite: &Suite, guest: &Guest) {
        let limit = suite.scale.seconds(2.0);
        let waited = within(limit, "the waiter learns it at once", self.waiting).await;
        match waited.expect("join") {
            Ok(output) => assert!(
                output.cancelled && output.exit_code.is_none(),
                "{}",
                describe(&output)
            ),
            Err(error) => fails_with::<()>("a wait when its sandbox ends", Err(error), &["Lost"]),
        }
        let token = CancellationToken::new();
        let wait = guest.wait(&self.alone, &token);
        let waited = within(suite.scale.seconds(1.0), "wait after the end", wait).await;
        fails_with("wait after the end", waited, &["Lost"]);
    }
}

pub(super) async fn stop_ends_everything(suite: &Suite) {
    ends_everything(suite, false).await;
}

pub(super) async fn case_32_destroy_ends_everything(suite: &Suite) {
    ends_everything(suite, true).await;
}

/// Where it works, which variables its commands have and how long they may take.
pub(super) async fn a_sandbox_is_made_as_asked(suite: &Suite) {
    let limit = suite.scale.passing(0.5);
    let options = CreateOptions::default()
        .working_directory("/home/agent/work")
        .env("A", "create")
        .env("B", "create")
        .default_timeout(limit);
    let guest = suite.guest_with(options).await;
    let patient = |script: &str| Command::script(script).timeout(suite.scale.seconds(20.0));

    assert_eq!(guest.working_directory(), "/home/agent/work");
    let here = guest.out_of(patient("pwd -P; echo x > here")).await;
    assert_eq!(here, "/home/agent/work\n");
    assert_eq!(&guest.read("here").await[..], b"x\n");

    let script = "echo $A $B $C";
    let own = patient(script).env("B", "call").env("C", "call");
    assert_eq!(guest.out_of(own).await, "create call call\n");
    assert_eq!(
        guest.out_of(patient(script)).await,
        "create create\n",
        "a call changes no other call"
    );
    guest
        .out_of(patient(
            "export A=changed; echo export A=changed >> ~/.profile",
        ))
        .await;
    let plain = Command::argv(["sh", "-c", script]).timeout(suite.scale.seconds(20.0));
    assert_eq!(guest.out_of(plain).await, "create create\n");

    let output = guest.command(Command::argv(["sleep", "1000"])).await;
    assert!(output.timed_out, "{}", describe(&output));
    assert!(
        output.duration >= limit,
        "the duration is measured: {}",
        describe(&output)
    );
    assert_eq!(
        guest.out_of(patient("sleep 2; echo done")).await,
        "done\n",
        "the command's own deadline wins"
    );
    guest.done().await;
}

/// Moments of a boot, in ms: at once, and early enough that some hit it.
const MOMENTS: [u64; 6] = [0, 1, 3, 8, 20, 60];

pub(super) async fn destroy_during_boot_leaves_nothing(suite: &Suite) {
    let before = ids(suite).await;
    for millis in MOMENTS {
        let lazy = LazySandbox::boot(suite.factory.clone(), CreateOptions::default());
        sleep(suite.scale.time(Duration::from_millis(millis))).await;
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
            sleep(suite.scale.time(Duration::from_millis(millis))).await;
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
        let moment = suite.scale.time(Duration::from_millis(millis));
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
