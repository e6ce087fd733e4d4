//! Writing and reading files.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::{
    Suite,
    guest::{Guest, fails_with, file, path, within},
};
use crate::{
    ByteRange, Command, FileContents, FileKind, FileWrite, LinePosition, ListOptions, SeekLine,
};

pub(super) async fn written_files_are_read_back(suite: &Suite) {
    let guest = suite.guest().await;
    let all: Vec<u8> = (0..=255).collect();
    let many = [
        ("w-empty", &b""[..]),
        ("w-text", b"text\n"),
        ("w-binary", &all),
        ("./w-dot", b"."),
        ("w-dir/../w-folded", b"f"),
    ];
    let writes = many
        .iter()
        .map(|(name, contents)| FileWrite::new(path(name), contents.to_vec()))
        .collect();
    guest.write_files(writes).await.expect("write_files");
    for (name, contents) in many {
        assert_eq!(&guest.read(name).await[..], contents, "{name}");
        let stat = guest.stat(&file(name)).await.expect("stat");
        assert_eq!(
            (stat.kind, stat.size, stat.mode & 0o777),
            (FileKind::File, contents.len() as u64, 0o644),
            "{name}"
        );
        assert!(
            stat.modified > Duration::from_secs(1_500_000_000),
            "a time of change: {:?}",
            stat.modified
        );
    }
    assert_eq!(guest.out("cat w-text w-folded").await, "text\nf");
    guest
        .write_files(Vec::new())
        .await
        .expect("no files is no error");
    guest.done().await;
}

pub(super) async fn nested_paths_make_their_parents(suite: &Suite) {
    let guest = suite.guest().await;
    guest.write("n1/n2/n3/deep", "deep").await;
    guest.write("n1/n2/beside", "beside").await;
    assert_eq!(
        guest
            .out("cat n1/n2/n3/deep n1/n2/beside; echo new > n1/n2/n3/by-command")
            .await,
        "deepbeside"
    );
    assert_eq!(
        &guest.read("n1/n2/n3/by-command").await[..],
        b"new\n",
        "commands may write in folders that calls made"
    );
    guest.done().await;
}

pub(super) async fn odd_names(suite: &Suite) {
    let guest = suite.guest().await;
    let long = "x".repeat(255);
    let long_text = "é".repeat(127);
    for name in [
        "odd name",
        " odd",
        "odd ",
        "'odd'",
        "\"odd\"",
        "`odd`",
        "$odd",
        "odd\\",
        "odd\nname",
        "odd\ttab",
        "odd\r",
        "-odd",
        "--",
        "*odd?",
        "~",
        "#odd",
        "odd;id",
        "%6fdd",
        "é😀",
        "..odd",
        "...",
        ".odd",
        "odd|&",
        "con",
        "a:b",
        &long,
        &long_text,
        "odd dir/-rf/é\n",
    ] {
        let text = format!("contents of {name:?}");
        guest.write(name, text.clone()).await;
        assert_eq!(guest.read(name).await, text, "{name:?} by the call");
        let cat = Command::argv(["sh", "-c", "cat -- \"$F\""]).env("F", name);
        assert_eq!(guest.out_of(cat).await, text, "{name:?} by a command");
        assert_eq!(
            guest.stat(&file(name)).await.expect("stat").size,
            text.len() as u64,
            "{name:?}"
        );
        let parent = path(name).parent().unwrap_or_default();
        let listed = guest
            .list(&parent, ListOptions::default())
            .await
            .expect("list");
        assert!(
            listed.iter().any(|entry| entry.path == path(name)),
            "{name:?} is listed: {listed:?}"
        );
        guest
            .remove(&path(name))
            .await
            .unwrap_or_else(|error| panic!("remove {name:?}: {error}"));
        fails_with(
            &format!("stat of {name:?} after remove"),
            guest.stat(&file(name)).await,
            &["NotFound"],
        );
    }
    guest.done().await;
}

