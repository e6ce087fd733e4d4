//! Undoes what a terminal would: escape sequences vanish, and a line rewritten by `\r` keeps its last form.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

const ESC: u8 = 0x1b;
/// A text sequence (a window title, a link) longer than this is no sequence but a stray escape.
const MAX_SEQUENCE: usize = 4096;

/// The text that a terminal would show, line by line. Borrowed when there is nothing to undo.
pub(super) fn settle(text: &str) -> Cow<'_, str> {
    if memchr2(ESC, b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    match strip_escapes(text) {
        Cow::Borrowed(text) => collapse_rewrites(text),
        Cow::Owned(text) => Cow::Owned(collapse_rewrites(&text).into_owned()),
    }
}

fn strip_escapes(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr(ESC, text.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    let mut clean = String::with_capacity(text.len());
    clean.push_str(&text[..first]);
    let mut rest = &text[first..];
    while let Some(after) = rest.strip_prefix('\x1b') {
        rest = &after[sequence_len(after.as_bytes())..];
        let next = memchr(ESC, rest.as_bytes()).unwrap_or(rest.len());
        clean.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    Cow::Owned(clean)
}

/// Length of the escape sequence whose `ESC` was just read. Sequences are ASCII, so this is a character boundary.
fn sequence_len(after: &[u8]) -> usize {
    let run = |from: usize, of: fn(&u8) -> bool| {
        from + after[from..].iter().take_while(|byte| of(byte)).count()
    };
    let one = |at: usize, of: fn(&u8) -> bool| at + usize::from(after.get(at).is_some_and(of));
    let parameter = |byte: &u8| (0x30..=0x3f).contains(byte);
    let intermediate = |byte: &u8| (0x20..=0x2f).contains(byte);
    match after.first() {
        // CSI: colours, cursor, erase.
        Some(b'[') => one(run(run(1, parameter), intermediate), |byte| {
            (0x40..=0x7e).contains(byte)
        }),
        // OSC, DCS, SOS, PM, APC: a text up to BEL or ESC \, never beyond its line.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => text_sequence_len(after).unwrap_or(1),
        // Character sets and the like, else one more byte.
        Some(_) => one(run(0, intermediate), |byte| (0x30..=0x7e).contains(byte)),
        None => 0,
    }
}

fn text_sequence_len(after: &[u8]) -> Option<usize> {
    let bounded = &after[..after.len().min(MAX_SEQUENCE)];
    let end = bounded
        .iter()
        .position(|byte| matches!(*byte, 0x07 | ESC | b'\n'))?;
    match bounded[end] {
        0x07 => Some(end + 1),
        ESC if after.get(end + 1) == Some(&b'\\') => Some(end + 2),
        _ => None,
    }
}

/// `\r\n` is a line end. Any other `\r` goes back to the start of the line: what was written last there stays.
fn collapse_rewrites(text: &str) -> Cow<'_, str> {
    let bare = |line: &str| memchr(b'\r', line.trim_end_matches(['\r', '\n']).as_bytes()).is_some();
    if !text
        .split_inclusive('\n')
        .any(|line| bare(line) || line.ends_with('\r') || line.ends_with("\r\r\n"))
    {
        return Cow::Borrowed(text);
    }
    let mut settled = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\r', '\n']);
        settled.push_str(
            body.rsplit('\r')
                .find(|segment| !segment.is_empty())
                .unwrap_or_default(),
        );
        if line.ends_with('\n') {
            settled.push_str(if !bare(line) && line.ends_with("\r\n") {
                "\r\n"
            } else {
                "\n"
            });
        }
    }
    Cow::Owned(settled)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_14_the_last_form_of_a_line_stays() {
        for (input, expect) in [
            ("\r1%\r50%\r100%\n\x1b[31mred\x1b[0m\n", "100%\nred\n"),
            ("plain\n", "plain\n"),
            ("a\r\nb\r\n", "a\r\nb\r\n"),
            ("1\r2\r\nnext\r\n", "2\nnext\r\n"),
            ("50%\r", "50%"),
            ("a\r\r\n", "a\r\n"),
            ("\r\n", "\r\n"),
            ("a\x1b[2K\rb", "b"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]no end\nnext", "no end\nnext"),
            ("\x1b(B\x1b=\x1b7x", "x"),
            ("\x1b[38;5;1m가\x1b[m", "가"),
            ("cut \x1b", "cut "),
            ("cut \x1b[", "cut "),
            ("cut \x1b[3", "cut "),
            ("\x1bé", "é"),
        ] {
            assert_eq!(settle(input), expect, "{input:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_settles_without_escapes(text in "[a\u{1b}\\[\\]\r\n;0-9mé\\\\\u{7}]{0,60}") {
            let settled = settle(&text);
            prop_assert!(!settled.contains('\x1b'));
            prop_assert_eq!(settled.matches('\n').count() <= text.matches('\n').count(), true);
            let again = settle(&settled).into_owned();
            prop_assert_eq!(again, settled.into_owned());
        }
    }
}
