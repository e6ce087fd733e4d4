//! What the client sends, and what it makes of good answers.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use serde_json::json;
use sixb_connector_exa::{
    ApiKey, ApiKeyError, ContentsRequest, Exa, ExaError, ExaOptions, SearchRequest, SecretString,
    request::{ContentOptions, Switch},
};

use crate::server::{KEY, Server, answer, header};

#[tokio::test]
async fn a_search_is_one_post_with_the_key_in_its_header() {
    let server = Server::json(
        json!({"requestId": "r1", "results": [{"url": "https://a.test/", "title": "A"}]}),
    )
    .await;
    let exa = server.exa();
    let mut request = SearchRequest::new("rust");
    let mut contents = ContentOptions::default();
    contents.text = Some(Switch::On);
    request.contents = Some(contents);
    let response = exa.search(&request).await.expect("answer");
    assert_eq!(response.results[0].title.as_deref(), Some("A"));

    let seen = server.only();
    assert!(
        seen.head.starts_with("POST /search HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert_eq!(header(&seen.head, "x-api-key"), Some(KEY));
    assert_eq!(header(&seen.head, "authorization"), None);
    assert_eq!(header(&seen.head, "content-type"), Some("application/json"));
    assert_eq!(
        seen.body,
        json!({"query": "rust", "contents": {"text": true}})
    );
    assert!(!format!("{exa:?} {response:?}").contains(KEY));
}

#[tokio::test]
async fn contents_are_one_post() {
    let server = Server::json(
        json!({"results": [], "statuses": [{"id": "https://a.test/", "status": "success"}]}),
    )
    .await;
    let mut request = ContentsRequest::new(["https://a.test/"]);
    request.contents.text = Some(Switch::On);
    let response = server.exa().contents(&request).await.expect("answer");
    assert!(!response.statuses[0].is_error());
    let seen = server.only();
    assert!(
        seen.head.starts_with("POST /contents HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert_eq!(
        seen.body,
        json!({"urls": ["https://a.test/"], "text": true})
    );
}

#[tokio::test]
async fn a_key_that_rotates_is_asked_for_at_each_request() {
    let server = Server::json(json!({"results": []})).await;
    let count = Arc::new(AtomicU32::new(0));
    let counter = count.clone();
    let key = ApiKey::provider(move || {
        let nth = counter.fetch_add(1, SeqCst);
        async move { Ok(SecretString::from(format!("key-{nth}"))) }
    });
    let exa = Exa::new(ExaOptions::new(key).base_url(server.base_url())).expect("client");
    for _ in 0..2 {
        exa.search(&SearchRequest::new("q")).await.expect("answer");
    }
    let keys: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| header(&seen.head, "x-api-key").map(str::to_owned))
        .collect();
    assert_eq!(keys, [Some("key-0".to_owned()), Some("key-1".to_owned())]);
}

#[tokio::test]
async fn without_a_key_nothing_is_sent() {
    let server = Server::json(json!({"results": []})).await;
    let none = ApiKey::provider(|| async { Err(ApiKeyError::new("the vault is closed")) });
    for (key, expect) in [
        (none, "the vault is closed"),
        (ApiKey::from(SecretString::from(" ")), "it is empty"),
        (
            ApiKey::from(SecretString::from(format!("{KEY}\n{KEY}"))),
            "no header may hold",
        ),
    ] {
        let exa = Exa::new(ExaOptions::new(key).base_url(server.base_url())).expect("client");
        let error = exa
            .search(&SearchRequest::new("q"))
            .await
            .expect_err(expect);
        assert!(matches!(error, ExaError::Key { .. }), "{error:?}");
        let text = format!("{error} {error:?}");
        assert!(text.contains(expect) && !text.contains(KEY), "{text}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn blanks_around_a_key_are_no_part_of_it() {
    let quoted = json!({"results": [{"url": "https://a.test", "text": format!("x {KEY} y")}]});
    for key in [format!("{KEY}\t"), format!(" {KEY}\r\n")] {
        let server = Server::json(quoted.clone()).await;
        let options = ExaOptions::new(SecretString::from(key)).base_url(server.base_url());
        let exa = Exa::new(options).expect("client");
        let response = exa.search(&SearchRequest::new("q")).await.expect("answer");
        assert_eq!(response.results[0].text.as_deref(), Some("x [redacted] y"));
        assert_eq!(header(&server.only().head, "x-api-key"), Some(KEY));
    }
}

#[tokio::test]
async fn a_key_that_a_server_quotes_is_taken_out() {
    let escaped: String = KEY
        .chars()
        .map(|c| format!("\\u{:04x}", c as u32))
        .collect();
    let body = format!(
        r#"{{"requestId": "{KEY}", "results": [{{"url": "https://a.test/?k={KEY}", "text": "{escaped}", "{escaped}": 1}}]}}"#
    );
    let server = Server::start([
        answer("200 OK", "", body),
        answer(
            "400 Bad Request",
            "",
            json!({"error": format!("bad key {KEY}"), "tag": KEY, "requestId": KEY}).to_string(),
        ),
    ])
    .await;
    let exa = server.exa();
    let response = exa.search(&SearchRequest::new("q")).await.expect("answer");
    assert!(!format!("{response:?}").contains(KEY), "{response:?}");
    assert_eq!(response.results[0].text.as_deref(), Some("[redacted]"));
    let error = exa.search(&SearchRequest::new("q")).await.expect_err("400");
    assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    assert_eq!(
        error.api().and_then(|told| told.message.as_deref()),
        Some("bad key [redacted]")
    );
}