pub(super) async fn names_that_are_not_utf8(suite: &Suite) {
    let guest = suite.guest().await;
    let name = b"raw-\xff\xfe-\x80";
    guest.write(name, "raw").await;
    assert_eq!(guest.read(name).await, "raw");
    assert_eq!(guest.out("cat raw-$'\\xff\\xfe'-$'\\x80'").await, "raw");
    let listed = guest
        .list(&path("."), ListOptions::default())
        .await
        .expect("list");
    assert!(
        listed.iter().any(|entry| entry.path.as_bytes() == name),
        "listed by its bytes: {listed:?}"
    );
    guest.remove(&path(name)).await.expect("remove");
    guest.done().await;
}

pub(super) async fn modes(suite: &Suite) {
    let guest = suite.guest().await;
    for mode in [0o644, 0o600, 0o755, 0o444, 0o666, 0o777] {
        let name = format!("mode-{mode:o}");
        let write = || FileWrite::new(path(&name), "#!/bin/sh\necho ran\n").mode(mode);
        guest.write_files(vec![write()]).await.expect("write");
        assert_eq!(
            guest.stat(&file(&name)).await.expect("stat").mode & 0o7777,
            mode,
            "{name}: stat"
        );
        assert_eq!(
            guest.out(&format!("stat -c %a {name}")).await.trim(),
            format!("{mode:o}"),
            "{name}: inside"
        );
        guest
            .write_files(vec![write()])
            .await
            .unwrap_or_else(|error| panic!("{name} is replaced: {error}"));
    }
    assert_eq!(guest.out("./mode-755").await, "ran\n");
    assert_eq!(
        guest.sh("./mode-644").await.exit_code,
        Some(126),
        "not executable"
    );
    let special = FileWrite::new(path("mode-suid"), "").mode(0o6755);
    guest.write_files(vec![special]).await.expect("write");
    assert_eq!(
        guest.stat(&file("mode-suid")).await.expect("stat").mode & 0o7777,
        0o755,
        "no set-uid bits"
    );
    guest.done().await;
}

pub(super) async fn a_large_file_is_exact(suite: &Suite) {
    let guest = suite.guest().await;
    let size = suite.scale.size(20 << 20) as usize + 1;
    let bytes: Bytes = (0..size)
        .map(|at| (at % 251) as u8)
        .collect::<Vec<_>>()
        .into();
    let digest: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    guest.write("large", bytes.clone()).await;
    assert_eq!(
        guest.out("sha256sum large").await.split(' ').next(),
        Some(digest.as_str()),
        "inside"
    );
    assert_eq!(
        guest.stat(&file("large")).await.expect("stat").size,
        size as u64
    );
    assert!(guest.read("large").await == bytes, "read whole");
    let mut back = Vec::new();
    while back.len() < size {
        let piece = guest
            .read_range(&file("large"), ByteRange::new(back.len() as u64, 1_000_003))
            .await
            .expect("read");
        assert!(
            piece.len() == 1_000_003.min(size - back.len()),
            "fewer bytes only at the end: {}",
            piece.len()
        );
        back.extend_from_slice(&piece);
    }
    assert!(back == bytes, "read in pieces");
    guest.remove(&path("large")).await.expect("remove");
    guest.done().await;
}

pub(super) async fn overwriting_replaces_all(suite: &Suite) {
    let guest = suite.guest().await;
    guest.write("over", "a long first version").await;
    let first = guest.stat(&file("over")).await.expect("stat");
    guest.write("over", "short").await;
    assert_eq!(&guest.read("over").await[..], b"short");
    guest.write("over", "other").await;
    let third = guest.stat(&file("over")).await.expect("stat");
    assert_ne!(
        first.version, third.version,
        "other bytes have another version"
    );
    assert_eq!(
        third.version,
        guest.stat(&file("over")).await.expect("stat").version,
        "the same bytes have the same"
    );
    guest.out("chmod 755 over; printf inside > over").await;
    assert_eq!(&guest.read("over").await[..], b"inside");
    guest.done().await;
}

