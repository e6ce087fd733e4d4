//! A bounded look at a text file, for the element that stands for it in a tool result or message.

use crate::is_text;

/// How much of a text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExcerptLimits {
    /// Bytes. Default: 50 KiB.
    pub bytes: usize,
    /// Lines. Default: 2 000.
    pub lines: usize,
}

impl ExcerptLimits {
    /// Limits of `bytes` and `lines`, whichever is reached first.
    pub const fn new(bytes: usize, lines: usize) -> Self {
        Self { bytes, lines }
    }
}

impl Default for ExcerptLimits {
    fn default() -> Self {
        Self::new(50 * 1024, 2_000)
    }
}

/// The start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excerpt<'a> {
    /// Whole lines, unless the first alone is too long: that is cut on a character boundary.
    pub text: &'a str,
    /// Lines shown.
    pub lines: usize,
    /// Bytes of the whole text.
    pub total_bytes: usize,
    /// Whether there is more.
    pub truncated: bool,
}

/// The start of a text within limits; `None` for what is not text (invalid UTF-8, or a NUL).
///
/// ```
/// use sixb_artifacts::{ExcerptLimits, excerpt};
/// let shown = excerpt(b"one\ntwo\nthree\n", ExcerptLimits::new(100, 2)).expect("text");
/// assert_eq!((shown.text, shown.lines, shown.truncated), ("one\ntwo\n", 2, true));
/// ```
pub fn excerpt(bytes: &[u8], limits: ExcerptLimits) -> Option<Excerpt<'_>> {
    let text = std::str::from_utf8(bytes).ok().filter(|_| is_text(bytes))?;
    let (mut end, mut lines) = (0, 0);
    for line in text.split_inclusive('\n').take(limits.lines) {
        if end + line.len() > limits.bytes {
            if end == 0 {
                end = line.floor_char_boundary(limits.bytes);
                lines = 1;
            }
            break;
        }
        end += line.len();
        lines += 1;
    }
    Some(Excerpt {
        text: &text[..end],
        lines,
        total_bytes: bytes.len(),
        truncated: end < text.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_and_lines_bound_it() {
        for (text, bytes, lines, expect) in [
            ("a\nb\nc", 100, 100, Some(("a\nb\nc", 3, false))),
            ("a\nb\nc", 100, 2, Some(("a\nb\n", 2, true))),
            ("a\nb\nc", 3, 100, Some(("a\n", 1, true))),
            ("a\nb\nc", 4, 100, Some(("a\nb\n", 2, true))),
            ("éé\n", 3, 100, Some(("é", 1, true))),
            ("", 3, 100, Some(("", 0, false))),
            ("a\0b", 100, 100, None),
        ] {
            let got = excerpt(text.as_bytes(), ExcerptLimits::new(bytes, lines));
            let got = got.map(|got| (got.text, got.lines, got.truncated));
            assert_eq!(got, expect, "{text:?} within {bytes} bytes, {lines} lines");
        }
        assert_eq!(excerpt(b"\xff", ExcerptLimits::default()), None);
        let long = "x".repeat(60_000);
        assert_eq!(
            excerpt(long.as_bytes(), ExcerptLimits::default())
                .expect("text")
                .text
                .len(),
            51_200
        );
        let many = "x\n".repeat(3_000);
        assert_eq!(
            excerpt(many.as_bytes(), ExcerptLimits::default())
                .expect("text")
                .lines,
            2_000
        );
    }

    proptest! {
        #[test]
        fn it_is_a_start_within_limits(text in "[aé\n]{0,80}", bytes in 0_usize..90, lines in 0_usize..20) {
            let got = excerpt(text.as_bytes(), ExcerptLimits::new(bytes, lines)).expect("text");
            prop_assert!(text.starts_with(got.text) && got.text.len() <= bytes);
            prop_assert_eq!(got.text.split_inclusive('\n').count().max(got.lines), got.lines);
            prop_assert_eq!(got.truncated, got.text.len() < text.len());
        }
    }
}
