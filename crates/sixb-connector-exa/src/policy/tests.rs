//! What is allowed and what is not, as a table.

use super::*;

pub(super) fn policy(allowed: &[&str], denied: &[&str]) -> DomainPolicy {
    let policy = match allowed {
        [] => DomainPolicy::default(),
        allowed => DomainPolicy::default().allow(allowed).expect("allowed"),
    };
    policy.deny(denied).expect("denied")
}

/// `ok`, or why not.
pub(super) fn verdict(policy: &DomainPolicy, url: &str) -> String {
    match WebUrl::parse(url) {
        Err(invalid) => format!("{invalid:?}"),
        Ok(url) => match policy.check(&url) {
            Ok(()) => "ok".to_owned(),
            Err(refusal) => format!("{refusal:?}"),
        },
    }
}

fn table(policy: &DomainPolicy, rows: &[(&str, &str)]) {
    for (url, expect) in rows {
        assert_eq!(verdict(policy, url), *expect, "{url}");
    }
}

#[test]
fn case_65_an_allowed_host_is_allowed_at_its_own_port_only() {
    table(
        &policy(&["svc.test"], &[]),
        &[
            ("https://svc.test/", "ok"),
            ("https://svc.test:443/", "ok"),
            ("http://svc.test:80/", "ok"),
            ("https://svc.test:9999/", "Port"),
            ("https://svc.test:80/", "Port"),
            ("http://svc.test:443/", "Port"),
        ],
    );
    table(
        &policy(&["svc.test:8443"], &[]),
        &[
            ("https://svc.test:8443/", "ok"),
            ("https://svc.test/", "NotAllowed"),
            ("https://svc.test:9999/", "Port"),
        ],
    );
    table(
        &policy(&["svc.test:443"], &[]),
        &[
            ("https://svc.test/", "ok"),
            ("http://svc.test/", "NotAllowed"),
        ],
    );
    table(
        &policy(&[], &[]),
        &[
            ("https://svc.test/", "ok"),
            ("https://svc.test:9999/", "Port"),
        ],
    );
    table(
        &policy(&["svc.test:8443"], &["svc.test"]),
        &[("https://svc.test:8443/", "Denied")],
    );
    table(
        &policy(&["svc.test", "svc.test:8443"], &["svc.test:8443"]),
        &[
            ("https://svc.test:8443/", "Denied"),
            ("https://svc.test/", "ok"),
        ],
    );
}

#[test]
fn case_67_origins_are_rules_and_wildcards_are_names_below() {
    table(
        &policy(&["https://*.svc.test"], &[]),
        &[
            ("https://a.svc.test/", "ok"),
            ("https://b.a.svc.test/x", "ok"),
            ("https://svc.test/", "NotAllowed"),
            ("https://evilsvc.test/", "NotAllowed"),
            ("https://a.svc.test.evil.test/", "NotAllowed"),
            ("http://a.svc.test/", "NotAllowed"),
            ("https://A.SVC.Test./", "ok"),
        ],
    );
    // A denied origin is denied by any scheme and at any port.
    table(
        &policy(&[], &["https://*.svc.test"]),
        &[
            ("http://a.svc.test/", "Denied"),
            ("https://a.svc.test:9999/", "Denied"),
            ("https://svc.test/", "ok"),
        ],
    );
}

