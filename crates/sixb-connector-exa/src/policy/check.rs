//! What holds for all texts. A fuzz target calls this with any bytes; property tests call it on stable.

use super::{DomainPolicy, DomainRule, WebUrl};

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
    if url.is_internal() {
        assert!(
            !may(&policy(None, &[])),
            "internal places are refused: {url}"
        );
    }
}
