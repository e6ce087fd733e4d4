//! What holds for all rules and URLs.

use proptest::prelude::*;

use super::{
    check,
    tests::{policy, verdict},
};

/// Texts that are often hosts, rules and URLs, and texts that are not.
fn line() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "https://",
        "http://",
        "//",
        "a.test",
        "b.a.test",
        "*.",
        "localhost",
        "127.0.0.1",
        "[::1]",
        ":443",
        ":8443",
        "/",
        "/private",
        "%2F",
        "%2e",
        "..",
        ".",
        "%25",
        "%3F",
        "%23",
        "%20",
        "%70",
        ";",
        "\\",
        "@",
        "?",
        "#",
        "ü",
        "ｅ",
        "A",
        " ",
        "\t",
        "%",
    ]);
    prop_oneof![
        prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat()),
        "[^\n]{0,40}",
    ]
}

/// A segment, each byte of it plain or encoded up to three times.
fn spelled(text: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(0..4_usize, text.len()).prop_map(move |depths| {
        let spell = |(byte, depth): (u8, usize)| match depth {
            0 => (byte as char).to_string(),
            depth => format!("%{}{byte:02X}", "25".repeat(depth - 1)),
        };
        text.bytes().zip(depths).map(spell).collect()
    })
}

proptest! {
    #[test]
    fn what_holds_for_all_texts(first in line(), second in line(), url in line()) {
        check::domain_policy(format!("{first}\n{second}\n{url}").as_bytes());
    }

    #[test]
    fn what_holds_for_all_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        check::domain_policy(&bytes);
    }

    #[test]
    fn an_encoded_path_does_not_dodge_a_denial(
        private in spelled("private"),
        before in prop::sample::select(vec!["/", "//", "/./", "/x/../", "/x%2F..%2F", "/x\\..\\", "/%2e/", "/x/..;/", "/;p/", "/x/..%20/", "/.../"]),
        after in prop::sample::select(vec!["", "/", "//x", "%2Fx", "?q", "#f", ";v", "\\x", "/x/y", "%3F", "%3Fx", "%23x", "%253Fx", "%2523%2F.."]),
    ) {
        let url = format!("https://a.test{before}{private}{after}");
        prop_assert_eq!(verdict(&policy(&["a.test"], &["a.test/private"]), &url), "Denied");
    }

    #[test]
    fn no_spelling_leaves_what_is_allowed(dots in spelled(".."), slash in spelled("/"), tail in "[a-z]{1,5}") {
        let url = format!("https://a.test/docs/{dots}{slash}z{tail}");
        prop_assert_ne!(verdict(&policy(&["a.test/docs"], &[]), &url), "ok");
    }

    #[test]
    fn an_encoded_end_of_the_path_hides_nothing(end in prop::sample::select(vec!["%3F", "%23", "%3f", "%253F", "%2523", "%25253F", "?", "#"]), tail in "([a-z.]|%2F){0,5}") {
        let below = policy(&["a.test"], &["a.test/private"]);
        prop_assert_eq!(verdict(&below, &format!("https://a.test/private{end}{tail}")), "Denied");
        let docs = policy(&["a.test/docs"], &[]);
        prop_assert_ne!(verdict(&docs, &format!("https://a.test/docs/..%2F{end}{tail}")), "ok");
        prop_assert_ne!(verdict(&docs, &format!("https://a.test/docs/..{end}{tail}")), "ok");
    }

    #[test]
    fn dots_take_back_an_empty_segment_too(
        slashes in prop::collection::vec(spelled("/"), 2..3),
        dots in spelled(".."),
        last in prop::sample::select(vec!["%2F", "%5C", "%252F", ";/", ";v%2F"]),
    ) {
        // A parser of URLs resolves plain dots itself, and where it does the empty segment is gone before.
        let url = format!("https://a.test/x{}{dots}{last}private", slashes.concat());
        prop_assert_eq!(verdict(&policy(&[], &["a.test/x/private"]), &url), "Denied");
    }

    #[test]
    fn a_wildcard_covers_what_is_below_and_nothing_else(labels in prop::collection::vec("[a-z][a-z0-9]{0,5}", 1..4)) {
        let below = labels.join(".");
        let policy = policy(&["*.zone.test"], &[]);
        for (url, expect) in [
            (format!("https://{below}.zone.test/"), "ok"),
            (format!("https://{below}zone.test/"), "NotAllowed"),
            ("https://zone.test/".to_owned(), "NotAllowed"),
            (format!("https://{below}.zone.test.{below}.example/"), "NotAllowed"),
        ] {
            prop_assert_eq!(verdict(&policy, &url), expect, "{}", url);
        }
    }

    #[test]
    fn case_and_a_trailing_dot_do_not_count(upper in prop::collection::vec(any::<bool>(), 11), dot in "\\.?") {
        let spelled: String = "denied.test".chars().zip(upper).map(|(c, up)| if up { c.to_ascii_uppercase() } else { c }).collect();
        let url = format!("https://{spelled}{dot}/");
        prop_assert_eq!(verdict(&policy(&[], &["denied.test"]), &url), "Denied");
    }
}