#[test]
fn rules_that_make_no_sense_say_how_to_write_them() {
    for (rule, expect) in [
        ("", "is empty"),
        ("a b", "holds blanks"),
        ("*", "leave the list out"),
        ("*.*.test", "wildcard inside"),
        ("a.*.test", "wildcard inside"),
        ("a*.test", "wildcard inside"),
        ("*.10.0.0.1", "names below an IP address"),
        ("ftp://a.test", "another scheme"),
        ("a.test?q", "has a query"),
        ("a.test\\x", "backslash"),
        ("a.test:0", "has a port"),
        ("a.test:+1", "has a port"),
        ("a.test:99999", "has a port"),
        ("a..test", "not valid"),
        (".", "not valid"),
        ("%2a.a.test", "not valid"),
        ("＊.a.test", "not valid"),
        ("4%2aa.test", "not valid"),
        ("a.test/x/../y", "`.` or `..`"),
        ("a.test/%2e%2e/y", "`.` or `..`"),
        ("a.test/x%2Fy", "in several ways"),
        ("a.test/x;y", "in several ways"),
        ("a.test/%2570", "in several ways"),
        ("a.test/%00", "control characters"),
        ("a.test/x%3F", "in several ways"),
        ("a.test/x%23y", "in several ways"),
        ("a.test/private/*", "wildcard in its path"),
        ("a.test/*", "wildcard in its path"),
        ("evil.test/,bad.test", "comma"),
        ("evil.test,bad.test", "comma"),
        ("!a.test", "not valid"),
        ("a+b.test", "not valid"),
        ("*.(a).test", "not valid"),
        ("10.0.0.0/8", "range of addresses"),
        ("https://10.0.0.0/%38", "range of addresses"),
        ("[fd00::]/8", "range of addresses"),
    ] {
        let error = DomainRule::parse(rule).expect_err(rule).to_string();
        assert!(error.contains(expect), "{rule:?}: {error}");
    }
    let error = DomainRule::parse("https://u:sk-planted@a.test").expect_err("userinfo");
    assert!(
        !format!("{error} {error:?}").contains("planted"),
        "{error:?}"
    );
}

