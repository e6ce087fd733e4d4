//! Recorded shapes of answers, and broken ones.

use serde_json::json;

use super::*;

#[test]
fn every_field_of_a_search_is_kept() {
    let answer = json!({
        "requestId": "b5947044", "resolvedSearchType": "neural", "searchType": "auto", "context": "all of it",
        "output": {"content": "x"}, "effectiveFilters": {"a": 1},
        "costDollars": {"total": 0.005, "search": {"neural": 0.005}},
        "results": [{
            "id": "https://a.test/1", "url": "https://a.test/1", "title": "One", "publishedDate": "2024-01-02T00:00:00.000Z",
            "author": null, "score": 0.5, "image": "https://a.test/i.png", "favicon": "https://a.test/f.ico",
            "text": "body", "highlights": ["h"], "highlightScores": [0.25], "summary": "s",
            "subpages": [{"url": "https://a.test/1/sub", "text": "sub"}, 7],
            "extras": {"links": ["https://b.test"]}, "entities": [{"type": "company"}], "newField": {"deep": [1]}
        }]
    });
    let mut response = SearchResponse::read(answer).expect("answer");
    assert_eq!(response.request_id.as_deref(), Some("b5947044"));
    assert_eq!(response.search_type.as_deref(), Some("neural"));
    assert_eq!(response.extra["searchType"], "auto", "both are kept");
    assert_eq!(response.context.as_deref(), Some("all of it"));
    assert_eq!(response.output, Some(json!({"content": "x"})));
    assert_eq!(response.extra["effectiveFilters"], json!({"a": 1}));
    let cost = response.cost_dollars.expect("cost");
    assert_eq!(cost.total, Some(0.005));
    assert!(cost.extra.contains_key("search"));
    let result = response.results.remove(0);
    assert_eq!(
        (result.title.as_deref(), result.author, result.score),
        (Some("One"), None, Some(0.5))
    );
    assert_eq!(
        result.published_date.as_deref(),
        Some("2024-01-02T00:00:00.000Z")
    );
    assert_eq!(
        (result.highlights, result.highlight_scores),
        (vec!["h".to_owned()], vec![0.25])
    );
    assert_eq!(result.subpages[0].text.as_deref(), Some("sub"));
    assert_eq!(result.extras["links"], json!(["https://b.test"]));
    assert_eq!(result.entities, [json!({"type": "company"})]);
    assert_eq!(result.extra["newField"], json!({"deep": [1]}));
    assert_eq!(
        result.extra["subpages"],
        json!([7]),
        "what is no page is kept too"
    );
}

#[test]
fn what_makes_no_sense_spoils_only_itself() {
    let answer = json!({"results": [
        "text", {"title": "no url"}, {"url": " "}, {"url": 7},
        {"url": "https://a.test", "title": 5, "score": "high", "highlights": ["x", 1], "text": "kept"},
    ], "costDollars": "free", "requestId": 9});
    let response = SearchResponse::read(answer).expect("answer");
    assert_eq!((response.results.len(), response.malformed.len()), (1, 4));
    let result = &response.results[0];
    assert_eq!((result.title.as_deref(), result.score), (None, None));
    assert_eq!(result.text.as_deref(), Some("kept"));
    assert_eq!(result.highlights, ["x"]);
    for name in ["title", "score", "highlights"] {
        assert!(result.extra.contains_key(name), "{name}");
    }
    let some = json!({"url": "https://a.test", "highlights": ["h1", null, "h2"], "highlightScores": [1, 2, 3]});
    let some = SearchResult::read(some).expect("page");
    assert_eq!(some.highlights, ["h1", "h2"]);
    assert!(some.highlight_scores.is_empty(), "{some:?}");
    assert_eq!(some.extra["highlightScores"], json!([1, 2, 3]));
    assert_eq!((response.cost_dollars, response.request_id), (None, None));
    assert!(response.extra.contains_key("costDollars"));
}

#[test]
fn statuses_say_how_it_went_with_each_url() {
    let answer = json!({"results": [], "statuses": [
        {"id": "https://a.test/1", "status": "success", "source": "cached"},
        {"id": "https://a.test/2", "status": "error", "error": {"tag": "CRAWL_NOT_FOUND", "httpStatusCode": 404, "more": 1}},
        {"id": "https://a.test/3", "status": "error", "error": {"tag": "CRAWL_TIMEOUT", "httpStatusCode": null}},
        "broken",
    ]});
    let statuses = ContentsResponse::read(answer, None)
        .expect("answer")
        .statuses;
    let seen: Vec<_> = statuses
        .iter()
        .map(|status| {
            (
                status.is_error(),
                status.error_tag.as_deref(),
                status.http_status,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (false, None, None),
            (true, Some("CRAWL_NOT_FOUND"), Some(404)),
            (true, Some("CRAWL_TIMEOUT"), None)
        ]
    );
    assert_eq!(statuses[1].extra["error"], json!({"more": 1}));
    let nameless = json!({"status": "error", "error": {"tag": "CRAWL_NOT_FOUND"}});
    for (statuses, only, expect) in [
        (json!([nameless]), Some("https://a.test"), 1),
        (json!([nameless, nameless]), Some("https://a.test"), 0),
        (json!([nameless]), None, 0),
        (json!([{"id": 7}]), Some("https://a.test"), 0),
    ] {
        let read = ContentsResponse::read(json!({"statuses": statuses.clone()}), only);
        let read = read.expect("answer");
        assert_eq!(read.statuses.len(), expect, "{statuses}");
        assert!(
            read.statuses
                .iter()
                .all(|status| status.id == "https://a.test" && status.is_error())
        );
        assert_eq!(read.extra.contains_key("statuses"), expect == 0);
    }
}

#[test]
fn an_answer_without_results_is_none() {
    for answer in [json!([]), json!({}), json!({"results": {}}), json!(null)] {
        assert!(SearchResponse::read(answer.clone()).is_err(), "{answer}");
    }
    assert!(ContentsResponse::read(json!({"results": "x"}), None).is_err());
    assert!(ContentsResponse::read(json!({"statuses": []}), None).is_ok());
}

#[test]
fn case_73_the_best_text_is_text_then_passages_then_summary() {
    let of = |value: serde_json::Value| SearchResult::read(value).expect("page").best_text();
    let url = "https://a.test";
    for (value, expect) in [
        (
            json!({"url": url, "text": "t", "highlights": ["x"]}),
            Some((TextSource::Text, "t")),
        ),
        (
            json!({"url": url, "highlights": ["x"]}),
            Some((TextSource::Highlights, "x")),
        ),
        (
            json!({"url": url, "text": " ", "highlights": ["x", "y"]}),
            Some((TextSource::Highlights, "x\n\ny")),
        ),
        (
            json!({"url": url, "highlights": [], "summary": "s"}),
            Some((TextSource::Summary, "s")),
        ),
        (json!({"url": url}), None),
    ] {
        assert_eq!(
            of(value.clone()),
            expect.map(|(source, text)| (source, text.to_owned())),
            "{value}"
        );
    }
}
