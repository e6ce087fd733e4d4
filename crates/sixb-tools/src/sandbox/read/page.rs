//! Which part of the bytes at hand is one page: pure, and the same for every source.

use memchr::{memchr, memchr_iter};

/// Most lines of a page.
pub(super) const MAX_LINES: u64 = 2_000;
/// Most bytes of a page: 50 KiB.
pub(super) const MAX_BYTES: usize = 51_200;
/// What must be at hand to cut a page: one byte more tells whether the file goes on.
pub(super) const WINDOW: usize = MAX_BYTES + 1;

/// The start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page<'a> {
    pub(super) text: &'a str,
    /// Lines begun in `text`.
    pub(super) lines: u64,
    /// The file goes on after `text`.
    pub(super) more: bool,
    /// `text` ends inside its only line.
    pub(super) clipped: bool,
}

/// The bytes are no text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotText;

/// The first `limit` lines of `bytes`, at most [`MAX_BYTES`]. Fewer than [`WINDOW`] bytes reach to the end of the file.
///
/// Lines stay whole, unless the first alone is too long: then it ends between two characters.
pub(super) fn page(bytes: &[u8], limit: u64) -> Result<Page<'_>, NotText> {
    let at_end = bytes.len() < WINDOW;
    let (mut lines, mut end) = (0, 0);
    for newline in memchr_iter(b'\n', &bytes[..bytes.len().min(MAX_BYTES)]) {
        if lines == limit {
            break;
        }
        lines += 1;
        end = newline + 1;
    }
    let mut clipped = false;
    if lines < limit && at_end && end < bytes.len() {
        lines += 1;
        end = bytes.len();
    } else if lines == 0 && !at_end {
        lines = 1;
        end = clip(bytes);
        clipped = true;
    }
    let text = &bytes[..end];
    if memchr(0, text).is_some() {
        return Err(NotText);
    }
    Ok(Page {
        text: std::str::from_utf8(text).map_err(|_| NotText)?,
        lines,
        more: end < bytes.len(),
        clipped,
    })
}

/// The last place up to [`MAX_BYTES`] that is not inside a character. Bytes that are no UTF-8 anyway are cut anywhere.
fn clip(bytes: &[u8]) -> usize {
    let inside = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (MAX_BYTES - 3..=MAX_BYTES)
        .rev()
        .find(|at| !inside(*at))
        .unwrap_or(MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(bytes: impl AsRef<[u8]>, limit: u64, expect: (usize, u64, bool, bool)) {
        let bytes = bytes.as_ref();
        let window = &bytes[..bytes.len().min(WINDOW)];
        let page = page(window, limit).expect("text");
        assert_eq!(
            (page.text.len(), page.lines, page.more, page.clipped),
            expect,
            "{} bytes, {limit}",
            bytes.len()
        );
    }

    #[test]
    fn a_page_is_whole_lines() {
        check("", 10, (0, 0, false, false));
        check("a\nb\n", 10, (4, 2, false, false));
        check("a\nb", 10, (3, 2, false, false));
        check("a\nb\n", 2, (4, 2, false, false));
        check("a\nb\nc", 2, (4, 2, true, false));
        check("\n\n", 1, (1, 1, true, false));
        check("\u{feff}a\r\nb", 1, (6, 1, true, false));
        check("x".repeat(MAX_BYTES), 1, (MAX_BYTES, 1, false, false));
        check("x".repeat(MAX_BYTES) + "\n", 1, (MAX_BYTES, 1, true, true));
        check(
            format!("a\n{}", "x".repeat(MAX_BYTES)),
            9,
            (2, 1, true, false),
        );
        check(
            "line\n".repeat(20_000),
            MAX_LINES,
            (10_000, 2_000, true, false),
        );
        check(
            format!("{}\n", "y".repeat(99)).repeat(600),
            MAX_LINES,
            (51_200, 512, true, false),
        );
    }

    #[test]
    fn case_33_a_character_at_the_edge_is_not_binary() {
        for pad in MAX_BYTES - 8..=MAX_BYTES {
            let text = format!("{}가나다🦀", "a".repeat(pad));
            let bytes = &text.as_bytes()[..text.len().min(WINDOW)];
            let page = page(bytes, 1).expect("text");
            assert!(
                page.text.len() > MAX_BYTES - 4 && text.starts_with(page.text),
                "{pad}"
            );
        }
        let text = format!("{}가나다", "a".repeat(8190));
        assert_eq!(page(text.as_bytes(), 1).expect("text").text, text);
    }

    #[test]
    fn binary_is_refused_only_where_it_is_read() {
        for bytes in [
            &b"a\0b"[..],
            b"a\xff\n",
            b"caf\xe9\n",
            b"\xf0\x9f\xa6",
            b"\xed\xa0\x80",
        ] {
            assert_eq!(page(bytes, 9), Err(NotText), "{bytes:?}");
        }
        assert!(page(b"text\n\0", 1).is_ok());
        let huge = [&[b'a'; MAX_BYTES - 1][..], &[0xff, 0xff, 0xff]].concat();
        assert_eq!(page(&huge[..WINDOW], 1), Err(NotText));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn pages_put_together_are_the_file(
            lines in prop::collection::vec(("[a-z가🦀]{0,40}", 1_usize..3_000, prop::sample::select(vec!["\n", "\r\n"])), 0..12),
            limit in 1_u64..5,
        ) {
            let text: String = lines.iter().map(|(part, times, end)| part.repeat(*times) + end).collect();
            let (mut at, mut read) = (0, String::new());
            while at < text.len() {
                let window = &text.as_bytes()[at..text.len().min(at + WINDOW)];
                let page = page(window, limit).expect("text");
                prop_assert!(!page.text.is_empty() && page.text.len() <= MAX_BYTES && page.lines <= limit);
                prop_assert!(page.clipped || page.text.ends_with('\n'));
                read.push_str(page.text);
                at += page.text.len();
                prop_assert_eq!(page.more, at < text.len());
            }
            prop_assert_eq!(read, text);
        }
    }
}