fn failing(texts: &'static [&'static str]) -> FileContents {
    let texts = stream::iter(texts).map(|text| Ok(Bytes::from_static(text.as_bytes())));
    FileContents::Stream(
        texts
            .chain(stream::iter([Err(std::io::Error::other("source broke"))]))
            .boxed(),
    )
}

pub(super) async fn a_streamed_file(suite: &Suite) {
    let guest = suite.guest().await;
    let size = suite.scale.size(5 << 20);
    let pieces = stream::iter((0..size / 1000).map(|at| Ok(Bytes::from(format!("{at:0>1000}")))));
    guest
        .write_files(vec![
            FileWrite::new(path("streamed"), "").mode(0o600),
            contents("streamed", pieces.boxed()),
        ])
        .await
        .expect("write");
    let bytes = guest.read("streamed").await;
    assert_eq!(bytes.len() as u64, size / 1000 * 1000);
    assert!(
        bytes
            .chunks(1000)
            .enumerate()
            .all(|(at, piece)| piece == format!("{at:0>1000}").as_bytes()),
        "in order"
    );
    guest
        .write_files(vec![contents("streamed", stream::empty().boxed())])
        .await
        .expect("write");
    assert!(guest.read("streamed").await.is_empty());
    guest.done().await;
}

fn contents(name: &str, pieces: stream::BoxStream<'static, std::io::Result<Bytes>>) -> FileWrite {
    let mut write = FileWrite::new(path(name), "");
    write.contents = FileContents::Stream(pieces);
    write
}

/// Asserts that a folder holds one file, `old`: no half-written one, no temporary one.
async fn only_old(guest: &Guest, folder: &str) {
    guest
        .becomes(&format!("only the old file is in {folder}"), || async {
            guest
                .out(&format!("ls -A {folder}; cat {folder}/old"))
                .await
                == "old\nold contents"
        })
        .await;
}

pub(super) async fn a_failing_stream_leaves_the_old_file(suite: &Suite) {
    let guest = suite.guest().await;
    guest.write("half/old", "old contents").await;
    for name in ["half/old", "half/new"] {
        let mut write = FileWrite::new(path(name), "");
        write.contents = failing(&["new ", "contents"]);
        let error = guest
            .write_files(vec![write])
            .await
            .expect_err("the source broke")
            .to_string();
        assert!(
            error.contains("source broke"),
            "the error says why: {error}"
        );
    }
    only_old(&guest, "half").await;
    guest.done().await;
}

pub(super) async fn a_dropped_write_leaves_the_old_file(suite: &Suite) {
    let guest = suite.guest().await;
    guest.write("dropped/old", "old contents").await;
    for name in ["dropped/old", "dropped/new"] {
        let pieces = stream::iter([Ok(Bytes::from_static(b"begun"))]).chain(stream::pending());
        let write = guest.write_files(vec![contents(name, pieces.boxed())]);
        assert!(
            timeout(suite.scale.passing(0.2), write).await.is_err(),
            "the stream has no end"
        );
    }
    only_old(&guest, "dropped").await;
    guest.done().await;
}

pub(super) async fn ranges_at_the_ends(suite: &Suite) {
    let guest = suite.guest().await;
    guest.write("range", "0123456789").await;
    guest.write("range-empty", "").await;
    for (name, offset, len, expect) in [
        ("range", 0, 10, "0123456789"),
        ("range", 0, 4, "0123"),
        ("range", 6, 4, "6789"),
        ("range", 6, 100, "6789"),
        ("range", 9, 1, "9"),
        ("range", 10, 1, ""),
        ("range", 1000, 1, ""),
        ("range", u64::MAX, 1, ""),
        ("range", i64::MAX as u64, 1, ""),
        ("range", 5, 0, ""),
        ("range-empty", 0, 10, ""),
        ("range", 0, ByteRange::MAX_LEN, "0123456789"),
    ] {
        let got = guest
            .read_range(&file(name), ByteRange::new(offset, len))
            .await;
        let got = got.unwrap_or_else(|error| panic!("{len} bytes of {name} at {offset}: {error}"));
        assert_eq!(got, expect, "{len} bytes of {name} at {offset}");
    }
    let more = guest
        .read_range(&file("range"), ByteRange::new(0, ByteRange::MAX_LEN + 1))
        .await;
    fails_with("a range over MAX_LEN", more, &["LimitExceeded"]);
    guest.done().await;
}