#[test]
fn rules_have_a_normal_form() {
    for (rule, expect) in [
        ("Docs.TEST.", "docs.test"),
        ("HTTPS://docs.test/", "https://docs.test"),
        ("docs.test//a/%62/", "docs.test/a/b"),
        ("*.Bücher.test", "*.xn--bcher-kva.test"),
        ("[::FFFF:7f00:1]:80", "127.0.0.1:80"),
        ("0x7f.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("docs.test/café", "docs.test/caf%C3%A9"),
        ("docs.test/a%2Ab%2Cc", "docs.test/a%2Ab%2Cc"),
        ("a_b.docs-1.test", "a_b.docs-1.test"),
        ("10.0.0.1/v1", "10.0.0.1/v1"),
    ] {
        assert_eq!(
            DomainRule::parse(rule).expect(rule).to_string(),
            expect,
            "{rule}"
        );
    }
}

#[test]
fn a_denied_host_is_denied_in_every_spelling() {
    let policy = policy(&[], &["denied.test", "*.denied.test", "bücher.test"]);
    table(
        &policy,
        &[
            ("https://denied.test", "Denied"),
            ("https:denied.test", "Denied"),
            ("https:\\\\denied.test\\x", "Denied"),
            ("https:////denied.test//", "Denied"),
            (" \u{1}https://denied.test ", "Denied"),
            ("ht\ntps://den\tied.test", "Denied"),
            ("https://DENIED.test", "Denied"),
            ("https://denied.test.", "Denied"),
            ("https://denied.test.:443/", "Denied"),
            ("https://www.denied.test", "Denied"),
            ("https://%64enied.test/", "Denied"),
            ("https://ｄｅｎｉｅｄ.test/", "Denied"),
            ("https://denied。test/", "Denied"),
            ("https://de\u{ad}nied.test/", "Denied"),
            ("https://b\u{fc}cher.test", "Denied"),
            ("https://bu\u{308}cher.test", "Denied"),
            ("https://XN--BCHER-KVA.test", "Denied"),
            ("https://denied.test%2Fx", "NoUrl"),
            ("https://denied.test%00.ok.test/", "NoUrl"),
            ("https://denied.test..", "Host"),
            ("https://*.denied.test", "Host"),
            ("https://ok.test@denied.test/", "UserInfo"),
            ("https://denied.test:pw@ok.test/", "UserInfo"),
            ("https://denied.test\\@ok.test/", "Denied"),
            ("https://@ok.test/", "UserInfo"),
            ("https:@ok.test/", "UserInfo"),
            ("ht\ttps:\\\t/:@ok.test/", "UserInfo"),
            ("https://ok.test/@a?@#@", "ok"),
            ("https://ok.test#@denied.test/", "ok"),
            ("https://ok.test?@denied.test/", "ok"),
            ("//denied.test/", "NoUrl"),
            ("denied.test", "NoUrl"),
            ("javascript:alert(1)", "Scheme"),
            ("file:///etc/passwd", "Scheme"),
            ("ftp://denied.test", "Scheme"),
            ("https://", "NoUrl"),
            // Another letter is another host: not denied, and not allowed by the name that it imitates.
            ("https://d\u{435}nied.test", "ok"),
        ],
    );
    assert_eq!(
        verdict(
            &self::policy(&["denied.test"], &[]),
            "https://d\u{435}nied.test"
        ),
        "NotAllowed"
    );
}

#[test]
fn a_denied_path_is_denied_in_every_spelling() {
    let policy = policy(&["a.test"], &["a.test/private"]);
    table(
        &policy,
        &[
            ("https://a.test/private", "Denied"),
            ("https://a.test/private/x?y", "Denied"),
            ("https://a.test/PRIVATE", "Denied"),
            ("https://a.test//private", "Denied"),
            ("https://a.test/./private", "Denied"),
            ("https://a.test/x/../private", "Denied"),
            ("https://a.test/x/%2e%2E/private", "Denied"),
            ("https://a.test/x%2f..%2Fprivate", "Denied"),
            ("https://a.test/x%5c..%5Cprivate", "Denied"),
            ("https://a.test/x\\..\\private", "Denied"),
            ("https://a.test/%70rivate", "Denied"),
            ("https://a.test/%2570rivate", "Denied"),
            ("https://a.test/%252570rivate", "Denied"),
            ("https://a.test/%2Fprivate", "Denied"),
            ("https://a.test/private%2Fx", "Denied"),
            ("https://a.test/private;v=1/x", "Denied"),
            ("https://a.test/x/..;/private", "Denied"),
            ("https://a.test/;/private", "Denied"),
            ("https://a.test/private.", "Denied"),
            ("https://a.test/private%20/x", "Denied"),
            ("https://a.test/private%3Fx", "Denied"),
            ("https://a.test/private%3F", "Denied"),
            ("https://a.test/private%23x", "Denied"),
            ("https://a.test/private%253Fx", "Denied"),
            ("https://a.test/x/..%20/private", "Denied"),
            ("https://a.test/x/..%20%20;v/private", "Denied"),
            ("https://a.test/.../private", "Denied"),
            ("https://a.test/private%f8%80%80%80%af", "Path"),
            ("https://a.test/private%00", "Path"),
            ("https://a.test/x/%c0%ae%c0%ae/private", "Path"),
            ("https://a.test/%u0070rivate", "Path"),
            ("https://a.test/private#x", "Denied"),
            ("https://a.test/privately", "ok"),
            ("https://a.test/public?/private", "ok"),
            ("https://a.test/private/../public", "ok"),
            ("https://a.test/public%3F/private", "ok"),
        ],
    );
    let below = self::policy(&[], &["a.test/x/private"]);
    table(
        &below,
        &[
            ("https://a.test/x//..%2Fprivate", "Denied"),
            ("https://a.test/x%2F%2F..%2Fprivate", "Denied"),
            ("https://a.test/x//..;/private", "Denied"),
            ("https://a.test/x//../private", "Denied"),
            ("https://a.test/x/;/..%2Fprivate", "Denied"),
            ("https://a.test/x/..%2Fprivate", "ok"),
        ],
    );
}

#[test]
fn an_allowed_path_is_not_left_by_any_spelling() {
    let policy = policy(&["a.test/docs"], &[]);
    table(
        &policy,
        &[
            ("https://a.test/docs", "ok"),
            ("https://a.test/docs/", "ok"),
            ("https://a.test/docs/a%20b?q=1#f", "ok"),
            ("https://a.test/%64ocs/x", "ok"),
            ("https://a.test//docs/x", "ok"),
            ("https://a.test/docs/a;v=1/b", "ok"),
            ("https://a.test/docs/50%25", "ok"),
            ("https://a.test/docsx", "NotAllowed"),
            ("https://a.test/Docs", "NotAllowed"),
            ("https://a.test/", "NotAllowed"),
            ("https://a.test/docs/../x", "NotAllowed"),
            ("https://a.test/docs/%2e%2e/x", "NotAllowed"),
            ("https://a.test/docs/..%2Fx", "NotAllowed"),
            ("https://a.test/docs%2F..%2Fx", "NotAllowed"),
            ("https://a.test/docs%2Fx", "NotAllowed"),
            ("https://a.test/docs/..;/x", "NotAllowed"),
            ("https://a.test/docs/%252e%252e/x", "NotAllowed"),
            ("https://a.test/%2564ocs/x", "NotAllowed"),
            ("https://a.test/docs/why%3F", "ok"),
            ("https://a.test/docs/..%3Fx", "NotAllowed"),
            ("https://a.test/docs/%2e%2e%3Fx", "NotAllowed"),
            ("https://a.test/docs/..%23", "NotAllowed"),
            ("https://a.test/docs/..%20/x", "NotAllowed"),
            ("https://a.test/docs//..%2F..%2Fx", "NotAllowed"),
        ],
    );
}

#[test]
fn addresses_and_internal_names_are_refused_unless_named() {
    let open = policy(&[], &[]);
    for url in [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://8.8.8.8/",
        "http://169.254.169.254/latest",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://a.localhost/",
        "http://intranet/",
        "http://metadata.google.internal/",
        "http://①②⑦.0.0.1/",
    ] {
        assert_eq!(verdict(&open, url), "Internal", "{url}");
    }
    let named = policy(&["127.0.0.1", "intranet", "*.corp.internal"], &[]);
    table(
        &named,
        &[
            ("http://127.0.0.1/", "ok"),
            ("http://[::ffff:7f00:1]/", "ok"),
            ("http://127.0.0.2/", "NotAllowed"),
            ("http://intranet/", "ok"),
            ("http://wiki.corp.internal/", "ok"),
            ("http://corp.internal/", "NotAllowed"),
        ],
    );
    table(
        &policy(&["127.0.0.1"], &["[::ffff:127.0.0.1]"]),
        &[("http://2130706433/", "Denied")],
    );
}

#[test]
fn a_url_is_measured_when_it_is_normalised() {
    let of = |path: usize| format!("https://a.test/{}", "x".repeat(path));
    assert!(WebUrl::parse(&of(MAX_URL_CHARACTERS - 15)).is_ok());
    assert_eq!(
        WebUrl::parse(&of(MAX_URL_CHARACTERS - 14)),
        Err(InvalidUrl::TooLong)
    );
    let umlauts = format!("https://a.test/{}", "ü".repeat(400));
    assert_eq!(
        WebUrl::parse(&umlauts),
        Err(InvalidUrl::TooLong),
        "six characters each"
    );
    let fragment = format!("https://a.test/#{}", "x".repeat(4_000));
    assert_eq!(
        WebUrl::parse(&fragment).map(|url| url.to_string()),
        Ok("https://a.test/".into())
    );
    assert_eq!(WebUrl::parse(&"x".repeat(20_000)), Err(InvalidUrl::TooLong));
}

#[test]
fn filters_are_never_stricter_than_the_rules() {
    let policy = policy(
        &[
            "a.test",
            "https://*.b.test/docs",
            "c.test:8443",
            "a.test:444",
        ],
        &["d.test/x", "e.test:8443", "https://*.f.test"],
    );
    assert_eq!(
        policy.include_filters(),
        ["a.test", "*.b.test/docs", "c.test"]
    );
    assert_eq!(policy.exclude_filters(), ["d.test/x", "*.f.test"]);
}

#[test]
fn filters_that_a_provider_cannot_take_are_not_sent() {
    let internal = policy(
        &["a.test", "127.0.0.1", "localhost", "[::1]", "*.corp"],
        &[],
    );
    assert_eq!(internal.include_filters(), ["a.test"]);
    let many = |count: usize| (0..count).map(|n| format!("h{n}.test"));
    let of = |count| DomainPolicy::default().allow(many(count)).expect("rules");
    assert_eq!(of(1_000).include_filters().len(), 1_000);
    assert!(
        of(1_001).include_filters().is_empty(),
        "a part would be stricter than the rules"
    );
    let denied = DomainPolicy::default().deny(many(1_001)).expect("rules");
    assert_eq!(denied.exclude_filters().len(), 1_000);
}
