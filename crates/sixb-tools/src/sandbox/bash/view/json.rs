//! Shortens JSON so that it stays JSON. Works on the text itself: numbers keep their digits, objects their order, and no
//! tree of a large document is built.

mod compact;
mod outline;

use serde_json::json;

use self::{
    compact::compact,
    outline::{Outline, Root, outline},
};
use super::{CAP, View};

/// Characters kept free for the notice in a shortened array.
const NOTICE: usize = 200;
/// Characters of an object's compact form that are shown.
const PREVIEW: usize = 8_000;
/// Characters of the first element that are shown of an array whose first element does not fit.
const ELEMENT_PREVIEW: usize = 4_000;

/// A short form of a JSON array or object; `None` when the text is neither.
pub(super) fn shorten(text: &str) -> Option<View> {
    let text = text.trim_ascii();
    let Outline::Whole(root) = outline(text)? else {
        return None;
    };
    let whole = compact(text, CAP);
    if whole.complete {
        return Some(View {
            text: whole.text,
            truncated: false,
        });
    }
    let text = match root {
        Root::Array { count } => array_prefix(text, count),
        Root::Object { count, keys } => {
            let notice = format!(
                "a JSON object of {} bytes is too long to show; `preview` is its start",
                text.len()
            );
            let preview = compact(text, PREVIEW).text;
            let mut shown = json!({"notice": notice, "topLevelKeys": keys});
            if keys.len() as u64 != count {
                shown["topLevelKeyCount"] = count.into();
            }
            shown["preview"] = preview.into();
            shown.to_string()
        }
    };
    Some(View {
        text,
        truncated: true,
    })
}

/// A document whose middle is gone.
pub(super) struct Torn<'a> {
    pub(super) head: &'a str,
    pub(super) tail: &'a str,
    /// Bytes of the whole document.
    pub(super) bytes: u64,
    /// Added to the notice.
    pub(super) note: &'a str,
}

/// A short form of an array or object of which only head and tail are known, made from the head alone: nobody can say
/// where in the document the tail belongs. `None` when the head is not the start of one, or when the tail does not end it:
/// a dump with an error message after it is other text, whose end matters.
pub(super) fn shorten_torn(torn: &Torn<'_>) -> Option<String> {
    let head = torn.head.trim_ascii_start();
    let Outline::Start(root) = outline(head)? else {
        return None;
    };
    let end = match root {
        Root::Array { .. } => ']',
        Root::Object { .. } => '}',
    };
    if !torn.tail.trim_ascii_end().ends_with(end) {
        return None;
    }
    let (bytes, note) = (torn.bytes, torn.note);
    Some(match root {
        Root::Array { .. } => {
            let mut prefix = compact(head, CAP - NOTICE);
            if prefix.elements == 0 {
                let preview = compact(head, ELEMENT_PREVIEW).text;
                let notice = format!(
                    "[… this array of {bytes} bytes left out, since its first element is too long to show{note}; it begins: {}",
                    &preview[1..]
                );
                return Some(json!([notice]).to_string());
            }
            let shown = (torn.head.len() - head.len() + prefix.source_end) as u64;
            let notice = json!(format!(
                "[… the rest of this array left out: {} of {bytes} bytes{note}]",
                bytes.saturating_sub(shown)
            ));
            prefix.text.truncate(prefix.elements_end);
            format!("{},{notice}]", prefix.text)
        }
        Root::Object { keys, .. } => {
            let notice = format!(
                "a JSON object of {bytes} bytes is too long to show; `preview` is its start, and there may be keys after \
                 those of `topLevelKeys`{note}"
            );
            let preview = compact(head, PREVIEW).text;
            json!({"notice": notice, "topLevelKeys": keys, "preview": preview}).to_string()
        }
    })
}

