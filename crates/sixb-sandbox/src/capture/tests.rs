//! The capture as a table, then its clock, its spool and its neighbours.

use std::{io, time::Duration};

use proptest::prelude::*;
use tokio::{
    io::{AsyncWriteExt, duplex},
    sync::mpsc,
    time::Instant,
};

use super::*;
use crate::{OutputId, spool::Spool};

async fn keep(bytes: &[u8], head: usize, tail: usize) -> CapturedStream {
    let options = CaptureOptions::new(OutputStream::Stdout, OutputLimits::head_tail(head, tail));
    capture(bytes, options, CancellationToken::new()).await
}

#[tokio::test]
async fn head_and_tail() {
    for (input, limits, head, tail) in [
        ("", (4, 4), "", ""),
        ("abc", (4, 4), "abc", ""),
        ("abcdefgh", (4, 4), "abcdefgh", ""),
        ("abcdefghi", (4, 4), "abcd", "fghi"),
        ("abcdefghi", (4, 0), "abcd", ""),
        ("abcdefghi", (0, 4), "", "fghi"),
        ("abcd", (0, 4), "abcd", ""),
        ("abc", (0, 0), "", ""),
        ("aéz", (2, 1), "a", "z"),
        ("aé", (2, 1), "aé", ""),
        ("éaaé", (1, 1), "", ""),
        ("€a€", (3, 3), "€", "€"),
        ("€a€", (2, 2), "", ""),
        ("😀a😀", (3, 5), "", "a😀"),
    ] {
        let got = keep(input.as_bytes(), limits.0, limits.1).await;
        let shown =
            |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("no character is split");
        assert_eq!(
            (shown(&got.head).as_str(), shown(&got.tail).as_str()),
            (head, tail),
            "{input:?} {limits:?}"
        );
        assert_eq!(got.total_bytes, input.len() as u64, "{input:?}");
        assert_eq!(
            got.omitted_bytes(),
            (input.len() - head.len() - tail.len()) as u64,
            "{input:?}"
        );
    }
}

