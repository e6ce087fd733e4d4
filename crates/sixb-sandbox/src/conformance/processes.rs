//! Deadlines, cancellation, and what a command leaves behind.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{
    Suite,
    guest::{describe, within},
};
use crate::{CancellationToken, Command};

/// Descendants of every kind, each with its pid in a file named `<prefix>-…`; then the command itself sleeps.
fn family(prefix: &str) -> (String, [String; 6]) {
    let files = ["own", "child", "session", "stubborn", "orphan", "nohup"]
        .map(|name| format!("{prefix}-{name}"));
    let [own, child, session, stubborn, orphan, nohup] = &files;
    let script = format!(
        "echo $$ > {own}
        sleep 1000 & echo $! > {child}
        setsid sh -c 'echo $$ > {session}; exec sleep 1000' &
        bash -c 'trap \"\" TERM HUP INT QUIT; echo $$ > {stubborn}; while :; do sleep 0.1; done' &
        ( ( setsid sh -c 'echo $$ > {orphan}; exec sleep 1000' </dev/null >/dev/null 2>&1 & ) & )
        nohup sleep 1000 >/dev/null 2>&1 & echo $! > {nohup}
        for f in {files}; do until [ -s $f ]; do sleep 0.02; done; done
        echo ready; echo ready > {prefix}-ready
        wait; sleep 1000",
        files = files.join(" "),
    );
    (script, files)
}

fn names(files: &[String; 6]) -> [&str; 6] {
    files.each_ref().map(String::as_str)
}

pub(super) async fn case_17_a_deadline_ends_all_descendants(suite: &Suite) {
    let guest = suite.guest().await;
    let (script, files) = family("deadline");
    let limit = suite.scale.passing(2.0);
    let begun = Instant::now();
    let output = guest.command(Command::script(script).timeout(limit)).await;
    let took = begun.elapsed();
    assert!(
        output.timed_out && !output.cancelled && output.exit_code.is_none(),
        "{}",
        describe(&output)
    );
    assert!(
        took >= limit && took < limit + suite.scale.seconds(2.0),
        "deadline {limit:?}, took {took:?}"
    );
    assert_eq!(
        output.stdout.text(),
        "ready\n",
        "output so far is kept: {}",
        describe(&output)
    );
    guest
        .processes_end("the deadline passed", &names(&files))
        .await;
    guest.done().await;
}

pub(super) async fn cancelling_ends_all_descendants(suite: &Suite) {
    let guest = suite.guest().await;
    let (script, files) = family("cancel");
    let token = CancellationToken::new();
    let run = guest.run(Command::script(script).cancel(token.clone()));
    let cancel = async {
        guest.appears("cancel-ready").await;
        token.cancel();
        Instant::now()
    };
    let (output, cancelled) = tokio::join!(run, cancel);
    let output = output.expect("a cancelled command is a result");
    assert!(
        cancelled.elapsed() < suite.scale.seconds(2.0),
        "resolved {:?} after the token fired",
        cancelled.elapsed()
    );
    assert!(
        output.cancelled && !output.timed_out && output.exit_code.is_none(),
        "{}",
        describe(&output)
    );
    assert_eq!(
        output.stdout.text(),
        "ready\n",
        "output so far is kept: {}",
        describe(&output)
    );
    guest
        .processes_end("the command was cancelled", &names(&files))
        .await;
    guest.done().await;
}

pub(super) async fn dropping_the_call_ends_all_descendants(suite: &Suite) {
    let guest = suite.guest().await;
    let (script, files) = family("drop");
    tokio::select! {
        output = guest.run(Command::script(script)) => panic!("ended by itself: {output:?}"),
        () = guest.appears("drop-ready") => {}
    }
    guest
        .processes_end("the future of run was dropped", &names(&files))
        .await;
    guest.done().await;
}

pub(super) async fn a_command_cancelled_before_it_starts(suite: &Suite) {
    let guest = suite.guest().await;
    let token = CancellationToken::new();
    token.cancel();
    let run = guest.command(Command::script("sleep 1000").cancel(token));
    let output = within(suite.scale.seconds(5.0), "a token that fired before", run).await;
    assert!(
        output.cancelled && output.exit_code.is_none(),
        "{}",
        describe(&output)
    );
    guest.done().await;
}

