//! What a command reads.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};

use super::{
    Suite,
    guest::{Guest, describe, within},
};
use crate::{Command, CommandOutput, Stdin};

async fn soon(suite: &Suite, guest: &Guest, command: Command) -> CommandOutput {
    let shown = format!("{command:?}");
    within(suite.scale.seconds(5.0), &shown, guest.command(command)).await
}

fn chunks(texts: &'static [&'static str]) -> Stdin {
    Stdin::Stream(
        stream::iter(texts)
            .map(|text| Ok(Bytes::from_static(text.as_bytes())))
            .boxed(),
    )
}

pub(super) async fn case_07_stdin_is_empty_by_default(suite: &Suite) {
    let guest = suite.guest().await;
    for command in [
        Command::script("cat"),
        Command::argv(["cat"]),
        Command::script("cat").stdin_bytes(""),
    ] {
        let output = within(
            suite.scale.seconds(1.0),
            "cat of nothing ends at once",
            guest.command(command),
        )
        .await;
        assert!(
            output.success() && output.stdout.total_bytes == 0,
            "{}",
            describe(&output)
        );
    }
    let output = guest.sh("read -r x; echo rc=$?").await;
    assert_eq!(output.stdout.text(), "rc=1\n", "read sees the end");
    guest.done().await;
}

pub(super) async fn case_07_stdin_bytes_and_stream(suite: &Suite) {
    let guest = suite.guest().await;
    for (stdin, expect) in [
        (Stdin::Bytes("hi".into()), "hi"),
        (chunks(&["one\n", "", "two\n", "three"]), "one\ntwo\nthree"),
        (chunks(&[]), ""),
    ] {
        let output = soon(suite, &guest, Command::argv(["cat"]).stdin(stdin)).await;
        assert_eq!(output.stdout.text(), expect, "{}", describe(&output));
    }
    let slow = stream::unfold(0, |at| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        (at < 3).then(|| (Ok(Bytes::from(format!("{at}\n"))), at + 1))
    });
    let output = soon(
        suite,
        &guest,
        Command::argv(["cat"]).stdin(Stdin::Stream(slow.boxed())),
    )
    .await;
    assert_eq!(
        output.stdout.text(),
        "0\n1\n2\n",
        "a stream that takes its time"
    );
    guest.done().await;
}

pub(super) async fn a_mebibyte_of_stdin_comes_back(suite: &Suite) {
    let guest = suite.guest().await;
    let bytes: Bytes = (0..1u32 << 20)
        .map(|at| (at % 251) as u8)
        .collect::<Vec<_>>()
        .into();
    let pieces: Vec<_> = bytes
        .chunks(10_000)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    for stdin in [
        Stdin::Bytes(bytes.clone()),
        Stdin::Stream(stream::iter(pieces).boxed()),
    ] {
        let output = guest.command(Command::argv(["cat"]).stdin(stdin)).await;
        assert!(
            output.success() && output.stderr.total_bytes == 0,
            "exit {:?}",
            output.exit_code
        );
        assert!(
            output.stdout.bytes() == bytes,
            "{} bytes came back, or others",
            output.stdout.total_bytes
        );
    }
    guest.done().await;
}

pub(super) async fn stdin_that_nobody_reads(suite: &Suite) {
    let guest = suite.guest().await;
    let much = Bytes::from(vec![b'x'; 1 << 20]);
    let output = soon(suite, &guest, Command::argv(["true"]).stdin_bytes(much)).await;
    assert!(output.success(), "{}", describe(&output));
    let output = soon(
        suite,
        &guest,
        Command::argv(["true"]).stdin(Stdin::Stream(stream::pending().boxed())),
    )
    .await;
    assert!(
        output.success(),
        "a stream without end holds no command: {}",
        describe(&output)
    );
    let output = soon(
        suite,
        &guest,
        Command::script("head -c 3").stdin_bytes(vec![b'y'; 1 << 20]),
    )
    .await;
    assert_eq!(output.stdout.text(), "yyy", "{}", describe(&output));
    guest.done().await;
}

pub(super) async fn a_failing_stdin_stream_ends_the_input(suite: &Suite) {
    let guest = suite.guest().await;
    let failing = stream::iter([
        Ok(Bytes::from_static(b"before")),
        Err(std::io::Error::other("source broke")),
    ]);
    let output = soon(
        suite,
        &guest,
        Command::argv(["cat"]).stdin(Stdin::Stream(failing.boxed())),
    )
    .await;
    assert_eq!(
        (output.exit_code, output.stdout.text().as_str()),
        (Some(0), "before"),
        "{}",
        describe(&output)
    );
    guest.done().await;
}
