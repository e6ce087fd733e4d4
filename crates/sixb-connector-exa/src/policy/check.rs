//! What holds for all texts. A fuzz target calls this with any bytes; property tests call it on stable.

use super::{DomainPolicy, DomainRule, Refusal, WebUrl};

/// Three lines: a rule, another rule and a URL.
#[cfg_attr(
    not(fuzzing),
    expect(unreachable_pub, reason = "the fuzz target is another crate")
)]
pub fn domain_policy(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (first, second, url) = (line(), line(), line());
    let rules: Vec<DomainRule> = [first, second]
        .into_iter()
        .filter_map(|text| DomainRule::parse(text).ok())
        .collect();
    for rule in &rules {
        let shown = rule.to_string();
        assert_eq!(
            DomainRule::parse(&shown).as_ref(),
            Ok(rule),
            "{shown} is the normal form"
        );
    }
    let Ok(url) = WebUrl::parse(url) else { return };
    assert_eq!(
        WebUrl::parse(url.as_str()).as_ref(),
        Ok(&url),
        "normalising twice is once"
    );
    assert!(
        !url.as_str().contains(['@', '#'])
            || url.as_str().find('@') > url.as_str().find(url.host())
    );
    assert!(
        !url.host().ends_with('.') && !url.host().bytes().any(|byte| byte.is_ascii_uppercase())
    );

    let policy = |allowed: Option<&[DomainRule]>, denied: &[DomainRule]| {
        DomainPolicy::new(allowed.map(<[_]>::to_vec), denied.to_vec())
    };
    let may = |policy: &DomainPolicy| policy.check(&url).is_ok();
    for rule in &rules {
        let one = std::slice::from_ref(rule);
        assert!(!may(&policy(Some(one), one)), "denials win: {rule}");
        assert!(
            !may(&policy(Some(&[]), &[])),
            "nothing is allowed by no rule"
        );
        if may(&policy(Some(one), &[])) {
            assert!(rule.covers_host(&url), "{rule} {url}");
        }
        // A denial takes away and never adds; an allowed rule that is added never takes away.
        for allowed in [None, Some(&rules[..1]), Some(&rules[..])] {
            assert!(may(&policy(allowed, &[])) || !may(&policy(allowed, one)));
        }
        assert!(!may(&policy(Some(one), &[])) || may(&policy(Some(&rules), &[])));
    }
    for spelled in respelled(&url) {
        for rule in &rules {
            let one = std::slice::from_ref(rule);
            let verdict = |url, allowed, denied| policy(allowed, denied).check(url);
            if verdict(&url, None, one) == Err(Refusal::Denied) {
                let still = verdict(&spelled, None, one) == Err(Refusal::Denied);
                assert!(still, "{spelled} dodges {rule}");
            }
            let was = verdict(&url, Some(one), &[]).is_ok();
            let is = verdict(&spelled, Some(one), &[]).is_ok();
            assert!(was || !is, "{spelled} slips into {rule}");
        }
    }
    // An empty segment that dots take back changes nothing for servers that keep such segments.
    for detour in detours(&url) {
        for rule in &rules {
            let denied = policy(None, std::slice::from_ref(rule));
            if denied.check(&url) == Err(Refusal::Denied) {
                let still = denied.check(&detour) == Err(Refusal::Denied);
                assert!(still, "{detour} dodges {rule}");
            }
        }
    }
    // What a server takes for the end of the path hides no denial: the URL that ends there is covered no more than this one.
    for shorter in ended(&url) {
        for rule in &rules {
            let denied = policy(None, std::slice::from_ref(rule));
            if denied.check(&shorter) == Err(Refusal::Denied) {
                assert!(!may(&denied), "{url} dodges {rule} as {shorter}");
            }
        }
    }
    if url.is_internal() {
        assert!(
            !may(&policy(None, &[])),
            "internal places are refused: {url}"
        );
    }
}

/// Most letters that are encoded, one at a time.
const MAX_RESPELLED: usize = 12;

/// The URL with one letter or digit of its path percent-encoded, where that is a URL still.
fn respelled(url: &WebUrl) -> impl Iterator<Item = WebUrl> {
    let text = url.as_str();
    let path = text
        .find("://")
        .and_then(|at| Some(at + 3 + text[at + 3..].find('/')?));
    let path = path.unwrap_or(text.len());
    let end = text.find('?').unwrap_or(text.len()).max(path);
    let letters = (path..end).filter(|&at| text.as_bytes()[at].is_ascii_alphanumeric());
    letters.take(MAX_RESPELLED).filter_map(|at| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        WebUrl::parse(&format!("{before}%{:02X}{after}", text.as_bytes()[at])).ok()
    })
}

/// The URL up to the first encoded `?` and up to the first encoded `#` of its path.
fn ended(url: &WebUrl) -> impl Iterator<Item = WebUrl> {
    let text = url.as_str();
    let path = &text[..text.find('?').unwrap_or(text.len())];
    ["%3f", "%3F", "%23"].into_iter().filter_map(move |end| {
        let (before, _) = path.split_once(end)?;
        WebUrl::parse(before).ok()
    })
}

/// The URL with one slash of its path taken twice and back, where its path is read in one way only.
fn detours(url: &WebUrl) -> impl Iterator<Item = WebUrl> {
    let text = url.as_str();
    let end = text.find('?').unwrap_or(text.len());
    let path = text.find("://").map_or(end, |at| at + 3);
    let slashes = (path..end).filter(|&at| text.as_bytes()[at] == b'/');
    let slashes = slashes.take(if url.readings.len() == 1 {
        MAX_RESPELLED
    } else {
        0
    });
    slashes
        .filter_map(|at| WebUrl::parse(&format!("{}//..%2F{}", &text[..at], &text[at + 1..])).ok())
}