/// The longest prefix of whole elements, and how many are missing.
fn array_prefix(text: &str, count: u64) -> String {
    let mut prefix = compact(text, CAP - NOTICE);
    let kept = prefix.elements;
    if kept == 0 {
        let preview = compact(text, ELEMENT_PREVIEW).text;
        let notice = format!(
            "[… all {count} elements left out, since the first is too long to show; it begins: {}",
            &preview[1..]
        );
        return json!([notice]).to_string();
    }
    prefix.text.truncate(prefix.elements_end);
    let notice = json!(format!("[… {} of {count} elements left out]", count - kept));
    format!("{},{notice}]", prefix.text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn shown(text: &str) -> (String, bool) {
        let view = shorten(text).expect("json");
        assert!(
            view.text.chars().count() <= CAP,
            "{}",
            view.text.chars().count()
        );
        serde_json::from_str::<Value>(&view.text).expect("valid");
        (view.text, view.truncated)
    }

    #[test]
    fn what_is_not_an_array_or_object_is_other_text() {
        for text in [
            "",
            "12",
            "\"x\"",
            "{} {}",
            "[1,2",
            "{\"a\":01}",
            "[1] trailing",
            "{'a':1}",
            "[\"\\x\"]",
        ] {
            assert!(shorten(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_compact_form_is_shown_when_it_fits_with_every_digit() {
        let numbers = [
            "1.50",
            "1e400",
            "-0.0",
            "12345678901234567890123",
            "\"a \\\" b\\\\\"",
            "\"é\"",
            "{\"b\": 1 , \"a\":[ ]}",
        ];
        let pretty = format!(
            "[\n{}\n]\n",
            numbers.join(&format!(",{}\n", " ".repeat(10_000)))
        );
        let expect = format!(
            "[{}]",
            numbers
                .join(",")
                .replace("{\"b\": 1 , \"a\":[ ]}", "{\"b\":1,\"a\":[]}")
        );
        assert_eq!(shown(&pretty), (expect, false));
    }

    #[test]
    fn an_array_keeps_whole_elements_and_a_count() {
        let text = format!(
            "[{}]",
            (0..10_000)
                .map(|n| format!("{{ \"n\": {n}.10 }}"))
                .collect::<Vec<_>>()
                .join(", ")
        );
        let (shown, truncated) = shown(&text);
        assert!(truncated && shown.starts_with("[{\"n\":0.10},{\"n\":1.10},"));
        let list: Vec<Value> = serde_json::from_str(&shown).expect("list");
        let expect = format!(
            "[… {} of 10000 elements left out]",
            10_000 - (list.len() - 1)
        );
        assert_eq!(list.last(), Some(&Value::from(expect)));
        assert!(shown.len() > CAP - NOTICE - 20, "{}", shown.len());
    }

    #[test]
    fn an_array_whose_first_element_is_too_long_shows_its_start() {
        let (shown, _) = shown(&format!("[\"BEGIN{}\", 2]", "\\\"".repeat(30_000)));
        assert!(shown.starts_with("[\"[… all 2 elements left out") && shown.contains("BEGIN"));
    }

    #[test]
    fn an_object_shows_its_keys_and_a_preview() {
        let (text, truncated) = shown(&format!(
            "{{\"first\": \"{}\", \"se\\\"cond\": 1.0, \"third\": []}}",
            "x".repeat(30_000)
        ));
        let notice: Value = serde_json::from_str(&text).expect("notice");
        assert!(truncated);
        assert_eq!(
            notice["topLevelKeys"],
            json!(["first", "se\"cond", "third"])
        );
        assert!(
            notice["preview"]
                .as_str()
                .expect("text")
                .starts_with("{\"first\":\"xxx")
        );
        assert_eq!(notice.get("topLevelKeyCount"), None);

        let many = format!(
            "{{{}}}",
            (0..9_000)
                .map(|n| format!("\"key{n}\":\"\\\\\\\"\""))
                .collect::<Vec<_>>()
                .join(",")
        );
        let (text, _) = shown(&many);
        let notice: Value = serde_json::from_str(&text).expect("notice");
        assert_eq!(notice["topLevelKeyCount"], 9_000);
    }

    #[test]
    fn five_megabytes_are_cut_like_less() {
        let item = json!({"id": 123_456, "name": "a \"quoted\" name", "values": [1.5, -2, null, true], "nested": {"k": "v"}});
        let count = 5_000_000 / serde_json::to_string_pretty(&item).expect("json").len();
        let text = serde_json::to_string_pretty(&vec![item.clone(); count]).expect("json");
        let (text, truncated) = shown(&text);
        let list: Vec<Value> = serde_json::from_str(&text).expect("list");
        assert!(truncated && list[0] == item, "{}", list[0]);
    }

    #[test]
    fn depth_does_not_overflow_the_stack() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        assert!(shorten(&deep).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_long_document_stays_json(
            items in prop::collection::vec(("[a-z\"\\\\é\n]{0,50}", any::<f64>(), any::<bool>()), 400..900),
            object in any::<bool>(),
        ) {
            let document = if object {
                Value::Object(items.iter().enumerate().map(|(n, (text, float, _))| (format!("{n}{text}"), json!([float, text]))).collect())
            } else {
                json!(items)
            };
            shown(&serde_json::to_string_pretty(&document).expect("json"));
        }
    }
}
