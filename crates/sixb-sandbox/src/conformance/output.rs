//! Sizes, bounds and bytes of captured output.

use super::{
    Suite,
    guest::{Guest, describe},
    host::peak_memory,
};
use crate::{CapturedStream, Command, CommandOutput, OutputLimits, OutputStream};

const LINE: &[u8] = b"0123456789abcde\n";

/// Writes `size` bytes of a known text.
fn script(size: u64, to: &str) -> String {
    format!("yes 0123456789abcde | head -c {size} {to}")
}

/// The text from `offset` on.
fn expected(offset: u64, len: usize) -> Vec<u8> {
    LINE.iter()
        .copied()
        .cycle()
        .skip((offset % LINE.len() as u64) as usize)
        .take(len)
        .collect()
}

/// 0, 1, and around 64 KiB, 1 MiB and 12 MiB.
fn sizes(suite: &Suite) -> Vec<u64> {
    let around = |size: u64| [size - 1, size, size + 1];
    [
        vec![0, 1],
        around(64 << 10).into(),
        around(suite.scale.size(1 << 20)).into(),
        around(suite.scale.size(12 << 20)).into(),
    ]
    .concat()
}

fn pick(output: CommandOutput, stream: OutputStream) -> (CapturedStream, CapturedStream) {
    match stream {
        OutputStream::Stdout => (output.stdout, output.stderr),
        OutputStream::Stderr => (output.stderr, output.stdout),
    }
}

async fn exact(guest: &Guest, size: u64, stream: OutputStream) {
    let to = if stream == OutputStream::Stderr {
        ">&2"
    } else {
        ""
    };
    let limits = OutputLimits::head_tail(7 << 20, 7 << 20);
    let output = guest
        .command(Command::script(script(size, to)).limits(limits))
        .await;
    assert_eq!(
        output.exit_code,
        Some(0),
        "{size} bytes: {}",
        describe(&output)
    );
    let (captured, other) = pick(output, stream);
    assert_eq!(captured.total_bytes, size, "total of {}", stream.as_str());
    assert_eq!(
        captured.total_newlines,
        size / LINE.len() as u64,
        "newlines of {size} bytes"
    );
    assert_eq!(
        (captured.head.len() as u64, captured.tail.len()),
        (size, 0),
        "{size} bytes are kept whole, in the head"
    );
    assert!(
        captured.head == expected(0, size as usize),
        "{size} bytes, and the very bytes"
    );
    assert_eq!(other.total_bytes, 0);
}

pub(super) async fn sizes_are_exact(suite: &Suite) {
    let guest = suite.guest().await;
    for size in sizes(suite) {
        exact(&guest, size, OutputStream::Stdout).await;
    }
    guest.done().await;
}

pub(super) async fn sizes_are_exact_on_stderr(suite: &Suite) {
    let guest = suite.guest().await;
    for size in [1, suite.scale.size(12 << 20) + 1] {
        exact(&guest, size, OutputStream::Stderr).await;
    }
    guest.done().await;
}

pub(super) async fn long_output_keeps_both_ends(suite: &Suite) {
    let guest = suite.guest().await;
    let size = suite.scale.size(12 << 20) + 5;
    for (head, tail) in [(1000, 3000), (1, 1), (0, 100), (100, 0), (100_000, 200_000)] {
        let command = Command::script(script(size, "")).limits(OutputLimits::head_tail(head, tail));
        let captured = guest.command(command).await.stdout;
        assert_eq!(
            (
                captured.total_bytes,
                captured.head.len(),
                captured.tail.len()
            ),
            (size, head, tail)
        );
        assert!(captured.head == expected(0, head), "the first {head} bytes");
        assert!(
            captured.tail == expected(size - tail as u64, tail),
            "the last {tail} bytes"
        );
        assert_eq!(captured.omitted_bytes(), size - (head + tail) as u64);
    }
    guest.done().await;
}

pub(super) async fn case_12_the_last_error_survives(suite: &Suite) {
    let guest = suite.guest().await;
    let command = Command::script("seq 1 100000; echo FATAL_LAST >&2; exit 3")
        .limits(OutputLimits::head_tail(1000, 1000));
    let output = guest.command(command).await;
    assert_eq!(
        (output.exit_code, output.stderr.text().as_str()),
        (Some(3), "FATAL_LAST\n")
    );
    let text = output.stdout.text();
    assert!(
        text.starts_with("1\n2\n") && text.ends_with("99999\n100000\n"),
        "both ends: {text:.100}"
    );
    assert_eq!(
        (output.stdout.total_newlines, output.stdout.total_bytes),
        (100_000, 588_895)
    );
    guest.done().await;
}

/// 200 MB, and `yes` without end. Half of what is written is far above any budget, and below an unbounded capture;
/// other tests of this process may take some of it.
pub(super) async fn case_10_memory_is_bounded(suite: &Suite) {
    let guest = suite.guest().await;
    let size = suite.scale.size(200_000_000);
    let limits = OutputLimits::head_tail(256 << 10, 256 << 10);
    let before = peak_memory();
    let output = guest
        .command(Command::script(format!("head -c {size} /dev/zero")).limits(limits))
        .await;
    assert_eq!(
        (output.exit_code, output.stdout.total_bytes),
        (Some(0), size)
    );
    let endless = Command::script("yes")
        .limits(limits)
        .timeout(suite.scale.passing(1.0));
    let output = guest.command(endless).await;
    assert!(
        output.timed_out && output.stdout.truncated(),
        "timed out {}",
        output.timed_out
    );
    let grown = peak_memory() - before;
    assert!(
        grown < size / 2,
        "memory grew by {grown} bytes while {size} were written within a budget of {}",
        512 << 10
    );
    guest.done().await;
}

pub(super) async fn binary_output_is_exact(suite: &Suite) {
    let guest = suite.guest().await;
    let all: Vec<u8> = (0..=255).collect();
    let octal: String = all.iter().map(|byte| format!("\\{byte:03o}")).collect();
    for to in ["", ">&2"] {
        let output = guest.sh(&format!("printf '{octal}' {to}")).await;
        let got = if to.is_empty() {
            output.stdout
        } else {
            output.stderr
        };
        assert_eq!(got.bytes(), all, "every byte value {to}");
    }
    guest.done().await;
}