pub(super) async fn a_deadline_spares_earlier_background_processes(suite: &Suite) {
    let guest = suite.guest().await;
    guest
        .out("nohup sleep 1000 >/dev/null 2>&1 & echo $! > spared")
        .await;
    let output = guest
        .command(Command::script("sleep 1000").timeout(suite.scale.passing(0.3)))
        .await;
    assert!(output.timed_out, "{}", describe(&output));
    match suite.expect.background {
        true => {
            guest
                .processes_live("it belongs to an earlier command", &["spared"])
                .await
        }
        false => {
            guest
                .processes_end("nothing outlives its command here", &["spared"])
                .await
        }
    }
    guest.sh("kill $(cat spared)").await;
    guest.done().await;
}

pub(super) async fn case_01_a_silent_background_child_holds_no_call(suite: &Suite) {
    let guest = suite.guest().await;
    let run = guest.sh("sleep 30 & echo done");
    let output = within(
        suite.scale.seconds(2.0),
        "the call ends with its own process",
        run,
    )
    .await;
    assert_eq!(
        (output.exit_code, output.stdout.text().as_str()),
        (Some(0), "done\n"),
        "{}",
        describe(&output)
    );
    assert!(
        !output.timed_out && !output.cancelled,
        "{}",
        describe(&output)
    );
    guest.done().await;
}

pub(super) async fn case_03_a_writing_background_child_holds_no_call(suite: &Suite) {
    let guest = suite.guest().await;
    let script = "(echo $BASHPID > ticker; while :; do echo tick; sleep 0.1; done) & echo fg";
    let output = within(
        suite.scale.seconds(2.0),
        "the call ends with its own process",
        guest.sh(script),
    )
    .await;
    assert_eq!(output.exit_code, Some(0), "{}", describe(&output));
    assert!(
        output.stdout.text().contains("fg\n"),
        "{}",
        describe(&output)
    );
    // `yes` fills the pipe as fast as it is read.
    let output = within(
        suite.scale.seconds(2.0),
        "the call ends with its own process",
        guest.sh("yes & echo $! > yes; echo fg"),
    )
    .await;
    assert_eq!(output.exit_code, Some(0), "exit {:?}", output.exit_code);
    guest.sh("kill $(cat ticker yes)").await;
    guest.done().await;
}

pub(super) async fn case_05_there_is_no_terminal(suite: &Suite) {
    let guest = suite.guest().await;
    let run = guest.sh("read -r x </dev/tty; echo rc=$?");
    let output = within(
        suite.scale.seconds(2.0),
        "reading the terminal fails at once",
        run,
    )
    .await;
    let text = output.stdout.text();
    assert!(
        text.starts_with("rc=") && text != "rc=0\n",
        "{}",
        describe(&output)
    );
    assert!(
        !guest
            .sh("test -t 0 || test -t 1 || test -t 2")
            .await
            .success(),
        "no stream is a terminal"
    );
    guest.done().await;
}

pub(super) async fn case_18_zombies_are_reaped(suite: &Suite) {
    let guest = suite.guest().await;
    let wait = suite.scale.passing(1.0).as_secs();
    let orphans = suite.scale.size(100).max(20);
    guest
        .out(&format!(
            "for i in $(seq {orphans}); do (sleep 0.2 &); done; sleep {wait}"
        ))
        .await;
    let count = "grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l";
    guest
        .becomes("no zombie is left of the orphans", || async {
            guest.out(count).await.trim() == "0"
        })
        .await;
    guest.done().await;
}

pub(super) async fn case_30_commands_run_in_parallel(suite: &Suite) {
    let guest = suite.guest().await;
    let mut long = guest.run(Command::script("sleep 1000"));
    assert!(
        timeout(Duration::from_millis(100), &mut long)
            .await
            .is_err(),
        "it runs"
    );
    let short = async {
        for _ in 0..3 {
            let begun = Instant::now();
            assert_eq!(guest.out("echo hi").await, "hi\n");
            assert!(
                begun.elapsed() < suite.scale.seconds(1.0),
                "hi took {:?} beside a long command",
                begun.elapsed()
            );
        }
        guest.write("beside", "x").await;
        assert_eq!(&guest.read("beside").await[..], b"x");
    };
    tokio::select! {
        output = &mut long => panic!("ended by itself: {output:?}"),
        () = short => {}
    }
    drop(long);
    let many = (0..16).map(|number| {
        let command = Command::script(format!(
            "sleep 0.2; echo {number}; echo e{number} >&2; exit {number}"
        ));
        async { guest.command(command).await }
    });
    for (number, output) in futures::future::join_all(many)
        .await
        .into_iter()
        .enumerate()
    {
        let got = (output.exit_code, output.stdout.text(), output.stderr.text());
        assert_eq!(
            got,
            (
                Some(number as i32),
                format!("{number}\n"),
                format!("e{number}\n")
            )
        );
    }
    guest.done().await;
}
