//! Whole output, kept outside the working directory and readable by name.

use super::{
    Suite,
    guest::{Guest, fails_with, path},
};
use crate::{
    ByteRange, Command, FileSource, LinePosition, ListOptions, OutputId, OutputLimits,
    OutputStream, SandboxExt, SeekLine,
};

async fn all(guest: &Guest, id: &OutputId, stream: OutputStream) -> Vec<u8> {
    let read = guest
        .read_output(id, stream, ByteRange::new(0, ByteRange::MAX_LEN))
        .await;
    read.unwrap_or_else(|error| panic!("reading {id}/{}: {error}", stream.as_str()))
        .to_vec()
}

fn numbers(last: u32) -> Vec<u8> {
    (1..=last)
        .flat_map(|number| format!("{number}\n").into_bytes())
        .collect()
}

pub(super) async fn the_whole_output_can_be_read_back(suite: &Suite) {
    let guest = suite.guest().await;
    let id = OutputId::for_call("spool_whole");
    let command = Command::script("seq 1 100000; seq 1 50000 >&2")
        .limits(OutputLimits::head_tail(1000, 1000).spool(500, 64 << 20));
    let output = guest.command(command.output_id(id.clone())).await;
    for (stream, captured, last) in [
        (OutputStream::Stdout, &output.stdout, 100_000),
        (OutputStream::Stderr, &output.stderr, 50_000),
    ] {
        assert!(captured.truncated());
        assert_eq!(
            captured.spooled_bytes,
            captured.total_bytes,
            "{} is spooled whole",
            stream.as_str()
        );
        assert!(
            all(&guest, &id, stream).await == numbers(last),
            "{} reads back the same",
            stream.as_str()
        );
        let stat = guest
            .stat(&FileSource::Output(id.clone(), stream))
            .await
            .expect("stat of an output");
        assert_eq!(stat.size, captured.total_bytes);
    }
    let listed = guest
        .list(&path("."), ListOptions::default().recursive())
        .await
        .expect("list");
    let inside: Vec<_> = listed
        .iter()
        .filter(|entry| entry.path.to_string().contains("spool_whole"))
        .collect();
    assert!(
        inside.is_empty(),
        "the spool lies outside the working directory: {inside:?}"
    );
    guest.done().await;
}

pub(super) async fn case_13_the_middle_is_found_by_line(suite: &Suite) {
    let guest = suite.guest().await;
    let id = OutputId::for_call("spool_lines");
    guest
        .command(Command::script("seq 1 100000; echo FATAL_LAST >&2; exit 3").output_id(id.clone()))
        .await;
    let source = FileSource::Output(id, OutputStream::Stdout);
    let seek = guest
        .seek_line(&source, SeekLine::new(50_000))
        .await
        .expect("seek_line");
    let LinePosition::At { offset } = seek else {
        panic!("line 50000 of 100000: {seek:?}")
    };
    let line = guest
        .read_range(&source, ByteRange::new(offset, 6))
        .await
        .expect("read_range");
    assert_eq!(&line[..], b"50000\n");
    let past = guest
        .seek_line(&source, SeekLine::new(100_001))
        .await
        .expect("seek_line");
    assert_eq!(
        past,
        LinePosition::PastEnd {
            total_lines: 100_000
        }
    );
    guest.done().await;
}

pub(super) async fn a_spool_ends_at_its_cap(suite: &Suite) {
    let guest = suite.guest().await;
    let id = OutputId::for_call("spool_cap");
    let limits = OutputLimits::head_tail(1000, 1000).spool(0, 100_000);
    let output = guest
        .command(
            Command::script("seq 1 100000")
                .limits(limits)
                .output_id(id.clone()),
        )
        .await;
    assert_eq!(
        (output.stdout.spooled_bytes, output.stdout.total_bytes),
        (100_000, 588_895)
    );
    assert_eq!(output.exit_code, Some(0), "a full spool stops no command");
    assert!(
        all(&guest, &id, OutputStream::Stdout).await == numbers(100_000)[..100_000],
        "the first 100000 bytes"
    );
    guest.done().await;
}

pub(super) async fn short_output_is_not_spooled(suite: &Suite) {
    let guest = suite.guest().await;
    let id = OutputId::for_call("spool_short");
    let limits = OutputLimits::default().spool(1000, 1 << 20);
    let output = guest
        .command(
            Command::script("head -c 1000 /dev/zero")
                .limits(limits)
                .output_id(id.clone()),
        )
        .await;
    assert_eq!(
        (output.stdout.spooled_bytes, output.stdout.head.len()),
        (0, 1000),
        "it is whole in the result"
    );
    fails_with(
        "reading it",
        guest
            .read_output(&id, OutputStream::Stdout, ByteRange::new(0, 9))
            .await,
        &["NotFound"],
    );
    let output = guest
        .command(Command::script("head -c 2000 /dev/zero").limits(limits))
        .await;
    assert_eq!(output.stdout.spooled_bytes, 0, "nobody asked for a spool");
    guest.done().await;
}

pub(super) async fn a_reused_name_is_replaced(suite: &Suite) {
    let guest = suite.guest().await;
    let id = OutputId::for_call("spool_again");
    let limits = OutputLimits::default().spool(10, 1 << 20);
    let run =
        |script: &str| guest.command(Command::script(script).limits(limits).output_id(id.clone()));
    run("echo first and long enough").await;
    run("echo second and long, too").await;
    assert_eq!(
        all(&guest, &id, OutputStream::Stdout).await,
        b"second and long, too\n"
    );
    run("echo short").await;
    let stale = guest
        .read_output(&id, OutputStream::Stdout, ByteRange::new(0, 9))
        .await;
    fails_with(
        "output of an earlier command under a reused name",
        stale,
        &["NotFound"],
    );
    guest.done().await;
}

pub(super) async fn an_unknown_output_is_not_found(suite: &Suite) {
    let guest = suite.guest().await;
    let source = FileSource::Output(OutputId::for_call("spool_unknown"), OutputStream::Stdout);
    fails_with(
        "read_range",
        guest.read_range(&source, ByteRange::new(0, 1)).await,
        &["NotFound"],
    );
    fails_with("stat", guest.stat(&source).await, &["NotFound"]);
    fails_with(
        "seek_line",
        guest.seek_line(&source, SeekLine::new(1)).await,
        &["NotFound"],
    );
    guest.done().await;
}
