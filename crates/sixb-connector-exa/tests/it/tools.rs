//! `web_search` and `web_fetch` as a run calls them.

use std::sync::Arc;

use serde_json::{Value, json};
use sixb_connector_exa::{
    DomainPolicy, EXA, WebFetchOptions, WebSearchOptions, exa_connector, exa_web_fetch,
    exa_web_search,
};
use sixb_tools::{
    Connectors, RunInfo, RunKind, Tool, ToolContext, ToolContextBuilder, ToolError, ToolErrorKind,
    ToolRegistry,
};

use crate::server::{KEY, Server, header};

pub(crate) fn policy(allowed: &[&str], denied: &[&str]) -> DomainPolicy {
    let policy = match allowed {
        [] => DomainPolicy::default(),
        allowed => DomainPolicy::default().allow(allowed).expect("allowed"),
    };
    policy.deny(denied).expect("denied")
}

pub(crate) fn search(options: WebSearchOptions) -> Arc<dyn Tool> {
    exa_web_search(&EXA, options).expect("tool")
}

pub(crate) fn fetch(options: WebFetchOptions) -> Arc<dyn Tool> {
    exa_web_fetch(&EXA, options).expect("tool")
}

pub(crate) fn context(server: &Server) -> ToolContextBuilder {
    let connectors = Connectors::new([exa_connector(&EXA, server.options())]).expect("connectors");
    ToolContext::builder("c1")
        .extension(connectors)
        .run(Arc::new(RunInfo::new("r1", "a", RunKind::Cli)))
}

/// Calls by the registry, as an agent does. Nothing of what comes out may hold the key.
pub(crate) async fn call(
    tool: &Arc<dyn Tool>,
    cx: ToolContext,
    input: Value,
) -> Result<Value, ToolError> {
    let registry = ToolRegistry::builder()
        .tool(tool.clone())
        .build()
        .expect("registry");
    let name = tool.spec().name.as_str();
    let output = registry
        .call(name, cx, input)
        .await
        .map(|output| output.to_json());
    let shown = match &output {
        Ok(value) => value.to_string(),
        Err(error) => format!(
            "{error} {error:?} {} {}",
            error.operator_text(),
            error.to_json()
        ),
    };
    assert!(!shown.contains(KEY), "{shown}");
    output
}

pub(crate) async fn searched(
    server: &Server,
    options: WebSearchOptions,
) -> Result<Value, ToolError> {
    call(
        &search(options),
        context(server).build(),
        json!({"query": "rust"}),
    )
    .await
}

pub(crate) async fn fetched(
    server: &Server,
    options: WebFetchOptions,
    url: &str,
) -> Result<Value, ToolError> {
    call(
        &fetch(options),
        context(server).build(),
        json!({"url": url}),
    )
    .await
}

#[tokio::test]
async fn a_search_sends_the_policy_and_bounds_and_checks_what_comes_back() {
    let server = Server::json(json!({
    "requestId": "r", "costDollars": {"total": 0.005}, "results": [
        {"url": "https://a.test/1#x", "title": "One\nline", "author": "Ada", "score": 0.9,
         "publishedDate": "2024-01-01T00:00:00.000Z", "text": "first"},
        {"url": "https://evil.test/", "text": "off policy"},
        {"url": "https://a.test/private/2", "text": "denied"},
        {"url": "http://127.0.0.1/admin", "text": "internal"},
        {"url": "no url"}, {"title": "none"},
        {"url": "https://x.b.test/", "highlights": ["h1", "h2"]},
    ]}))
    .await;
    let options = WebSearchOptions::default()
        .policy(policy(&["a.test", "*.b.test"], &["a.test/private"]))
        .search_type("auto")
        .category("news")
        .user_location("DE")
        .max_age_hours(24);
    let output = searched(&server, options).await.expect("results");
    assert_eq!(
        output,
        json!({
            "results": [
                {"url": "https://a.test/1", "title": "One line", "author": "Ada", "score": 0.9,
                 "publishedDate": "2024-01-01T00:00:00.000Z", "text": "first"},
                {"title": "", "url": "https://x.b.test/", "text": "h1\n\nh2", "textSource": "highlights"},
            ],
            "dropped": 5, "costDollars": 0.005, "untrusted": true
        })
    );
    let seen = server.only();
    assert_eq!(header(&seen.head, "x-api-key"), Some(KEY));
    assert_eq!(
        seen.body,
        json!({
            "query": "rust", "type": "auto", "category": "news", "userLocation": "DE", "numResults": 5,
            "includeDomains": ["a.test", "*.b.test"],
            "contents": {"text": {"maxCharacters": 2001}, "maxAgeHours": 24}
        })
    );
}

