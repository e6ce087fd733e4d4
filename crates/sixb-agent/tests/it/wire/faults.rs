//! What a server does wrong, and clients that go away.

use std::time::{Duration, Instant};

use futures::StreamExt;
use serde_json::json;
use sixb_agent::{
    CancellationToken, Model, ModelError,
    model::{Message, ModelEvent, ModelRequest},
};

use super::{
    ask, builder, model,
    server::{Piece, Server, answer, data, events, stream_head, text},
    summary,
};

#[tokio::test]
async fn what_is_wrong_is_named() {
    let json_type = "content-type: application/json\r\n";
    for (wire, text_before, expect) in [
        (answer("200 OK", "content-type: text/html\r\n", "<html>"), "", "the server sent text/html where an event stream was asked for"),
        (answer("307 Temporary Redirect", "location: http://127.0.0.1:1/\r\n", ""), "", "redirects are not followed"),
        (answer("401 Unauthorized", json_type, json!({"error": {"message": "Bad key", "code": "invalid_api_key"}}).to_string()), "", "HTTP 401: Bad key (invalid_api_key)"),
        (answer("404 Not Found", "content-type: text/plain\r\n", "no such route"), "", "HTTP 404: no such route"),
        (answer("400 Bad Request", json_type, json!([{"error": {"message": "Listed"}}]).to_string()), "", "HTTP 400: Listed"),
        (answer("400 Bad Request", json_type, "x".repeat(1 << 20)), "", "HTTP 400: xxx"),
        (events([text("Hel"), "data: {\"choices\": [\n\n".to_owned()]), "Hel", "is no JSON"),
        (events([text("Hel"), "data: 7\n\n".to_owned()]), "Hel", "is no completion"),
        (events([text("Hel"), data(&json!({"error": {"message": "Overloaded", "type": "overloaded_error"}}))]), "Hel", "unavailable: Overloaded"),
        (events([text("Hel")]), "Hel", "ended in the middle of the answer"),
        (events([text("Hel"), format!("data: {}", "x".repeat(5 << 20))]), "Hel", "event is over its limit of 4194304 bytes"),
        (answer("200 OK", json_type, "{"), "", "is no JSON"),
        (vec![Piece::Bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n".to_vec()), Piece::Bytes(text("Hel").into())], "Hel", "the connection failed"),
    ] {
        let server = Server::start(vec![wire]).await;
        let got = ask(&model(&server)).await;
        let (said, _, end) = summary(&got);
        assert!(end.contains(expect), "{expect}: {end}");
        assert_eq!(said, text_before, "what came before is kept");
        assert!(end.len() < 700, "{} characters", end.len());
        assert_eq!(server.seen().len(), 1, "{expect}: asked once");
    }
}

#[tokio::test]
async fn an_endless_stream_of_noise_is_bounded() {
    let noise = format!(": {}\n\n", "x".repeat(60_000));
    let server = Server::start(vec![vec![
        stream_head(),
        Piece::Bytes(text("Hel").into()),
        Piece::Forever(noise.into()),
    ]])
    .await;
    let (_, _, end) = summary(&ask(&model(&server)).await);
    assert!(
        end.contains("stream is over its limit of 67108864 bytes"),
        "{end}"
    );
    server.gone().await;
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let server = Server::start(vec![vec![
        stream_head(),
        Piece::Bytes(text("Hel").into()),
        Piece::Hang,
    ]])
    .await;
    let model = builder(&server)
        .idle_timeout(Duration::from_millis(200))
        .build()
        .expect("model");
    let (said, _, end) = summary(&ask(&model).await);
    assert_eq!(
        (said.as_str(), end.as_str()),
        (
            "Hel",
            "the model is unavailable: the server was silent for 200 ms"
        )
    );
    server.gone().await;
}

fn request() -> ModelRequest {
    ModelRequest::new("", vec![Message::user("Hi")])
}

#[tokio::test]
async fn cancelling_or_dropping_drops_the_connection_at_once() {
    for in_answer in [false, true] {
        for by_token in [false, true] {
            let wire = match in_answer {
                true => vec![stream_head(), Piece::Bytes(text("Hel").into()), Piece::Hang],
                false => vec![Piece::Hang],
            };
            let server = Server::start(vec![wire]).await;
            let cancel = CancellationToken::new();
            let mut stream = model(&server).stream(request(), cancel.clone());
            let first = async {
                match in_answer {
                    true => assert!(matches!(
                        stream.next().await,
                        Some(Ok(ModelEvent::TextDelta(_)))
                    )),
                    false => {
                        let _ =
                            tokio::time::timeout(Duration::from_millis(200), stream.next()).await;
                    }
                }
            };
            first.await;
            let begun = Instant::now();
            if by_token {
                cancel.cancel();
                assert!(matches!(
                    stream.next().await,
                    Some(Err(ModelError::Cancelled))
                ));
                assert!(stream.next().await.is_none());
            } else {
                drop(stream);
            }
            tokio::time::timeout(Duration::from_secs(2), server.gone())
                .await
                .expect("the connection is dropped");
            assert!(
                begun.elapsed() < Duration::from_secs(1),
                "{:?}",
                begun.elapsed()
            );
        }
    }
}
