//! Whether text is an SVG document: its first element is `<svg`.

/// Text looked at: what stands before the first element is short.
const HEAD: usize = 4 * 1024;

pub(super) fn is_svg(text: &str) -> bool {
    let mut rest = &text[..text.floor_char_boundary(HEAD)];
    rest = rest.trim_start_matches('\u{feff}');
    loop {
        rest = rest.trim_start();
        let end = if rest.starts_with("<?") {
            rest.find("?>").map(|at| at + 2)
        } else if rest.starts_with("<!--") {
            rest.find("-->").map(|at| at + 3)
        } else if rest.starts_with("<!") {
            rest.find('>').map(|at| at + 1)
        } else {
            return rest
                .strip_prefix("<svg")
                .is_some_and(|rest| rest.starts_with([' ', '\t', '\r', '\n', '>', '/']));
        };
        match end {
            Some(end) => rest = &rest[end..],
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_element_counts() {
        for (text, expect) in [
            ("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", true),
            (
                "\u{feff}<?xml version=\"1.0\"?>\n<!-- a > b -->\n<!DOCTYPE svg>\n<svg>",
                true,
            ),
            ("<svgx>", false),
            ("<html><svg>", false),
            ("an <svg> in prose", false),
            ("<!-- <svg> ", false),
            ("", false),
        ] {
            assert_eq!(is_svg(text), expect, "{text}");
        }
    }
}