#[tokio::test]
async fn denied_domains_alone_are_excluded() {
    let server = Server::json(json!({"results": []})).await;
    let options = WebSearchOptions::default().policy(policy(&[], &["evil.test", "*.ads.test"]));
    let output = searched(&server, options).await.expect("results");
    assert_eq!(
        output,
        json!({"results": [], "dropped": 0, "untrusted": true})
    );
    let body = server.only().body;
    assert_eq!(body["excludeDomains"], json!(["evil.test", "*.ads.test"]));
    assert!(body.get("includeDomains").is_none(), "{body}");
}

#[tokio::test]
async fn strict_ends_a_search_at_an_off_policy_result() {
    let server =
        Server::json(json!({"results": [{"url": "https://evil.test/", "text": "x"}]})).await;
    let options = WebSearchOptions::default()
        .policy(policy(&["a.test"], &[]))
        .strict(true);
    let error = searched(&server, options).await.expect_err("strict");
    assert_eq!(error.kind(), ToolErrorKind::PolicyDenied);
    assert!(error.is_refusal(), "{error}");
    assert!(!error.to_json().to_string().contains("evil"), "{error}");
    assert!(error.operator_text().contains("evil.test"), "{error:?}");
}

#[tokio::test]
async fn strict_ends_a_search_at_an_address_that_no_rule_can_be_applied_to() {
    let long = format!("https://a.test/{}", "x".repeat(3_000));
    for (url, ends) in [
        ("https://evil.test:pw@a.test/", true),
        ("https://@a.test/", true),
        ("ftp://a.test/", true),
        ("javascript:alert(1)", true),
        ("https://a..test/", true),
        ("https://a.test/%00", true),
        (long.as_str(), true),
        ("no url", false),
        ("", false),
    ] {
        let server = Server::json(json!({"results": [{"url": url, "text": "x"}]})).await;
        let options = WebSearchOptions::default().strict(true);
        match searched(&server, options).await {
            Err(error) => {
                assert!(ends, "{url}: {error}");
                assert_eq!(error.kind(), ToolErrorKind::PolicyDenied, "{url}: {error}");
            }
            Ok(output) => {
                assert!(!ends, "{url}: {output}");
                assert_eq!(output["dropped"], 1, "{url}");
            }
        }
    }
}

#[tokio::test]
async fn companies_and_people_take_no_exclusions() {
    for (category, sent) in [("company", false), ("people", false), ("news", true)] {
        let server = Server::json(json!({"results": [{"url": "https://evil.test/"}]})).await;
        let options = WebSearchOptions::default()
            .policy(policy(&[], &["evil.test"]))
            .category(category);
        let output = searched(&server, options).await.expect("results");
        assert_eq!(output["dropped"], 1, "the rule holds all the same");
        let body = server.only().body;
        assert_eq!(body.get("excludeDomains").is_some(), sent, "{body}");
    }
}

#[tokio::test]
async fn case_73_a_result_without_text_falls_back_and_says_so() {
    let server = Server::json(json!({"results": [
        {"url": "https://a.test/1", "highlights": ["x"]},
        {"url": "https://a.test/2", "summary": "in short"},
        {"url": "https://a.test/3", "highlights": []},
        {"url": "https://a.test/4", "text": "\u{200b}\u{ad} ", "highlights": ["\u{feff}"], "summary": "seen"},
        {"url": "https://a.test/5", "text": "\u{200b}\u{200d}"},
    ]}))
    .await;
    let output = searched(&server, WebSearchOptions::default())
        .await
        .expect("results");
    assert_eq!(
        output["results"],
        json!([
            {"title": "", "url": "https://a.test/1", "text": "x", "textSource": "highlights"},
            {"title": "", "url": "https://a.test/2", "text": "in short", "textSource": "summary"},
            {"title": "", "url": "https://a.test/3", "text": "(no text of this page is available)"},
            {"title": "", "url": "https://a.test/4", "text": "seen", "textSource": "summary"},
            {"title": "", "url": "https://a.test/5", "text": "(no text of this page is available)"},
        ])
    );
    for (page, expect) in [
        (json!({"text": "\u{200b}", "summary": "seen"}), Some("seen")),
        (json!({"text": "\u{200b}"}), None),
    ] {
        let mut page = page;
        page["url"] = json!("https://a.test/");
        let server = Server::json(json!({"results": [page]})).await;
        let output = fetched(&server, WebFetchOptions::default(), "https://a.test").await;
        match (output, expect) {
            (Ok(output), Some(text)) => assert_eq!(output["text"], text),
            (Err(error), None) => assert_eq!(error.kind(), ToolErrorKind::NotFound),
            (got, _) => panic!("{got:?}"),
        }
    }
}

