//! curl: every way in, what passes and what is refused.

use crate::{Guest, Site};

/// The ways in which a program may reach an origin.
const WAYS: &[(&str, &str)] = &[
    ("by the variables", ""),
    ("by the direct port", "--noproxy '*'"),
    ("by CONNECT", "-p -x http://127.0.0.1:3128"),
    ("by SOCKS5", "-x socks5h://127.0.0.1:3128"),
    ("by SOCKS5, resolving itself", "-x socks5://127.0.0.1:3128"),
];

#[tokio::test(flavor = "multi_thread")]
async fn listed_origins_are_reached_in_every_way() {
    let site = Site::new();
    let origins = [
        "http://allowed.test",
        "https://allowed.test",
        "http://allowed.test:8080",
    ];
    let mut guest = Guest::of(&site, &origins).await;
    for origin in origins {
        for (way, flags) in WAYS {
            let script = format!("curl -sS -f -m 20 --cacert ca.pem {flags} {origin}/page");
            assert_eq!(guest.sh(&script).await, "page\n", "{origin} {way}");
        }
    }
    assert_eq!(guest.denied(), [""; 0]);
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_63_what_is_not_listed_is_refused_in_every_way() {
    let site = Site::new();
    let mut guest = Guest::of(&site, &["https://allowed.test"]).await;
    let script = "curl -sS -i -m 20 http://unlisted.test/secret?token=1";
    let answer = guest.sh(script).await.to_lowercase();
    for part in [
        "http/1.1 403",
        "x-sixb-denied: origin",
        "content-type: application/json",
        r#""code":"origin""#,
        r#""error":"this sandbox may not reach http://unlisted.test:80: "#,
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let script = "curl -sS -i -m 20 https://unlisted.test/secret?token=1";
    let answer = guest.sh(script).await.to_lowercase();
    assert!(
        answer.contains("403") && answer.contains("x-sixb-denied: origin"),
        "{answer}"
    );
    let script = "curl -sS -m 20 -x socks5h://127.0.0.1:3128 http://unlisted.test/";
    let answer = guest.sh(script).await;
    assert!(answer.contains("(2)"), "reply code 2: {answer}");
    assert_eq!(
        guest.denied(),
        [
            "http://unlisted.test:80 origin",
            "unlisted.test:443 origin",
            "unlisted.test:80 origin"
        ],
        "listed without paths and queries"
    );
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn case_65_a_host_is_allowed_at_its_port_only() {
    let site = Site::new();
    let mut guest = Guest::of(&site, &["https://allowed.test"]).await;
    let https = "curl -sS -f -m 20 --cacert ca.pem https://allowed.test";
    assert_eq!(guest.sh(&format!("{https}:443/page")).await, "page\n");
    for (way, flags) in WAYS {
        let script = format!("{https}:9999/page {flags}");
        let output = guest.run(&script).await;
        assert!(!output.success() && output.stdout.total_bytes == 0, "{way}");
    }
    let denied = guest.denied();
    let expect = ["allowed.test:9999 origin"; 4];
    assert_eq!(denied, expect, "the direct port does not exist at all");
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_denies_all_and_says_so() {
    let mut guest = Guest::new(Vec::new()).await;
    let script = "curl -sS -o body -w '%{http_code} ' -m 20 http://127.0.0.2/ --noproxy ''; \
                  curl -sS -w '%{http_connect}' -m 20 https://pypi.org/ 2>/dev/null";
    assert_eq!(guest.sh(script).await, "403 403");
    assert_eq!(
        guest.denied(),
        ["http://127.0.0.2:80 origin", "pypi.org:443 origin"]
    );
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_arrive_as_they_were_sent_but_for_what_is_the_proxys() {
    let site = Site::new();
    let guest = Guest::of(&site, &["http://allowed.test:8080"]).await;
    for (way, flags) in WAYS {
        let script = format!(
            "printf hello | curl -sS -f -i -m 20 {flags} -H 'X-MixedCase: 1' -H 'Connection: X-Hop' -H 'X-Hop: 1' \
             -H 'Proxy-Authorization: Basic eA==' -H 'Authorization: Bearer X' -H 'Transfer-Encoding: chunked' \
             -H 'Upgrade: h2c' -X POST --data-binary @- 'http://allowed.test:8080/echo?q=1'"
        );
        let answer = guest.sh(&script).await;
        let has = |part: &str| answer.contains(part);
        assert!(
            has(r#""method": "POST", "path": "/echo?q=1""#),
            "{way}: {answer}"
        );
        assert!(
            has(r#""body": "hello""#) && has(r#"["Host", "allowed.test:8080"]"#),
            "{way}: {answer}"
        );
        // The client's own credentials are the origin's business; the relay changes nothing in them.
        assert!(
            has(r#"["Authorization", "Bearer X"]"#) && has(r#"["X-MixedCase", "1"]"#),
            "{way}: {answer}"
        );
        for gone in ["X-Hop", "Proxy-Authorization", "Upgrade"] {
            assert!(!has(gone), "{gone} {way}: {answer}");
        }
        // Nor does a site speak for the relay.
        assert!(
            has("X-Site: 1") && has("Set-Cookie: a=b"),
            "{way}: {answer}"
        );
        assert!(
            !has("X-Sixb-Denied") && !has("Proxy-Authenticate"),
            "{way}: {answer}"
        );
    }
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trouble_beyond_the_relay_is_no_refusal() {
    let site = Site::new();
    // Nobody listens on the discard port of the host.
    let nobody = |origin: &str| site.allow(origin).address(([127, 0, 0, 1], 9).into());
    let origins = vec![
        nobody("http://allowed.test"),
        nobody("https://allowed.test"),
    ];
    let mut guest = Guest::new(origins).await;
    let answer = guest.sh("curl -sS -i -m 20 http://allowed.test/").await;
    assert!(
        answer.contains("502") && answer.contains("x-sixb-failed: connect"),
        "{answer}"
    );
    let answer = guest.sh("curl -sS -i -m 20 https://allowed.test/").await;
    assert!(
        answer.contains("502") && answer.contains("x-sixb-failed: connect"),
        "{answer}"
    );
    let answer = guest
        .sh("curl -sS -m 20 -x socks5h://127.0.0.1:3128 https://allowed.test/")
        .await;
    assert!(answer.contains("(4)"), "host unreachable: {answer}");
    let answer = guest
        .sh("curl -sS -m 20 --noproxy '*' https://allowed.test/")
        .await;
    assert!(answer.contains("internal error"), "an alert: {answer}");
    assert_eq!(guest.denied(), [""; 0]);
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_pass_in_both_directions() {
    let site = Site::new();
    std::fs::write(site.www().join("large"), vec![7; 20 << 20]).expect("a large file");
    let origins = ["http://allowed.test", "https://allowed.test"];
    let guest = Guest::of(&site, &origins).await;
    for origin in origins {
        let script = format!(
            "curl -sS -f -m 50 --cacert ca.pem {origin}/large | tee large | wc -c; \
             curl -sS -f -m 50 --cacert ca.pem --data-binary @large {origin}/echo | wc -c"
        );
        let counts = guest.sh(&script).await;
        let counts: Vec<u64> = counts
            .lines()
            .map(|line| line.parse().expect("a number"))
            .collect();
        assert_eq!(counts[0], 20 << 20, "{origin}");
        assert!(counts[1] > 20 << 20, "{origin}: {counts:?}");
    }
    guest.done().await;
}