pub(super) async fn missing_and_wrong_kinds(suite: &Suite) {
    let guest = suite.guest().await;
    guest.write("kind/file", "x").await;
    let (missing, dir, below) = (file("kind/missing"), file("kind"), file("kind/file/below"));
    let range = ByteRange::new(0, 1);
    fails_with(
        "reading what is missing",
        guest.read_range(&missing, range).await,
        &["NotFound"],
    );
    fails_with(
        "seeking in what is missing",
        guest.seek_line(&missing, SeekLine::new(1)).await,
        &["NotFound"],
    );
    fails_with(
        "stat of what is missing",
        guest.stat(&missing).await,
        &["NotFound"],
    );
    fails_with(
        "listing what is missing",
        guest
            .list(&path("kind/missing"), ListOptions::default())
            .await,
        &["NotFound"],
    );
    fails_with(
        "reading a directory",
        guest.read_range(&dir, range).await,
        &["WrongKind"],
    );
    fails_with(
        "seeking in a directory",
        guest.seek_line(&dir, SeekLine::new(1)).await,
        &["WrongKind"],
    );
    fails_with(
        "listing a file",
        guest.list(&path("kind/file"), ListOptions::default()).await,
        &["WrongKind"],
    );
    fails_with(
        "reading below a file",
        guest.read_range(&below, range).await,
        &["NotFound", "WrongKind"],
    );
    for (what, name) in [("a directory", "kind"), ("the working directory", ".")] {
        fails_with(
            &format!("writing over {what}"),
            guest
                .write_files(vec![FileWrite::new(path(name), "x")])
                .await,
            &["WrongKind"],
        );
    }
    let write = guest
        .write_files(vec![FileWrite::new(path("kind/file/below"), "x")])
        .await;
    fails_with("writing below a file", write, &["NotFound", "WrongKind"]);
    guest.out("mkfifo kind/fifo").await;
    let fifo = file("kind/fifo");
    let read = guest.read_range(&fifo, range);
    fails_with(
        "reading a FIFO",
        within(suite.scale.seconds(2.0), "reading a FIFO ends", read).await,
        &["WrongKind"],
    );
    guest.done().await;
}

pub(super) async fn seeking_a_line(suite: &Suite) {
    let guest = suite.guest().await;
    let lines = suite.scale.size(1_000_000).max(10_000);
    guest
        .out(&format!(
            "seq 1 {lines} > seek; printf 'a\\nb' > seek-open; : > seek-empty"
        ))
        .await;
    let start = |line: u64| {
        (1..line)
            .map(|number| number.to_string().len() as u64 + 1)
            .sum::<u64>()
    };
    for (name, seek, expect) in [
        ("seek", SeekLine::new(1), Ok(0)),
        ("seek", SeekLine::new(7_777), Ok(start(7_777))),
        ("seek", SeekLine::new(lines), Ok(start(lines))),
        ("seek", SeekLine::new(lines + 1), Err(lines)),
        ("seek", SeekLine::new(u64::MAX), Err(lines)),
        (
            "seek",
            SeekLine::new(9_000).from(8_000, start(8_000)),
            Ok(start(9_000)),
        ),
        ("seek-open", SeekLine::new(2), Ok(2)),
        ("seek-open", SeekLine::new(3), Err(2)),
        ("seek-empty", SeekLine::new(1), Err(0)),
    ] {
        let got = guest
            .seek_line(&file(name), seek)
            .await
            .unwrap_or_else(|error| panic!("{seek:?} in {name}: {error}"));
        let expect = match expect {
            Ok(offset) => LinePosition::At { offset },
            Err(total_lines) => LinePosition::PastEnd { total_lines },
        };
        assert_eq!(got, expect, "{seek:?} in {name} of {lines} lines");
    }
    guest.done().await;
}
