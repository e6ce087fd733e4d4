//! What a model sees of an output stream: pure functions from captured bytes to at most 20 000 characters.
//!
//! Bytes → text → terminal effects undone → cut, where JSON stays JSON and other text keeps its head and, mostly, its
//! tail. The order matters: a cut that came first would count characters that the model never sees.

mod cut;
mod json;
mod terminal;

use std::borrow::Cow;

use sixb_sandbox::CapturedStream;

/// Most characters that a model sees of one stream.
pub(super) const CAP: usize = 20_000;

/// One stream, as a model sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) text: String,
    /// Whether some of what the command wrote is not in `text`.
    pub(super) truncated: bool,
}

/// The view of a stream.
pub(super) fn view(stream: &CapturedStream) -> View {
    if stream.truncated() {
        return with_gap(stream);
    }
    let bytes = stream.bytes();
    let text = String::from_utf8_lossy(&bytes);
    let text = terminal::settle(&text);
    if within(&text, CAP) {
        return View {
            text: text.into_owned(),
            truncated: false,
        };
    }
    if let Some(view) = json::shorten(&text) {
        return view;
    }
    let parts = cut::Parts {
        head: &text,
        tail: None,
        gap: cut::Omitted::default(),
        note: spool_note(stream),
    };
    View {
        text: cut::head_tail(parts),
        truncated: true,
    }
}

/// The capture itself left out the middle.
fn with_gap(stream: &CapturedStream) -> View {
    let (head, tail) = (
        String::from_utf8_lossy(&stream.head),
        String::from_utf8_lossy(&stream.tail),
    );
    let (head, tail) = (terminal::settle(&head), terminal::settle(&tail));
    let note = spool_note(stream);
    let torn = json::Torn {
        head: &head,
        tail: &tail,
        bytes: stream.total_bytes,
        note: &note,
    };
    if let Some(text) = json::shorten_torn(&torn) {
        return View {
            text,
            truncated: true,
        };
    }
    let kept = newlines(&stream.head) + newlines(&stream.tail);
    let gap = cut::Omitted {
        bytes: stream.omitted_bytes(),
        lines: stream.total_newlines.saturating_sub(kept),
    };
    let parts = cut::Parts {
        head: &head,
        tail: Some(&tail),
        gap,
        note,
    };
    View {
        text: cut::head_tail(parts),
        truncated: true,
    }
}

