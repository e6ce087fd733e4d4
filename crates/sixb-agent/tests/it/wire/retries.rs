//! Which requests are made again, how often, and after which pause.

use std::time::{Duration, Instant};

use futures::StreamExt;
use serde_json::json;
use sixb_agent::{
    CancellationToken, Model, ModelError, OpenAiModel,
    model::{Message, ModelEvent, ModelRequest},
};

use super::{
    ask, builder, model,
    server::{Answer, Server, answer, data, events, hello, stream_head, text},
    summary,
};

fn busy(status: &str, headers: &str) -> Answer {
    answer(
        status,
        headers,
        json!({"error": {"message": "Busy"}}).to_string(),
    )
}

/// How many retries were told.
fn told(events: &[Result<ModelEvent, ModelError>]) -> usize {
    events
        .iter()
        .filter(|event| matches!(event, Ok(ModelEvent::Retry { .. })))
        .count()
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    for (name, first) in [
        ("429", busy("429 Too Many Requests", "retry-after: 0\r\n")),
        (
            "500",
            busy("500 Internal Server Error", "retry-after-ms: 1\r\n"),
        ),
        ("503", busy("503 Service Unavailable", "retry-after: 0\r\n")),
        ("the connection ends before an answer", vec![stream_head()]),
        ("the connection ends before a status", vec![]),
        (
            "an error in the stream before the first token",
            events([data(
                &json!({"error": {"message": "Busy", "type": "overloaded_error"}}),
            )]),
        ),
    ] {
        let server = Server::start(vec![first, hello()]).await;
        let got = ask(&model(&server)).await;
        assert_eq!(
            (summary(&got).0.as_str(), told(&got)),
            ("Hello", 1),
            "{name}: {got:?}"
        );
        assert_eq!(server.seen().len(), 2, "{name}");
    }
}

#[tokio::test]
async fn what_does_not_pass_is_not() {
    let spent = json!({"error": {"message": "Pay", "code": "insufficient_quota"}}).to_string();
    for (name, first) in [
        ("400", busy("400 Bad Request", "")),
        ("403", busy("403 Forbidden", "")),
        ("no money", answer("429 Too Many Requests", "", spent)),
        (
            "too long a wait",
            busy("429 Too Many Requests", "retry-after: 3600\r\n"),
        ),
        (
            "after the first token",
            events([
                text("Hel"),
                data(&json!({"error": {"message": "Busy", "code": 503}})),
            ]),
        ),
    ] {
        let server = Server::start(vec![first, hello()]).await;
        let got = ask(&model(&server)).await;
        assert!(matches!(got.last(), Some(Err(_))), "{name}: {got:?}");
        assert_eq!((server.seen().len(), told(&got)), (1, 0), "{name}");
    }
}

#[tokio::test]
async fn attempts_are_bounded_and_the_last_error_says_how_many() {
    let server = Server::start(vec![busy(
        "503 Service Unavailable",
        "retry-after-ms: 5\r\n",
    )])
    .await;
    let got = ask(&model(&server)).await;
    assert_eq!((server.seen().len(), told(&got)), (4, 3));
    let (_, _, end) = summary(&got);
    assert!(end.contains("HTTP 503: Busy; tried 4 times"), "{end}");

    let server = Server::start(vec![busy("503 Service Unavailable", "")]).await;
    ask(&builder(&server).max_attempts(1).build().expect("model")).await;
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn retry_after_is_waited_for_and_pauses_grow() {
    let server = Server::start(vec![
        busy("429 Too Many Requests", "retry-after: 1\r\n"),
        busy("500 Oops", ""),
        hello(),
    ])
    .await;
    ask(&model(&server)).await;
    let at: Vec<Instant> = server.seen().iter().map(|seen| seen.at).collect();
    let first = at[1] - at[0];
    assert!(
        first >= Duration::from_millis(990) && first < Duration::from_millis(2_500),
        "{first:?}"
    );
    let second = at[2] - at[1];
    assert!(
        second >= Duration::from_millis(490) && second < Duration::from_millis(2_500),
        "{second:?}"
    );
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_told() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("bind");
    let url = format!("http://{}/v1", listener.local_addr().expect("address"));
    drop(listener);
    let model = OpenAiModel::builder("m")
        .base_url(url, None)
        .max_attempts(2)
        .build()
        .expect("model");
    let got = ask(&model).await;
    let (_, _, end) = summary(&got);
    assert!(
        end.contains("no connection to 127.0.0.1") && end.contains("tried 2 times"),
        "{end}"
    );
    assert_eq!(told(&got), 1);
}

#[tokio::test]
async fn cancelling_ends_a_pause() {
    let server = Server::start(vec![busy("429 Too Many Requests", "retry-after: 30\r\n")]).await;
    let cancel = CancellationToken::new();
    let request = ModelRequest::new("", vec![Message::user("Hi")]);
    let mut stream = model(&server).stream(request, cancel.clone());
    assert!(matches!(
        stream.next().await,
        Some(Ok(ModelEvent::Retry { attempt: 2, .. }))
    ));
    cancel.cancel();
    let begun = Instant::now();
    assert!(matches!(
        stream.next().await,
        Some(Err(ModelError::Cancelled))
    ));
    assert!(begun.elapsed() < Duration::from_secs(1));
}
