//! Drops the white space between the tokens of valid JSON.

use memchr::memchr2;

/// The start of a document without white space.
#[derive(Debug, Default)]
pub(super) struct Compact {
    /// At most as many characters as asked for; cut anywhere unless `complete`.
    pub(super) text: String,
    /// Whether that is the whole document.
    pub(super) complete: bool,
    /// Elements of the root that are whole in `text` and followed by another.
    pub(super) elements: u64,
    /// Where the last of them ends, in bytes of `text`.
    pub(super) elements_end: usize,
    /// The same, in bytes of the document.
    pub(super) source_end: usize,
}

/// The first `max` characters of the compact form of `json`, which must be valid or the start of what is.
pub(super) fn compact(json: &str, max: usize) -> Compact {
    let bytes = json.as_bytes();
    let mut out = Compact::default();
    let (mut at, mut depth, mut room) = (0, 0_u32, max);
    while at < bytes.len() {
        let byte = bytes[at];
        let token = match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {
                at += 1;
                continue;
            }
            b'"' => &json[at..string_end(bytes, at)],
            _ => &json[at..=at],
        };
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            b',' if depth == 1 => {
                out.elements += 1;
                out.elements_end = out.text.len();
                out.source_end = at;
            }
            _ => {}
        }
        match token.char_indices().nth(room) {
            Some((cut, _)) => {
                out.text.push_str(&token[..cut]);
                return out;
            }
            None => {
                out.text.push_str(token);
                room -= token.chars().count();
            }
        }
        at += token.len();
    }
    out.complete = true;
    out
}

/// Where the string that begins at `start` ends, its quotes included.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr2(b'"', b'\\', &bytes[at..]) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_only_between_tokens() {
        for (json, expect) in [
            ("[ ]", "[]"),
            (
                " { \"a b\" : [ 1 , 2.50 ] , \"c\\\"  d\" : null } ",
                "{\"a b\":[1,2.50],\"c\\\"  d\":null}",
            ),
            ("[\"\\\\\" , \"x \"]", "[\"\\\\\",\"x \"]"),
        ] {
            let compact = compact(json, 1_000);
            assert_eq!(
                (compact.text.as_str(), compact.complete),
                (expect, true),
                "{json}"
            );
        }
    }

    #[test]
    fn the_cut_counts_characters_and_whole_elements() {
        let cut = compact("[ [1, 2], \"éé\", 3 ]", 9);
        assert_eq!((cut.text.as_str(), cut.complete), ("[[1,2],\"é", false));
        assert_eq!((cut.elements, &cut.text[..cut.elements_end]), (1, "[[1,2]"));
        assert!(compact("[1,2]", 5).complete && !compact("[1,2]", 4).complete);
    }
}
