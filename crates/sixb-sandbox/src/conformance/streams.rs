//! How a command ends, and that its output arrives where it belongs.

use futures::StreamExt;

use super::{
    Suite,
    guest::{describe, fails_with, within},
};
use crate::{Command, CommandEvent, OutputStream, SandboxExt};

pub(super) async fn streams_are_kept_apart(suite: &Suite) {
    let guest = suite.guest().await;
    let output = guest
        .sh("echo out; echo err >&2; echo out; echo err >&2")
        .await;
    assert_eq!(
        (output.stdout.text().as_str(), output.stderr.text().as_str()),
        ("out\nout\n", "err\nerr\n")
    );
    assert_eq!(
        (output.stdout.total_newlines, output.stderr.total_bytes),
        (2, 8)
    );
    guest.done().await;
}

pub(super) async fn exit_codes_are_kept(suite: &Suite) {
    let guest = suite.guest().await;
    for code in [0, 1, 2, 3, 42, 126, 128, 137, 255] {
        for command in [
            Command::script(format!("exit {code}")),
            Command::argv(["sh", "-c", &format!("exit {code}")]),
        ] {
            let output = guest.command(command).await;
            assert_eq!(
                (output.exit_code, output.signal),
                (Some(code), None),
                "{}",
                describe(&output)
            );
            assert_eq!(output.success(), code == 0);
            assert!(
                !output.timed_out && !output.cancelled,
                "{}",
                describe(&output)
            );
        }
    }
    guest.done().await;
}

pub(super) async fn signals_are_no_exit_codes(suite: &Suite) {
    let guest = suite.guest().await;
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("HUP", 1)] {
        let output = guest
            .sh(&format!("echo before; kill -{name} $$; sleep 60"))
            .await;
        assert_eq!(
            (output.exit_code, output.signal),
            (None, Some(number)),
            "SIG{name}: {}",
            describe(&output)
        );
        assert_eq!(output.stdout.text(), "before\n", "SIG{name}");
        assert!(
            !output.timed_out && !output.cancelled,
            "SIG{name}: {}",
            describe(&output)
        );
    }
    guest.done().await;
}

pub(super) async fn a_missing_program_is_127(suite: &Suite) {
    let guest = suite.guest().await;
    for command in [
        Command::argv(["no-such-program"]),
        Command::argv(["./no-such-program"]),
        Command::argv(["/no-such-program", "x"]),
        Command::script("no-such-program"),
    ] {
        let output = guest.command(command).await;
        assert_eq!(output.exit_code, Some(127), "{}", describe(&output));
        assert!(
            output.stderr.text().contains("no-such-program"),
            "the message names it: {}",
            describe(&output)
        );
    }
    guest.done().await;
}

pub(super) async fn no_arguments_are_refused(suite: &Suite) {
    let guest = suite.guest().await;
    let result = guest.run(Command::argv(Vec::<String>::new())).await;
    fails_with("a command of no words", result, &["InvalidInput"]);
    guest.done().await;
}

pub(super) async fn arguments_are_not_a_shell(suite: &Suite) {
    let guest = suite.guest().await;
    let words = [
        "a b",
        "$HOME",
        "`id`",
        "'\"",
        "",
        "*",
        "é",
        "-n",
        "line\nbreak",
        "\\",
    ];
    let output = guest
        .command(Command::argv(["printf", "[%s]"].into_iter().chain(words)))
        .await;
    let expect: String = words.iter().map(|word| format!("[{word}]")).collect();
    assert_eq!(output.stdout.text(), expect, "{}", describe(&output));
    guest.done().await;
}

pub(super) async fn case_04_no_output_is_a_result(suite: &Suite) {
    let guest = suite.guest().await;
    let output = within(suite.scale.seconds(2.0), "false", guest.sh("false")).await;
    assert_eq!(output.exit_code, Some(1));
    assert!(
        output.stdout.bytes().is_empty() && output.stderr.bytes().is_empty(),
        "{}",
        describe(&output)
    );
    assert_eq!(
        (output.stdout.total_bytes, output.stderr.total_bytes),
        (0, 0)
    );
    guest.done().await;
}

pub(super) async fn case_28_one_file_system_for_all_ways(suite: &Suite) {
    let guest = suite.guest().await;
    guest.out("echo marker > by-command").await;
    assert_eq!(
        &guest.read("by-command").await[..],
        b"marker\n",
        "by the file call"
    );
    guest.write("by-call", "from a call\n").await;
    assert_eq!(
        guest.out("cat by-call").await,
        "from a call\n",
        "by the command"
    );
    let mut events = guest.stream(Command::script(
        "cat by-command by-call; echo streamed > by-stream",
    ));
    let mut ended = None;
    while let Some(event) = events.next().await {
        if let CommandEvent::Ended(result) = event {
            ended = Some(result.expect("stream"));
        }
    }
    drop(events);
    assert_eq!(
        ended.expect("the last event is the end").stdout.text(),
        "marker\nfrom a call\n",
        "by the stream"
    );
    assert_eq!(&guest.read("by-stream").await[..], b"streamed\n");
    guest.done().await;
}

pub(super) async fn live_output_arrives_while_it_runs(suite: &Suite) {
    let guest = suite.guest().await;
    let script = "echo one; echo two >&2; until [ -e live-go ]; do sleep 0.02; done; echo three";
    let mut events = guest.stream(Command::script(script));
    let (mut out, mut err, mut end) = (String::new(), String::new(), None);
    let wait = async {
        while let Some(event) = events.next().await {
            match event {
                CommandEvent::Output(chunk) => {
                    assert!(end.is_none(), "the end is last");
                    let text = String::from_utf8_lossy(&chunk.bytes).into_owned();
                    match chunk.stream {
                        OutputStream::Stdout => out.push_str(&text),
                        OutputStream::Stderr => err.push_str(&text),
                    }
                    // Only what came while it still ran lets it end.
                    if out == "one\n" && err == "two\n" {
                        guest.write("live-go", "").await;
                    }
                }
                CommandEvent::Ended(result) => end = Some(result.expect("run")),
            }
        }
    };
    within(
        suite.scale.seconds(20.0),
        "output arrives live, then the end",
        wait,
    )
    .await;
    assert_eq!((out.as_str(), err.as_str()), ("one\nthree\n", "two\n"));
    assert_eq!(
        end.expect("the end").stdout.text(),
        "one\nthree\n",
        "the capture has it all too"
    );
    drop(events);
    guest.done().await;
}
