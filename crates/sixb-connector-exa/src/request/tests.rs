//! Request bodies, as they go over the wire.

use serde_json::{Value, json};

use super::*;

/// Names that Exa gave up, at any depth.
const DEPRECATED: &[&str] = &[
    "useAutoprompt",
    "numSentences",
    "highlightsPerUrl",
    "livecrawl",
    "ids",
];

fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            found.push(name.clone());
            names(value, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Every field of it.
fn contents() -> ContentOptions {
    ContentOptions {
        text: Some(Switch::With(TextOptions {
            max_characters: Some(2_000),
            include_html_tags: Some(false),
            verbosity: some("compact"),
            include_sections: vec!["body".into()],
            exclude_sections: vec!["footer".into()],
        })),
        highlights: Some(Switch::With(HighlightOptions {
            query: some("key findings"),
            max_characters: Some(500),
        })),
        summary: Some(Switch::With(SummaryOptions {
            query: some("main point"),
            schema: json!({"type": "object"}).as_object().cloned(),
        })),
        livecrawl_timeout: Some(5_000),
        max_age_hours: Some(-1),
        subpages: Some(0),
        subpage_target: vec!["docs".into()],
        extras: Some(ExtraOptions {
            links: Some(1),
            image_links: Some(2),
            rich_links: Some(3),
            rich_image_links: Some(4),
            code_blocks: Some(5),
        }),
        context: Some(Switch::With(ContextOptions {
            max_characters: Some(9),
        })),
    }
}

fn search() -> SearchRequest {
    SearchRequest {
        query: "rust agents".into(),
        search_type: some("auto"),
        category: some("news"),
        user_location: some("DE"),
        num_results: Some(5),
        include_domains: vec!["a.test".into(), "*.b.test".into()],
        exclude_domains: vec!["c.test/x".into()],
        start_crawl_date: some("2024-01-01"),
        end_crawl_date: some("2025-01-01"),
        start_published_date: some("2024-02-01"),
        end_published_date: some("2025-02-01"),
        include_text: vec!["tokio".into()],
        exclude_text: vec!["node".into()],
        moderation: Some(true),
        compliance: some("hipaa"),
        additional_queries: vec!["rust ai".into()],
        system_prompt: some("be brief"),
        output_schema: Some(json!({"type": "text"})),
        contents: Some(contents()),
    }
}

fn body(request: &impl Serialize) -> Value {
    serde_json::to_value(request).expect("json")
}

fn shared() -> Value {
    json!({
        "text": {"maxCharacters": 2000, "includeHtmlTags": false, "verbosity": "compact",
            "includeSections": ["body"], "excludeSections": ["footer"]},
        "highlights": {"query": "key findings", "maxCharacters": 500},
        "summary": {"query": "main point", "schema": {"type": "object"}},
        "livecrawlTimeout": 5000, "maxAgeHours": -1, "subpages": 0, "subpageTarget": ["docs"],
        "extras": {"links": 1, "imageLinks": 2, "richLinks": 3, "richImageLinks": 4, "codeBlocks": 5},
        "context": {"maxCharacters": 9}
    })
}

#[test]
fn case_70_contents_are_nested_in_a_search_and_at_the_top_of_contents() {
    assert_eq!(
        body(&search()),
        json!({
            "query": "rust agents", "type": "auto", "category": "news", "userLocation": "DE", "numResults": 5,
            "includeDomains": ["a.test", "*.b.test"], "excludeDomains": ["c.test/x"],
            "startCrawlDate": "2024-01-01", "endCrawlDate": "2025-01-01",
            "startPublishedDate": "2024-02-01", "endPublishedDate": "2025-02-01",
            "includeText": ["tokio"], "excludeText": ["node"], "moderation": true, "compliance": "hipaa",
            "additionalQueries": ["rust ai"], "systemPrompt": "be brief", "outputSchema": {"type": "text"},
            "contents": shared()
        })
    );

    let request = ContentsRequest {
        urls: vec!["https://a.test/".into()],
        compliance: some("hipaa"),
        contents: contents(),
    };
    let mut expect = shared();
    expect["urls"] = json!(["https://a.test/"]);
    expect["compliance"] = json!("hipaa");
    assert_eq!(body(&request), expect);
}

#[test]
fn case_71_names_that_exa_gave_up_are_never_sent() {
    assert_eq!(body(&SearchRequest::new("q")), json!({"query": "q"}));
    assert_eq!(
        body(&ContentsRequest::new(["https://a.test/"])),
        json!({"urls": ["https://a.test/"]})
    );
    let mut sent = Vec::new();
    names(&body(&search()), &mut sent);
    names(&shared(), &mut sent);
    for name in DEPRECATED {
        assert!(!sent.iter().any(|sent| sent == name), "{name}");
    }
}

#[test]
fn what_is_just_on_is_true() {
    let contents = ContentOptions {
        text: Some(Switch::On),
        highlights: Some(Switch::On),
        ..ContentOptions::default()
    };
    assert_eq!(body(&contents), json!({"text": true, "highlights": true}));
}

#[test]
fn a_request_without_sense_is_not_sent() {
    let mut none = SearchRequest::new("q");
    none.num_results = Some(0);
    for (checked, expect) in [
        (SearchRequest::new(" \n").check(), "has a blank query"),
        (none.check(), "asks for no results"),
        (ContentsRequest::default().check(), "names no page"),
        (ContentsRequest::new([" "]).check(), "has a blank URL"),
    ] {
        let error = checked.expect_err(expect).to_string();
        assert!(error.ends_with(expect), "{error}");
    }
}
