//! Text of strangers, made fit to show: without what only a terminal or a renderer would read, and no longer than asked.

use crate::{
    response::{SearchResult, TextSource},
    unseen::is_unseen,
};

/// A text that was cut to its bound, or was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) truncated: bool,
}

/// The first text of a page of which something is left when it is cleaned.
pub(super) fn best(page: &SearchResult, most: usize) -> Option<(TextSource, Shown)> {
    // Joiners are kept within a text, but alone they are none.
    let seen = |c: char| !c.is_whitespace() && !matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe0f}');
    let (source, text) = page.texts().find(|(_, text)| clean(text).any(seen))?;
    Some((source, block(&text, most)))
}

/// Cleans a text of several lines and cuts it after `most` characters.
pub(super) fn block(text: &str, most: usize) -> Shown {
    let mut clean = clean(text);
    let mut shown: String = clean.by_ref().take(most).collect();
    let truncated = clean.next().is_some();
    shown.truncate(shown.trim_end().len());
    Shown {
        text: shown,
        truncated,
    }
}

/// Cleans a text to one line of at most `most` characters.
pub(super) fn line(text: &str, most: usize) -> String {
    let flat: String = clean(text)
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect();
    flat.trim().chars().take(most).collect()
}

/// Line ends become `\n`; what must not be seen goes.
fn clean(text: &str) -> impl Iterator<Item = char> {
    let mut after_return = false;
    let clean = text.chars().filter_map(move |c| {
        let second = after_return && c == '\n';
        after_return = c == '\r';
        match c {
            '\n' if second => None,
            '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => Some('\n'),
            '\n' | '\t' => Some(c),
            c if c.is_control() || is_unseen(c) => None,
            c => Some(c),
        }
    });
    // Only now is it known what the text begins with.
    clean.skip_while(|c| c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_renderer_reads_goes() {
        for (text, expect) in [
            ("a\u{1b}[31mb\u{9b}c", "a[31mbc"),
            ("\u{202e}evil\u{202c} \u{2067}x\u{2069}\u{200f}", "evil x"),
            ("a\r\nb\rc\u{2028}d", "a\nb\nc\nd"),
            ("\u{feff}x\u{200b}y\0", "xy"),
            ("hi\u{e0069}\u{e0067}\u{e006e}", "hi"),
            ("\t\n  x \n", "x"),
            ("\u{200b} \u{ad}\n x", "x"),
            (
                "a\u{ad}\u{34f}\u{115f}\u{1160}\u{180e}\u{3164}\u{ffa0}b",
                "ab",
            ),
            ("a\u{17b4}\u{17b5}\u{1d173}\u{1d17a}\u{fe00}\u{fe0e}b", "ab"),
            ("❤\u{fe0f}", "❤\u{fe0f}"),
            (
                "👩\u{200d}🚀 می\u{200c}خواهم",
                "👩\u{200d}🚀 می\u{200c}خواهم",
            ),
        ] {
            assert_eq!(block(text, 100).text, expect, "{text:?}");
        }
        assert_eq!(line(" a\n b\u{202e}\tc ", 4), "a  b");
    }

    #[test]
    fn cuts_are_between_characters_and_told() {
        for (text, most, expect, truncated) in [
            ("añ😀b", 3, "añ😀", true),
            ("añ😀", 3, "añ😀", false),
            ("abc\u{202e}", 3, "abc", false),
            ("abc", 0, "", true),
            ("", 0, "", false),
        ] {
            let shown = block(text, most);
            assert_eq!(
                (shown.text.as_str(), shown.truncated),
                (expect, truncated),
                "{text:?} {most}"
            );
        }
    }
}
