//! Cuts the middle out of a text: the head says what ran, the tail says how it ended and gets most of the room.

use std::borrow::Cow;

use super::CAP;

/// Characters from the start.
const HEAD: usize = CAP / 4;
/// Characters kept free for the line in between.
const NOTE: usize = 200;

/// What is not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Omitted {
    pub(super) bytes: u64,
    pub(super) lines: u64,
}

/// A text to cut, of which the middle may be gone already.
pub(super) struct Parts<'a> {
    /// The start; the whole text where nothing is gone.
    pub(super) head: &'a str,
    /// The end, where something is gone.
    pub(super) tail: Option<&'a str>,
    /// What is gone.
    pub(super) gap: Omitted,
    /// Added to the line in between.
    pub(super) note: Cow<'a, str>,
}

/// Head, one line that tells what is left out, tail: at most [`CAP`] characters.
pub(super) fn head_tail(parts: Parts<'_>) -> String {
    let room = CAP - NOTE;
    let head = start_of(parts.head, HEAD.min(room));
    let rest = &parts.head[head.len()..];
    let tail_room = room - head.chars().count();
    let (tail, hidden) = match parts.tail {
        None => {
            let tail = end_of(rest, tail_room);
            (tail, [&rest[..rest.len() - tail.len()], ""])
        }
        Some(text) => {
            let tail = end_of(text, tail_room);
            (tail, [rest, &text[..text.len() - tail.len()]])
        }
    };
    let omitted = hidden.iter().fold(parts.gap, |sum, text| Omitted {
        bytes: sum.bytes + text.len() as u64,
        lines: sum.lines + super::newlines(text.as_bytes()),
    });
    let line_end = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!(
        "{head}{line_end}[… {} lines, {} bytes left out{} …]\n{tail}",
        omitted.lines, omitted.bytes, parts.note
    )
}

/// At most `max` characters from the start: whole lines, unless that would give up half of them.
fn start_of(text: &str, max: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(max) else {
        return text;
    };
    match text[..end].rfind('\n') {
        Some(line_end) if line_end >= end / 2 => &text[..=line_end],
        _ => &text[..end],
    }
}

/// At most `max` characters from the end: whole lines, unless that would give up half of them.
fn end_of(text: &str, max: usize) -> &str {
    if max == 0 {
        return "";
    }
    let Some((start, _)) = text
        .char_indices()
        .rev()
        .nth(max - 1)
        .filter(|(start, _)| *start > 0)
    else {
        return text;
    };
    if text.as_bytes()[start - 1] == b'\n' {
        return &text[start..];
    }
    let end = &text[start..];
    match end.find('\n') {
        Some(line_end) if line_end < end.len() / 2 => &end[line_end + 1..],
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(text: &str) -> String {
        head_tail(Parts {
            head: text,
            tail: None,
            gap: Omitted::default(),
            note: "".into(),
        })
    }

    #[test]
    fn one_endless_line_is_cut_too() {
        let cut = whole(&format!("START{}END", "x".repeat(1_000_000)));
        assert!(cut.starts_with("STARTxxx") && cut.ends_with("xxxEND"));
        assert!(
            cut.contains("x\n[… 0 lines, 980208 bytes left out …]\nx"),
            "{}",
            &cut[4_990..5_080]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn shown_and_omitted_add_up(lines in prop::collection::vec("[a-zé가]{0,300}", 200..400)) {
            let text = lines.join("\n");
            prop_assume!(text.chars().count() > CAP);
            let cut = whole(&text);
            prop_assert!(cut.chars().count() <= CAP);
            let (head, rest) = cut.split_once("[… ").expect("note");
            let (note, tail) = rest.split_once("]\n").expect("note end");
            let head = if text.starts_with(head) { head } else { head.strip_suffix('\n').expect("line end") };
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            let hidden = &text[head.len()..text.len() - tail.len()];
            let expect = format!("{} lines, {} bytes left out …", hidden.matches('\n').count(), hidden.len());
            prop_assert_eq!(note, expect);
        }
    }
}
