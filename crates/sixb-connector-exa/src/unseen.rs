//! Characters that no reader sees. They can hide text, and take a word apart that is looked for.

/// Characters that turn the direction of text around, or carry text that no reader sees.
pub(crate) fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' // bidi
        | '\u{ad}' | '\u{34f}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' // nothing at all
        | '\u{206a}'..='\u{206f}' | '\u{feff}'
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{17b4}' | '\u{17b5}' // fillers of letters
        | '\u{1d173}'..='\u{1d17a}' // of musical notes
        | '\u{fe00}'..='\u{fe0e}' // variation selectors, but for the one that emoji are written with
        | '\u{fff9}'..='\u{fffb}' // annotations
        | '\u{e0000}'..='\u{e0fff}' // tags and variation selectors: ASCII can be hidden in them
    )
}
