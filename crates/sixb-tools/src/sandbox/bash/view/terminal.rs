//! Undoes what a terminal would: escape sequences vanish, in their 7-bit and their C1 form, and a line rewritten by `\r` keeps its last form.

use std::borrow::Cow;

use memchr::{memchr, memchr2_iter, memchr3};

const ESC: u8 = 0x1b;
/// The first byte of the C1 controls: single characters for what is `ESC` and a letter otherwise.
const C1: u8 = 0xc2;
/// A text sequence (a window title, a link) longer than this is no sequence but a stray escape.
const MAX_SEQUENCE: usize = 4096;

/// The text that a terminal would show, line by line. Borrowed when there is nothing to undo.
pub(super) fn settle(text: &str) -> Cow<'_, str> {
    if memchr3(ESC, C1, b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    match strip_escapes(text) {
        Cow::Borrowed(text) => collapse_rewrites(text),
        Cow::Owned(text) => Cow::Owned(collapse_rewrites(&text).into_owned()),
    }
}

fn strip_escapes(text: &str) -> Cow<'_, str> {
    let Some(first) = next_sequence(text) else {
        return Cow::Borrowed(text);
    };
    let mut clean = String::with_capacity(text.len());
    clean.push_str(&text[..first]);
    let mut rest = &text[first..];
    while !rest.is_empty() {
        rest = &rest[sequence_len(rest.as_bytes())..];
        let next = next_sequence(rest).unwrap_or(rest.len());
        clean.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    Cow::Owned(clean)
}

fn next_sequence(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr2_iter(ESC, C1, bytes).find(|at| begins_sequence(&bytes[*at..]))
}

/// Among the C1 controls only those that begin or end a sequence: others, like U+0085, are text to many programs.
fn begins_sequence(bytes: &[u8]) -> bool {
    matches!(bytes, [ESC, ..] | [C1, 0x90 | 0x98 | 0x9b..=0x9f, ..])
}

/// Length of the sequence that `bytes` begins with. It ends on a character boundary.
fn sequence_len(bytes: &[u8]) -> usize {
    let run = |from: usize, of: fn(&u8) -> bool| {
        from + bytes[from..].iter().take_while(|byte| of(byte)).count()
    };
    let one = |at: usize, of: fn(&u8) -> bool| at + usize::from(bytes.get(at).is_some_and(of));
    let parameter = |byte: &u8| (0x30..=0x3f).contains(byte);
    let intermediate = |byte: &u8| (0x20..=0x2f).contains(byte);
    match bytes {
        // CSI: colours, cursor, erase.
        [ESC, b'[', ..] | [C1, 0x9b, ..] => one(run(run(2, parameter), intermediate), |byte| {
            (0x40..=0x7e).contains(byte)
        }),
        // DCS, SOS, OSC, PM, APC: a text up to BEL or ST, never beyond its line.
        [ESC, b'P' | b'X' | b']' | b'^' | b'_', text @ ..]
        | [C1, 0x90 | 0x98 | 0x9d..=0x9f, text @ ..] => 2 + text_len(text).unwrap_or(0),
        // ST without a text.
        [C1, ..] => 2,
        // Character sets and the like, else one more byte.
        _ => one(run(1, intermediate), |byte| (0x30..=0x7e).contains(byte)),
    }
}

/// Length of the text of a sequence, its end included.
fn text_len(text: &[u8]) -> Option<usize> {
    let bounded = text.len().min(MAX_SEQUENCE);
    let end = (0..bounded)
        .find(|at| matches!(text[*at], 0x07 | b'\n') || begins_sequence(&text[*at..]))?;
    match text[end..] {
        [0x07, ..] => Some(end + 1),
        [ESC, b'\\', ..] | [C1, 0x9c, ..] => Some(end + 2),
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
            ("\u{9b}31mred\u{9b}0m", "red"),
            ("\u{9d}0;title\x07text\u{9d}0;title\u{9c}text", "texttext"),
            ("\x1b]0;title\u{9c}text", "text"),
            (
                "\u{90}q\x1b\\a\u{98}b\u{9c}c\u{9e}d\u{9c}e\u{9f}f\u{9c}g",
                "aceg",
            ),
            ("\u{9d}no end\nnext", "no end\nnext"),
            ("stray\u{9c} end\u{9b}", "stray end"),
            ("\u{85}«é»\u{a0}\u{9b}K가", "\u{85}«é»\u{a0}가"),
        ] {
            assert_eq!(settle(input), expect, "{input:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_settles_without_escapes(text in "[a\u{1b}\u{90}\u{9b}-\u{9d}\u{a0}\\[\\]\r\n;0-9mé\\\\\u{7}]{0,60}") {
            let settled = settle(&text);
            let left = settled.contains(['\x1b', '\u{90}', '\u{9b}', '\u{9c}', '\u{9d}']);
            prop_assert!(!left);
            prop_assert_eq!(settled.matches('\n').count() <= text.matches('\n').count(), true);
            let again = settle(&settled).into_owned();
            prop_assert_eq!(again, settled.into_owned());
        }
    }
}
