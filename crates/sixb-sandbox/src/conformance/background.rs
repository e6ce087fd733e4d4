//! Processes that outlive the command, or the call, that began them.

use super::{
    Suite,
    guest::{Guest, describe, fails_with, within},
};
use crate::{
    BackgroundId, ByteRange, CancellationToken, Command, CommandOutput, OutputId, OutputStream,
    SandboxExt,
};

async fn start(guest: &Guest, script: &str) -> BackgroundId {
    guest
        .start(Command::script(script))
        .await
        .unwrap_or_else(|error| panic!("start {script:?}: {error}"))
}

async fn wait(suite: &Suite, guest: &Guest, id: &BackgroundId) -> CommandOutput {
    let token = CancellationToken::new();
    within(suite.scale.seconds(20.0), "wait", guest.wait(id, &token))
        .await
        .expect("wait")
}

async fn log(guest: &Guest, id: &BackgroundId, stream: OutputStream) -> String {
    let bytes = guest
        .read_output(&id.0, stream, ByteRange::new(0, 1 << 20))
        .await;
    String::from_utf8_lossy(&bytes.unwrap_or_else(|error| panic!("the log of {id}: {error}")))
        .into_owned()
}

/// Where nothing outlives its command, `start` is refused.
async fn refused(suite: &Suite) -> bool {
    if suite.expect.background {
        return false;
    }
    let guest = suite.guest().await;
    fails_with(
        "start",
        guest.start(Command::argv(["true"])).await,
        &["IsolationUnavailable"],
    );
    guest.done().await;
    true
}

pub(super) async fn case_01_a_server_left_behind_is_reached_later(suite: &Suite) {
    if refused(suite).await {
        return;
    }
    let guest = suite.guest().await;
    guest.write("server/page", "served\n").await;
    guest.out("cd server; nohup python3 -u -m http.server --bind 127.0.0.1 8123 >server.log 2>&1 & echo $! > server-pid").await;
    let fetch =
        "exec 3<>/dev/tcp/127.0.0.1/8123 && printf 'GET /page HTTP/1.0\\r\\n\\r\\n' >&3 && cat <&3";
    guest
        .becomes("a later command reaches the server", || async {
            guest
                .sh(fetch)
                .await
                .stdout
                .text()
                .ends_with("\r\n\r\nserved\n")
        })
        .await;
    guest.sh("kill $(cat server-pid)").await;
    guest.done().await;
}

pub(super) async fn start_wait_and_kill(suite: &Suite) {
    if refused(suite).await {
        return;
    }
    let guest = suite.guest().await;
    let begin = start(
        &guest,
        "echo out; echo err >&2; until [ -e bg-go ]; do sleep 0.02; done; exit 7",
    );
    let id = within(suite.scale.seconds(2.0), "start returns at once", begin).await;
    guest.write("bg-go", "").await;
    for call in ["first", "second"] {
        let output = wait(suite, &guest, &id).await;
        let got = (output.exit_code, output.stdout.text(), output.stderr.text());
        assert_eq!(
            got,
            (Some(7), "out\n".into(), "err\n".into()),
            "{call} wait: {}",
            describe(&output)
        );
    }
    guest
        .kill(&id)
        .await
        .expect("kill after the end is no error");

    let id = start(
        &guest,
        "echo $$ > bg-own; setsid sh -c 'echo $$ > bg-child; exec sleep 1000' & sleep 1000",
    )
    .await;
    guest.appears("bg-child").await;
    let token = CancellationToken::new();
    let (first, second, ()) =
        tokio::join!(guest.wait(&id, &token), guest.wait(&id, &token), async {
            guest.kill(&id).await.expect("kill");
            guest.kill(&id).await.expect("kill again");
        });
    for output in [first.expect("wait"), second.expect("wait")] {
        assert!(
            output.exit_code.is_none() && !output.timed_out,
            "killed: {}",
            describe(&output)
        );
    }
    guest.processes_end("kill", &["bg-own", "bg-child"]).await;
    let ids = [start(&guest, "true").await, start(&guest, "true").await];
    assert_ne!(ids[0], ids[1], "each process has a name of its own");
    guest.done().await;
}

pub(super) async fn unknown_processes_and_directories(suite: &Suite) {
    if refused(suite).await {
        return;
    }
    let guest = suite.guest().await;
    let unknown = BackgroundId(OutputId::for_call("never-started"));
    fails_with(
        "wait",
        guest.wait(&unknown, &CancellationToken::new()).await,
        &["NotFound"],
    );
    fails_with("kill", guest.kill(&unknown).await, &["NotFound"]);
    fails_with(
        "start",
        guest
            .start(Command::argv(["true"]).cwd("no-such-dir"))
            .await,
        &["NotFound"],
    );
    let id = guest
        .start(Command::argv(["no-such-program"]))
        .await
        .expect("a missing program is a result");
    let output = wait(suite, &guest, &id).await;
    assert_eq!(output.exit_code, Some(127), "{}", describe(&output));
    guest.done().await;
}

pub(super) async fn output_is_readable_while_it_runs(suite: &Suite) {
    if refused(suite).await {
        return;
    }
    let guest = suite.guest().await;
    let script = "until [ -e log-0 ]; do sleep 0.02; done; echo one; echo err >&2
        until [ -e log-1 ]; do sleep 0.02; done; echo two; sleep 1000";
    let id = guest
        .start(Command::script(script).output_id(OutputId::for_call("bg_log")))
        .await
        .expect("start");
    assert_eq!(
        id.0.as_str(),
        "bg_log",
        "the process has the name of its log"
    );
    assert_eq!(
        log(&guest, &id, OutputStream::Stdout).await,
        "",
        "a log exists before its first byte"
    );
    for (go, expect) in [("log-0", "one\n"), ("log-1", "one\ntwo\n")] {
        guest.write(go, "").await;
        guest
            .becomes(&format!("the log is {expect:?}"), || async {
                log(&guest, &id, OutputStream::Stdout).await == expect
            })
            .await;
    }
    assert_eq!(log(&guest, &id, OutputStream::Stderr).await, "err\n");
    guest.kill(&id).await.expect("kill");
    let output = wait(suite, &guest, &id).await;
    assert_eq!(output.stdout.text(), "one\ntwo\n", "{}", describe(&output));
    assert_eq!(
        log(&guest, &id, OutputStream::Stdout).await,
        "one\ntwo\n",
        "and after its end"
    );
    guest.done().await;
}

pub(super) async fn waiting_can_be_cancelled(suite: &Suite) {
    if refused(suite).await {
        return;
    }
    let guest = suite.guest().await;
    let id = start(&guest, "echo $$ > waited; sleep 1000").await;
    guest.appears("waited").await;
    let token = CancellationToken::new();
    let cancel = async { token.cancel() };
    let (waited, ()) = tokio::join!(guest.wait(&id, &token), cancel);
    fails_with("a cancelled wait", waited, &["Cancelled"]);
    guest
        .processes_live("only the wait was cancelled", &["waited"])
        .await;
    guest.kill(&id).await.expect("kill");
    guest.done().await;
}