#[tokio::test]
async fn a_fetch_is_one_request_for_one_page() {
    let server = Server::json(json!({
        "costDollars": {"total": 0.001},
        "results": [{"id": "https://a.test/x", "url": "https://a.test/x", "title": " T ", "text": "body\u{202e}"}],
        "statuses": [{"id": "https://a.test/x", "status": "success"}]}))
    .await;
    let output = fetched(
        &server,
        WebFetchOptions::default(),
        "HTTPS://A.test.:443/y/../x#top",
    )
    .await
    .expect("page");
    assert_eq!(
        output,
        json!({
            "url": "https://a.test/x", "requestedUrl": "https://a.test/x", "redirected": false, "title": "T",
            "text": "body", "truncated": false, "costDollars": 0.001, "untrusted": true
        })
    );
    assert_eq!(
        server.only().body,
        json!({"urls": ["https://a.test/x"], "text": {"maxCharacters": 10001}, "subpages": 0})
    );
}

#[tokio::test]
async fn another_page_than_the_requested_one_is_found_out() {
    let page = |url: &str, id: Option<&str>| json!({"url": url, "id": id, "text": url});
    let asked = "https://a.test/x";
    for (results, expect) in [
        (
            json!([page("https://other.test/", None), page(asked, None)]),
            Ok((asked, false)),
        ),
        (
            json!([
                page("https://other.test/", None),
                page("https://moved.test/x", Some(asked))
            ]),
            Ok(("https://moved.test/x", true)),
        ),
        (
            json!([page("https://moved.test/", None)]),
            Ok(("https://moved.test/", true)),
        ),
        (
            json!([page("https://p.test/", None), page("https://q.test/", None)]),
            Err(ToolErrorKind::Provider),
        ),
        (
            json!([page("https://denied.test/", Some(asked))]),
            Err(ToolErrorKind::PolicyDenied),
        ),
        (
            json!([page("http://127.0.0.1/", Some(asked))]),
            Err(ToolErrorKind::PolicyDenied),
        ),
        (
            json!([page("nothing", Some(asked))]),
            Err(ToolErrorKind::Provider),
        ),
        (
            json!([{"url": asked, "text": " "}]),
            Err(ToolErrorKind::NotFound),
        ),
        (json!([]), Err(ToolErrorKind::Provider)),
    ] {
        let server = Server::json(json!({"results": results.clone()})).await;
        let options = WebFetchOptions::default().policy(policy(&[], &["denied.test"]));
        match (fetched(&server, options, asked).await, expect) {
            (Ok(output), Ok((url, redirected))) => {
                assert_eq!(
                    (&output["url"], &output["redirected"]),
                    (&json!(url), &json!(redirected)),
                    "{results}"
                );
                assert_eq!(
                    (&output["requestedUrl"], &output["text"]),
                    (&json!(asked), &json!(url))
                );
            }
            (Err(error), Err(kind)) => {
                assert_eq!(error.kind(), kind, "{results}: {error}");
                // Where it led is the page's word, and for the operator.
                let words = error.to_json().to_string();
                assert!(
                    !words.contains("denied.test") && !words.contains("127.0"),
                    "{words}"
                );
                if kind == ToolErrorKind::PolicyDenied {
                    assert!(error.operator_text().contains("http"), "{error:?}");
                }
            }
            (got, _) => panic!("{results}: {got:?}"),
        }
    }
}

#[tokio::test]
async fn what_the_policy_refuses_is_not_sent() {
    let server = Server::json(json!({"results": []})).await;
    let options =
        || WebFetchOptions::default().policy(policy(&[], &["denied.test", "a.test/private"]));
    for (url, kind) in [
        ("https://denied.test/", ToolErrorKind::PolicyDenied),
        ("https://DENIED.test./x", ToolErrorKind::PolicyDenied),
        ("https://a.test/%2570rivate", ToolErrorKind::PolicyDenied),
        ("https://a.test:8443/", ToolErrorKind::PolicyDenied),
        ("http://[::ffff:127.0.0.1]/", ToolErrorKind::PolicyDenied),
        ("http://localhost/", ToolErrorKind::PolicyDenied),
        ("https://u:p@a.test/", ToolErrorKind::InvalidInput),
        ("ftp://a.test/", ToolErrorKind::InvalidInput),
        ("a.test", ToolErrorKind::InvalidInput),
        ("", ToolErrorKind::InvalidInput),
    ] {
        let error = fetched(&server, options(), url).await.expect_err(url);
        assert_eq!(error.kind(), kind, "{url}: {error}");
    }
    let nothing =
        WebSearchOptions::default().policy(policy(&[], &[]).allow([""; 0]).expect("none"));
    let error = searched(&server, nothing)
        .await
        .expect_err("nothing is allowed");
    assert_eq!(error.kind(), ToolErrorKind::PolicyDenied);
    assert_eq!(server.connections(), 0);
}
