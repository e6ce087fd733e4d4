//! The key goes to the server and nowhere else.

use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use sixb_agent::{
    Agent, CancellationToken, Model, OpenAiModel, RunRequest, Sixb,
    model::{Message, ModelRequest},
};
use sixb_tools::Credential;

use crate::{
    recorder::Recorder,
    server::{self, Server, answer, data, events, text},
    support::{Fault, follow},
};

const KEY: &str = "sk-planted-7f3a9c";

#[tokio::test]
async fn no_output_holds_the_key_though_the_server_quotes_it() {
    let quoted = json!({"error": {"message": format!("Incorrect API key {KEY}: {}{KEY}", "x".repeat(480)), "code": KEY}});
    let said = text(&format!("Your key is {KEY}."));
    let _alone = crate::LISTENING.lock().await;
    let log = Recorder::default();
    let lines = log.lines();
    let _logging = tracing::subscriber::set_default(log);
    for wire in [
        answer(
            "401 Unauthorized",
            "content-type: application/json\r\n",
            quoted.to_string(),
        ),
        answer("503 Service Unavailable", "retry-after-ms: 1\r\n", KEY),
        events([text("Hi"), data(&quoted)]),
        events([said, server::finish("stop")]),
        events([text("Hi"), format!("data: {{{KEY}\n\n")]),
        answer("200 OK", &format!("content-type: {KEY}\r\n"), ""),
        answer(
            "302 Found",
            &format!("location: http://127.0.0.1:1/{KEY}\r\n"),
            KEY,
        ),
    ] {
        let server = Server::start(vec![wire]).await;
        let model = OpenAiModel::builder("test/m")
            .base_url(server.base_url(), Some(Credential::from(KEY.to_owned())))
            .idle_timeout(Duration::from_secs(5))
            .build()
            .expect("model");
        let request = ModelRequest::new("", vec![Message::user("Hi")]);
        let got: Vec<_> = model
            .stream(request, CancellationToken::new())
            .collect()
            .await;
        assert!(server.seen()[0].head.contains(KEY), "the server got it");

        let folder = tempfile::tempdir().expect("folder");
        let sixb = Sixb::builder("p")
            .sandboxes(Fault::Hangs)
            .blobs(sixb_artifacts::store::BlobStore::memory())
            .agent(Agent::builder("a").model(model.clone()))
            .build()
            .expect("project");
        let run = sixb
            .run(RunRequest::new("a", "Hi").transcripts(folder.path()))
            .await
            .expect("run");
        let (events, outcome) = follow(run).await;
        let transcript = outcome.transcript.clone().expect("transcript");
        let mut reader = sixb_agent::transcript::Reader::open(transcript).expect("transcript");
        let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        for shown in [
            format!("{got:?}"),
            format!("{model:?} {model} {sixb:?}"),
            serde_json::to_string(&events).expect("json"),
            format!("{outcome:?}"),
            format!("{records:?}"),
            lines.lock().expect("log").join("\n"),
        ] {
            // A text that is cut must not show a part of it either.
            assert!(!shown.contains("planted"), "{shown}");
        }
    }
    assert!(
        lines
            .lock()
            .expect("log")
            .iter()
            .any(|line| line.contains("made again")),
        "the log is on"
    );
}
