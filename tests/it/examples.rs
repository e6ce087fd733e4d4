//! The examples do what they say.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

#[expect(dead_code, reason = "its `main` is for people")]
#[path = "../../crates/sixb/examples/axum_events.rs"]
mod axum_events;
#[expect(dead_code, reason = "its `main` is for people")]
#[path = "../../crates/sixb/examples/connector_tool.rs"]
mod connector_tool;
#[expect(dead_code, reason = "its `main` is for people")]
#[path = "../../crates/sixb/examples/custom_tool.rs"]
mod custom_tool;
#[expect(dead_code, reason = "its `main` is for people")]
#[path = "../../crates/sixb/examples/image_tool.rs"]
mod image_tool;

#[tokio::test]
async fn a_custom_tool() {
    let answer = custom_tool::answer().await.expect("answer");
    assert_eq!(
        answer.trim_end(),
        "2 pieces cost 38.0 €, 40 pieces 90.0 €. It all began on a Thursday"
    );
}

#[tokio::test]
async fn a_tool_behind_a_connector() {
    let answer = connector_tool::answer().await.expect("answer");
    assert_eq!(answer, "Ada ordered 12 times; Bob: no customer `Bob`.");
}

#[tokio::test]
async fn a_tool_that_makes_an_image() {
    let outcome = image_tool::answer().await.expect("answer");
    let [file] = &outcome.files[..] else {
        panic!("{outcome:?}");
    };
    assert_eq!(file.path, "swatch.png");
    assert_eq!(
        outcome.text,
        format!("A calm blue, in {}\nbytes.", file.size_bytes)
    );
}

async fn post(address: &str, task: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("connect");
    let request = format!(
        "POST /runs HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{task}",
        task.len()
    );
    stream.write_all(request.as_bytes()).await.expect("request");
    stream
}

#[tokio::test]
async fn events_over_http() {
    let sixb = axum_events::project().expect("project");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address").to_string();
    let server =
        tokio::spawn(axum::serve(listener, axum_events::router(sixb.clone())).into_future());
    let mut text = String::new();
    let mut stream = post(&address, "Count to three.").await;
    let read = stream.read_to_string(&mut text);
    tokio::time::timeout(Duration::from_secs(30), read)
        .await
        .expect("in time")
        .expect("answer");
    for part in [
        "text/event-stream",
        "event: state",
        "event: textDelta",
        "event: toolCallFinished",
        "event: finished",
        "1 2 3",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let mut text = String::new();
    post(&address, " ")
        .await
        .read_to_string(&mut text)
        .await
        .expect("answer");
    assert!(
        text.contains("400 Bad Request") && text.contains("the task is blank"),
        "{text}"
    );

    // A client that goes away ends its run: `close` would wait for it otherwise.
    drop(post(&address, "Count to three.").await);
    tokio::time::timeout(Duration::from_secs(20), sixb.close())
        .await
        .expect("nothing goes on");
    server.abort();
}
