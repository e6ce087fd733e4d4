//! Takes the key out of what a server sent: some quote it. Also makes short texts of a server harmless.

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::unseen::is_unseen;

/// Shorter keys are not looked for: they would be found in ordinary words.
const MIN_KEY: usize = 4;
const REDACTED: &str = "[redacted]";

/// Replaces the key in every string of a value, names of fields included. It is done after parsing, so that no escape
/// sequence hides it. A text in which characters that nobody sees take the key apart loses them: they go later anyway, when
/// a text is shown, and would leave the key.
pub(crate) fn value(value: &mut Value, key: &SecretString) {
    let key = key.expose_secret();
    if key.len() >= MIN_KEY {
        walk(value, key);
    }
}

fn walk(value: &mut Value, key: &str) {
    match value {
        Value::String(text) => {
            if let Some(clean) = without(text, key) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, key)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| walk(field, key));
            if fields.keys().any(|name| without(name, key).is_some()) {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(name, field)| (without(&name, key).unwrap_or(name), field))
                    .collect();
            }
        }
        _ => {}
    }
}

/// The text without the key; `None` where it is not in it.
fn without(text: &str, key: &str) -> Option<String> {
    let replaced = text.contains(key).then(|| text.replace(key, REDACTED));
    let text = replaced.as_deref().unwrap_or(text);
    let goes = |c: char| c.is_control() || is_unseen(c);
    if text.contains(goes) {
        let seen = text.replace(goes, "");
        if seen.contains(key) {
            return Some(seen.replace(key, REDACTED));
        }
    }
    replaced
}

/// A name that a machine chose, or nothing: `INVALID_API_KEY`, `b5947044c4b78efa`.
pub(crate) fn token(text: &str, most: usize) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (!text.is_empty() && text.len() <= most && text.chars().all(plain)).then(|| text.to_owned())
}

/// One line, short, and unable to move a cursor.
pub(crate) fn line(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(most).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_key_is_found_at_any_depth_and_behind_escapes() {
        let key = SecretString::from("sk-planted");
        let mut quoted: Value = serde_json::from_str(
            r#"{"a": ["x sk-planted y"], "b": {"\u0073k-planted": "\u0073\u006b-planted"}, "n": 1}"#,
        )
        .expect("json");
        value(&mut quoted, &key);
        assert_eq!(
            quoted,
            json!({"a": ["x [redacted] y"], "b": {"[redacted]": "[redacted]"}, "n": 1})
        );
    }

    #[test]
    fn a_key_that_is_taken_apart_is_found_too() {
        let key = SecretString::from("sk-planted");
        for (text, expect) in [
            ("a sk-pla\u{200b}nted b", "a [redacted] b"),
            ("sk\u{ad}-\u{202e}planted", "[redacted]"),
            ("sk-pla\nnted\u{0}", "[redacted]"),
            ("sk-planted sk-pl\tanted", "[redacted] [redacted]"),
            ("two\nlines \u{200b}", "two\nlines \u{200b}"),
            ("sk-planted\nline", "[redacted]\nline"),
        ] {
            let mut quoted = json!({"a": [text], text: 1});
            value(&mut quoted, &key);
            assert_eq!(quoted, json!({"a": [expect], expect: 1}), "{text:?}");
        }
    }

    #[test]
    fn tokens_are_plain_and_lines_are_single() {
        assert_eq!(
            token("INVALID_API_KEY", 64).as_deref(),
            Some("INVALID_API_KEY")
        );
        for bad in ["", "two words", "a\n", "\u{202e}", &"x".repeat(65)] {
            assert_eq!(token(bad, 64), None, "{bad:?}");
        }
        assert_eq!(line(" a\nb\u{1b}[31m ", 4), "a b ");
    }
}
