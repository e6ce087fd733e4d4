//! Streams as real servers send them, whole and in pieces, and the request that asks for them.

use std::time::{Duration, Instant};

use futures::StreamExt;
use proptest::prelude::*;
use serde_json::json;
use sixb_agent::{
    CancellationToken, Model, Usage,
    model::{Message, ModelEvent, ModelRequest},
};

use super::{
    ask, builder, model,
    server::{self, Piece, Server, events, finish, hello, stream_head, text},
    summary,
};

/// The wire of a step with text and two calls, as OpenAI sends it.
fn recorded() -> String {
    let piece = |delta: serde_json::Value| {
        server::data(
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": "gpt-5.5-2026-01-01",
            "service_tier": "default", "system_fingerprint": null,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}], "usage": null, "obfuscation": "x4f"}),
        )
    };
    let call = |delta: serde_json::Value| piece(json!({"tool_calls": [delta]}));
    [
        piece(json!({"role": "assistant", "content": "", "refusal": null})),
        piece(json!({"content": "Let me "})),
        piece(json!({"content": "look: é€😀."})),
        call(json!({"index": 0, "id": "call_a", "type": "function", "function": {"name": "bash", "arguments": ""}})),
        call(json!({"index": 0, "function": {"arguments": "{\"comm"}})),
        ": keep-alive\n\n".to_owned(),
        call(json!({"index": 0, "function": {"arguments": "and\":\"ls é\"}"}})),
        call(json!({"index": 1, "id": "call_b", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}})),
        finish("tool_calls"),
        server::data(&json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [],
            "usage": {"prompt_tokens": 19, "completion_tokens": 10, "total_tokens": 29, "prompt_tokens_details": {"cached_tokens": 0}}})),
        server::DONE.to_owned(),
    ]
    .concat()
}

fn expected() -> (String, Vec<serde_json::Value>, String) {
    (
        "Let me look: é€😀.".to_owned(),
        vec![
            json!(["call_a", "bash", {"command": "ls é"}]),
            json!(["call_b", "read", {"path": "a"}]),
        ],
        "ToolCalls".to_owned(),
    )
}

#[tokio::test]
async fn text_calls_and_usage_arrive() {
    let server = Server::start(vec![events([recorded()])]).await;
    let got = ask(&model(&server)).await;
    assert_eq!(summary(&got), expected());
    let usage = got.iter().find_map(|event| match event {
        Ok(ModelEvent::Usage(usage)) => Some(*usage),
        _ => None,
    });
    assert_eq!(usage, Some(Usage::new(19, 10)));
}

#[tokio::test]
async fn the_request_is_what_the_wire_wants() {
    let server = Server::start(vec![hello()]).await;
    let model = builder(&server)
        .reasoning_effort("high")
        .field("temperature", json!(0.5))
        .build()
        .expect("model");
    ask(&model).await;
    let seen = server.seen().remove(0);
    assert!(
        seen.head.starts_with("POST /v1/chat/completions HTTP/1.1"),
        "{}",
        seen.head
    );
    assert!(
        seen.head.contains("authorization: Bearer sk-planted"),
        "{}",
        seen.head
    );
    assert_eq!(
        seen.body,
        json!({"model": "test/m", "stream": true, "stream_options": {"include_usage": true}, "reasoning_effort": "high", "temperature": 0.5,
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]})
    );
}

#[tokio::test]
async fn other_forms_of_an_answer_are_read_too() {
    let whole = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]});
    let chunked =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n";
    let body = [text("Hello"), finish("stop")].concat();
    let chunked = format!("{chunked}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (name, wire) in [
        (
            "one that does not stream",
            server::answer(
                "200 OK",
                "content-type: application/json\r\n",
                whole.to_string(),
            ),
        ),
        ("no [DONE]", events([text("Hello"), finish("stop")])),
        (
            "no finish reason",
            events([text("Hello"), server::DONE.to_owned()]),
        ),
        (
            "no last blank line",
            events([text("Hello"), finish("stop").trim_end().to_owned()]),
        ),
        ("chunked", vec![Piece::Bytes(chunked.into_bytes())]),
        ("no content type", server::answer("200 OK", "", &body)),
        (
            "CRLF",
            events([
                text("Hello").replace('\n', "\r\n"),
                finish("stop").replace('\n', "\r\n"),
            ]),
        ),
    ] {
        let server = Server::start(vec![wire]).await;
        let got = ask(&model(&server)).await;
        assert_eq!(
            summary(&got),
            ("Hello".to_owned(), vec![], "Stop".to_owned()),
            "{name}: {got:?}"
        );
    }
}

#[tokio::test]
async fn slow_tokens_are_shown_as_they_come() {
    let mut wire = vec![stream_head()];
    for word in ["one ", "two ", "three "] {
        wire.extend([
            Piece::Bytes(text(word).into()),
            Piece::Pause(Duration::from_millis(150)),
        ]);
    }
    wire.push(Piece::Bytes(finish("stop").into()));
    let server = Server::start(vec![wire]).await;
    let model = model(&server);
    let mut stream = model.stream(
        ModelRequest::new("", vec![Message::user("Hi")]),
        CancellationToken::new(),
    );
    let begun = Instant::now();
    let mut times = Vec::new();
    while let Some(event) = stream.next().await {
        if let Ok(ModelEvent::TextDelta(_)) = event {
            times.push(begun.elapsed());
        }
    }
    assert_eq!(times.len(), 3);
    let spread = times[2] - times[0];
    assert!(
        spread > Duration::from_millis(200),
        "all at once: {times:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_stream_may_be_split_at_any_byte(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let bytes = recorded().into_bytes();
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        // A pause of any length sends what was written as a packet of its own.
        let mut wire = vec![stream_head()];
        for pair in at.windows(2) {
            wire.extend([Piece::Bytes(bytes[pair[0]..pair[1]].to_vec()), Piece::Pause(Duration::from_millis(1))]);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        let got = runtime.block_on(async {
            let server = Server::start(vec![wire]).await;
            ask(&model(&server)).await
        });
        prop_assert_eq!(summary(&got), expected());
    }
}