/// The spool has its own limit: whoever pages through it must know that it is not all there.
fn spool_note(stream: &CapturedStream) -> Cow<'static, str> {
    if stream.spooled_bytes == 0 || stream.spooled_bytes >= stream.total_bytes {
        return "".into();
    }
    format!(
        "; the full output file keeps only the first {} bytes",
        stream.spooled_bytes
    )
    .into()
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Whether a text has at most `max` characters; long texts are not counted through.
fn within(text: &str, max: usize) -> bool {
    text.len() <= max || (text.len() <= max * 4 && text.chars().count() <= max)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(bytes: impl Into<bytes::Bytes>) -> View {
        view(&CapturedStream::whole(bytes))
    }

    #[test]
    fn within_the_cap_nothing_is_touched() {
        for text in [
            "",
            "a\r\nb\r\n",
            "{ \"a\" : 1.50 }\n",
            &"é".repeat(CAP),
            "no newline",
            "\u{feff}bom\n",
        ] {
            let expect = View {
                text: text.to_owned(),
                truncated: false,
            };
            assert_eq!(of(text.to_owned()), expect);
        }
    }

    #[test]
    fn case_08_a_cut_never_splits_a_character() {
        let lengths = [CAP - 1, CAP, CAP + 1, 29_999, 3 * CAP];
        for (pad, wide) in lengths
            .into_iter()
            .flat_map(|pad| ["é", "가", "🦀"].map(|wide| (pad, wide)))
        {
            for text in [
                format!("{}{wide}", "a".repeat(pad)),
                format!("{wide}{}", "a".repeat(pad)),
                wide.repeat(pad),
            ] {
                let view = of(text.clone());
                assert!(view.text.chars().count() <= CAP, "{pad} {wide}");
                assert_eq!(view.truncated, text.chars().count() > CAP, "{pad} {wide}");
            }
        }
    }

    #[test]
    fn case_12_the_last_error_is_seen() {
        let text: String = (1..=100_000)
            .map(|n| format!("{n}\n"))
            .chain(["FATAL_LAST\n".to_owned()])
            .collect();
        let view = of(text.clone());
        assert!(view.text.starts_with("1\n2\n") && view.text.ends_with("100000\nFATAL_LAST\n"));
        let notes: Vec<_> = view
            .text
            .lines()
            .filter(|line| line.contains("left out"))
            .collect();
        let [note] = notes[..] else {
            panic!("{notes:?}")
        };
        let shown = view.text.len() - note.len() - 1;
        let shown_lines = view.text.lines().count() - 1;
        assert_eq!(
            note,
            format!(
                "[… {} lines, {} bytes left out …]",
                100_001 - shown_lines,
                text.len() - shown
            )
        );
    }

    #[test]
    fn case_14_the_cut_is_computed_after_progress_is_collapsed() {
        let bar: String = (0..=100_000)
            .map(|n| format!("\r\x1b[32m{n}\x1b[0m of 100000"))
            .collect();
        let view = of(format!("{bar}\n\x1b[31mred\x1b[0m\n"));
        let expect = "100000 of 100000\nred\n".to_owned();
        assert_eq!(
            view,
            View {
                text: expect,
                truncated: false
            }
        );
    }

    #[test]
    fn what_the_capture_left_out_is_counted() {
        let mut stream = CapturedStream::whole("start\n");
        stream.tail = "\nend\n".into();
        stream.total_bytes = 200_000_011;
        stream.total_newlines = 1_003;
        stream.spooled_bytes = 64 << 20;
        let expect = "start\n[… 1000 lines, 200000000 bytes left out; the full output file keeps only the first \
                      67108864 bytes …]\n\nend\n";
        assert_eq!(view(&stream).text, expect);
        let long = "line\n".repeat(10_000);
        stream.head = long.clone().into();
        stream.tail = long.into();
        stream.total_bytes = 300_000;
        stream.total_newlines = 60_000;
        stream.spooled_bytes = 300_000;
        let view = view(&stream);
        let shown = view.text.matches("line\n").count();
        let note = format!(
            "[… {} lines, {} bytes left out …]",
            60_000 - shown,
            300_000 - shown * 5
        );
        assert!(
            view.text.contains(&note) && view.text.chars().count() <= CAP,
            "{note} {shown}"
        );
    }

    /// A stream of which the capture kept 50 000 bytes at each end.
    fn captured(text: &str) -> CapturedStream {
        let mut stream = CapturedStream::whole(text[..50_000].to_owned());
        stream.tail = text[text.len() - 50_000..].to_owned().into();
        stream.total_bytes = text.len() as u64;
        stream.total_newlines = newlines(text.as_bytes());
        stream.spooled_bytes = stream.total_bytes;
        stream
    }

    fn json_of(text: &str) -> Value {
        let view = view(&captured(text));
        assert!(view.truncated && view.text.chars().count() <= CAP);
        serde_json::from_str(&view.text)
            .unwrap_or_else(|error| panic!("{error}: {}", &view.text[..200]))
    }

    #[test]
    fn json_of_which_the_capture_lost_the_middle_stays_json() {
        let item = |n: usize| format!("{{\"n\": {n}.10, \"text\": \"a \\\"b\\\" é\"}}");
        let items: Vec<String> = (0..10_000).map(item).collect();
        let array = format!("[\n  {}\n]\n", items.join(",\n  "));
        let list = json_of(&array);
        let (notice, kept) = list
            .as_array()
            .and_then(|list| list.split_last())
            .expect("list");
        assert!(kept.len() > 400, "{}", kept.len());
        assert_eq!(
            kept[1].to_string(),
            item(1).replace(": ", ":").replace(", ", ",")
        );
        let shown = format!("[\n  {}", items[..kept.len()].join(",\n  ")).len();
        let expect = format!(
            "[… the rest of this array left out: {} of {} bytes]",
            array.len() - shown,
            array.len()
        );
        assert_eq!(notice, &Value::from(expect));

        let long = json_of(&format!("[\"BEGIN{}\", 2]", "x".repeat(200_000)));
        let notice = long[0].as_str().expect("notice");
        assert!(
            notice.contains("of 200012 bytes") && notice.ends_with('x'),
            "{notice}"
        );
        assert!(notice.contains("BEGINxxx"), "{notice}");

        let object = format!("{{\"first\": 1, \"big\": {array}, \"last\": true}}");
        let notice = json_of(&object);
        assert_eq!(notice["topLevelKeys"], json!(["first", "big"]));
        let preview = notice["preview"].as_str().expect("preview");
        assert!(
            preview.starts_with("{\"first\":1,\"big\":[{\"n\":0.10,"),
            "{preview}"
        );
        let size = format!("a JSON object of {} bytes", object.len());
        assert!(
            notice["notice"]
                .as_str()
                .is_some_and(|text| text.contains(&size)),
            "{notice}"
        );
    }

    #[test]
    fn what_only_begins_like_json_keeps_its_head_and_tail() {
        let array = format!("[{}]", vec!["1.5"; 50_000].join(", "));
        for text in [
            format!("{}]", "[INFO] started\n".repeat(20_000)),
            format!("{array}\nTraceback: disk full"),
            format!("{{\"a\": 1}}\n{array}\n{{}}"),
            format!("{{\"a\": 1}}{}", " \n".repeat(100_000)),
            format!("{}}}", &array[..array.len() - 1]),
        ] {
            let view = view(&captured(&text));
            let start = &text[..40.min(text.len())];
            assert!(view.text.contains("bytes left out …]\n"), "{start}");
            assert!(
                serde_json::from_str::<Value>(&view.text).is_err(),
                "{start}"
            );
        }
        let mut partly = captured(&array);
        partly.spooled_bytes = 70_000;
        let text = view(&partly).text;
        assert!(
            text.ends_with("; the full output file keeps only the first 70000 bytes]\"]"),
            "{}",
            &text[text.len() - 200..]
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(of(&b"a\xff\xfeb"[..]).text, "a\u{fffd}\u{fffd}b");
    }
}