#[tokio::test]
async fn case_08_a_cut_inside_a_character() {
    let text = "a".repeat(29_999) + "é" + &"b".repeat(30_000);
    let got = keep(text.as_bytes(), 30_000, 100).await;
    assert_eq!(got.head.len(), 29_999);
    assert!(got.truncated() && !got.text().contains('\u{FFFD}'));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_not_trimmed_away() {
    let junk = [0x80u8; 20];
    let got = keep(&junk, 5, 5).await;
    assert_eq!(
        (got.head.len(), got.tail.len(), got.omitted_bytes()),
        (5, 5, 10)
    );
}

#[tokio::test]
async fn newlines_are_counted_in_what_was_left_out_too() {
    let text = "line\n".repeat(100_000);
    let got = keep(text.as_bytes(), 10, 10).await;
    assert_eq!((got.total_newlines, got.total_bytes), (100_000, 500_000));
}

proptest! {
    #[test]
    fn any_text_any_bounds_any_pieces(text in "[a\né€😀]{0,60}", head in 0usize..40, tail in 0usize..40, piece in 1usize..9) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
        let got = runtime.block_on(async {
            let (mut pipe, reader) = duplex(piece);
            let bytes = text.clone().into_bytes();
            let write = tokio::spawn(async move { pipe.write_all(&bytes).await });
            let options = CaptureOptions::new(OutputStream::Stderr, OutputLimits::head_tail(head, tail));
            let got = capture(reader, options, CancellationToken::new()).await;
            write.await.expect("join").expect("never a broken pipe");
            got
        });
        prop_assert_eq!(got.total_bytes, text.len() as u64);
        prop_assert_eq!(got.total_newlines, text.matches('\n').count() as u64);
        prop_assert!(text.as_bytes().starts_with(&got.head) && text.as_bytes().ends_with(&got.tail));
        prop_assert!(std::str::from_utf8(&got.head).is_ok() && std::str::from_utf8(&got.tail).is_ok());
        if text.len() <= head + tail {
            prop_assert_eq!(&got.head[..], text.as_bytes());
            prop_assert!(got.tail.is_empty());
        } else {
            prop_assert!(got.head.len() <= head && got.head.len() + 4 > head);
            prop_assert!(got.tail.len() <= tail && got.tail.len() + 4 > tail);
        }
    }

    #[test]
    fn the_newest_bytes_survive_any_number_of_laps(pieces in prop::collection::vec(1usize..200_000, 1..12), tail in 0usize..150_000) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
        let all: Vec<u8> = (0..pieces.iter().sum::<usize>()).map(|at| (at % 251) as u8 & 0x7F).collect();
        let got = runtime.block_on(async {
            let (mut pipe, reader) = duplex(1 << 20);
            let bytes = all.clone();
            tokio::spawn(async move {
                let mut rest = &bytes[..];
                for piece in pieces {
                    pipe.write_all(&rest[..piece]).await.expect("pipe");
                    tokio::task::yield_now().await;
                    rest = &rest[piece..];
                }
            });
            capture(reader, CaptureOptions::new(OutputStream::Stdout, OutputLimits::head_tail(10, tail)), CancellationToken::new()).await
        });
        if got.truncated() {
            prop_assert_eq!(&got.tail[..], &all[all.len() - tail..]);
        } else {
            prop_assert_eq!(&got.head[..], &all[..]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn case_01_a_silent_holder_gets_250_ms() {
    let (mut pipe, reader) = duplex(1024);
    pipe.write_all(b"done\n").await.expect("write");
    let ended = CancellationToken::new();
    ended.cancel();
    let begun = Instant::now();
    let got = capture(
        reader,
        CaptureOptions::new(OutputStream::Stdout, OutputLimits::default()),
        ended,
    )
    .await;
    assert_eq!(&got.head[..], b"done\n");
    assert_eq!(begun.elapsed(), Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn before_the_end_silence_is_no_end() {
    let (mut pipe, reader) = duplex(1024);
    let ended = CancellationToken::new();
    let process = ended.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        pipe.write_all(b"late").await.expect("write");
        process.cancel();
        tokio::time::sleep(Duration::from_millis(200)).await;
        pipe.write_all(b" and later").await.expect("write");
    });
    let got = capture(
        reader,
        CaptureOptions::new(OutputStream::Stdout, OutputLimits::default()),
        ended,
    )
    .await;
    assert_eq!(&got.head[..], b"late and later");
}

/// What every read brings.
enum Source {
    /// More, at once: as `yes` in the background.
    Endless,
    /// An error.
    Broken,
}

impl AsyncRead for Source {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        match *self {
            Self::Endless => {
                let room = buffer.initialize_unfilled();
                room.fill(b'y');
                let count = room.len();
                buffer.advance(count);
                std::task::Poll::Ready(Ok(()))
            }
            Self::Broken => std::task::Poll::Ready(Err(io::Error::other("the transport broke"))),
        }
    }
}

#[tokio::test]
async fn case_03_a_holder_that_keeps_writing_gets_250_ms() {
    let ended = CancellationToken::new();
    ended.cancel();
    let begun = Instant::now();
    let options = CaptureOptions::new(OutputStream::Stdout, OutputLimits::head_tail(100, 100));
    let got = capture(Source::Endless, options, ended).await;
    assert!(
        begun.elapsed() >= DRAIN && begun.elapsed() < DRAIN * 8,
        "{:?}",
        begun.elapsed()
    );
    assert!(got.truncated() && got.head.len() == 100 && got.tail.len() == 100);
}

#[tokio::test]
async fn a_read_error_keeps_what_came_before() {
    let reader = tokio::io::AsyncReadExt::chain(&b"kept"[..], Source::Broken);
    let got = capture(
        reader,
        CaptureOptions::new(OutputStream::Stdout, OutputLimits::default()),
        CancellationToken::new(),
    )
    .await;
    assert_eq!(&got.head[..], b"kept");
}

#[tokio::test]
async fn live_chunks_are_offered_never_awaited() {
    let (chunks, mut received) = mpsc::channel(2);
    let text = "x".repeat(100_000);
    let options = CaptureOptions::new(OutputStream::Stderr, OutputLimits::default()).live(chunks);
    let got = capture(text.as_bytes(), options, CancellationToken::new()).await;
    assert_eq!(
        got.total_bytes, 100_000,
        "nobody received, and nothing waited"
    );
    let first = received.recv().await.expect("the first fits");
    assert_eq!(
        (first.stream, first.bytes.len()),
        (OutputStream::Stderr, 16 << 10)
    );

    let (chunks, received) = mpsc::channel(1);
    drop(received);
    let options = CaptureOptions::new(OutputStream::Stdout, OutputLimits::default()).live(chunks);
    assert_eq!(
        capture(&b"closed"[..], options, CancellationToken::new())
            .await
            .total_bytes,
        6
    );
}

struct Spooled {
    _root: tempfile::TempDir,
    spool: Spool,
    id: OutputId,
}

impl Spooled {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("tempdir");
        Self {
            spool: Spool::new(root.path().join("spool")),
            _root: root,
            id: OutputId::for_call("call_1"),
        }
    }

    fn options(&self, limits: OutputLimits) -> CaptureOptions {
        let writer = self
            .spool
            .writer(&self.id, OutputStream::Stdout, limits.spool_cap);
        CaptureOptions::new(OutputStream::Stdout, limits).spool(writer)
    }

    /// What the file holds; `None` = no file.
    fn file(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = self.spool.open(&self.id, OutputStream::Stdout).ok()?;
        io::Read::read_to_end(&mut file, &mut bytes).expect("read");
        Some(bytes)
    }
}

#[tokio::test]
async fn the_spool_holds_the_stream_from_its_first_byte() {
    let stream: Vec<u8> = (0..3_000_000u32).map(|at| (at % 251) as u8).collect();
    for (len, after, cap, expect) in [
        (0, 0, 100, Some(0)),
        (5, 0, 100, Some(5)),
        (5, 5, 100, None),
        (6, 5, 100, Some(6)),
        (101, 5, 100, Some(100)),
        (101, 50, 10, Some(10)),
        (10, 50, 10, None),
        (3_000_000, 70_000, 64 << 20, Some(3_000_000)),
        (3_000_000, 70_000, 2_345_678, Some(2_345_678)),
        (3_000_000, 0, 0, Some(0)),
    ] {
        let spooled = Spooled::new();
        let limits = OutputLimits::head_tail(100_000, 1000).spool(after, cap);
        let got = capture(
            &stream[..len],
            spooled.options(limits),
            CancellationToken::new(),
        )
        .await;
        let file = spooled.file();
        assert_eq!(
            file.as_ref().map(Vec::len),
            expect,
            "{len} bytes, spool after {after}, cap {cap}"
        );
        assert_eq!(
            got.spooled_bytes,
            expect.unwrap_or(0) as u64,
            "{len} bytes, spool after {after}, cap {cap}"
        );
        assert_eq!(got.total_bytes, len as u64);
        assert!(
            stream.starts_with(&file.unwrap_or_default()),
            "{len} bytes, spool after {after}, cap {cap}"
        );
    }
}

#[tokio::test]
async fn a_log_is_readable_while_it_grows() {
    let spooled = Spooled::new();
    let (mut pipe, reader) = duplex(1024);
    let options = spooled.options(OutputLimits::default().spool(0, 1 << 20));
    let capturing = tokio::spawn(capture(reader, options, CancellationToken::new()));
    let mut expect = Vec::new();
    for line in ["", "one\n", "two\n"] {
        pipe.write_all(line.as_bytes()).await.expect("write");
        expect.extend_from_slice(line.as_bytes());
        let deadline = Instant::now() + Duration::from_secs(10);
        while spooled.file().as_ref() != Some(&expect) {
            assert!(Instant::now() < deadline, "{:?} is not in the log", line);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    drop(pipe);
    assert_eq!(capturing.await.expect("join").spooled_bytes, 8);
}

#[tokio::test]
async fn a_reused_id_is_replaced_also_by_short_output() {
    let spooled = Spooled::new();
    let limits = OutputLimits::default().spool(3, 100);
    for (output, file) in [
        ("long enough", Some("long enough")),
        ("other text", Some("other text")),
        ("ab", None),
        ("", None),
    ] {
        capture(
            output.as_bytes(),
            spooled.options(limits),
            CancellationToken::new(),
        )
        .await;
        assert_eq!(
            spooled.file(),
            file.map(|text| text.as_bytes().to_vec()),
            "{output:?}"
        );
    }
}

#[tokio::test]
async fn a_spool_that_fails_leaves_the_capture_whole() {
    let root = tempfile::NamedTempFile::new().expect("a file where the folder should be");
    let spool = Spool::new(root.path());
    let limits = OutputLimits::head_tail(1000, 1000).spool(0, 1 << 20);
    let writer = spool.writer(
        &OutputId::for_call("call_1"),
        OutputStream::Stdout,
        limits.spool_cap,
    );
    let text = "x".repeat(2_000_000);
    let options = CaptureOptions::new(OutputStream::Stdout, limits).spool(writer);
    let got = capture(text.as_bytes(), options, CancellationToken::new()).await;
    assert_eq!(
        (got.total_bytes, got.spooled_bytes, got.head.len()),
        (2_000_000, 0, 1000)
    );
}
