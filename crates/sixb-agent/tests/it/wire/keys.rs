//! The key goes to the server and nowhere else.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use serde_json::json;
use sixb_agent::{Agent, OpenAiModel, RunRequest, Sixb};
use sixb_tools::{Credential, CredentialError, CredentialProvider, SecretString, async_trait};

use super::{
    KEY, ask, builder, model,
    server::{Server, answer, data, events, hello, text},
    summary,
};
use crate::support::{Fault, Recorder, follow};

#[tokio::test]
async fn no_output_holds_the_key_though_the_server_quotes_it() {
    let quoted = json!({"error": {"message": format!("Incorrect API key {KEY}: {}{KEY}", "x".repeat(480)), "code": KEY}});
    let said = text(&format!("Your key is {KEY}."));
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
        events([said, super::server::finish("stop")]),
        events([text("Hi"), format!("data: {{{KEY}\n\n")]),
        answer("200 OK", &format!("content-type: {KEY}\r\n"), ""),
        answer(
            "302 Found",
            &format!("location: http://127.0.0.1:1/{KEY}\r\n"),
            KEY,
        ),
    ] {
        let server = Server::start(vec![wire]).await;
        let model = model(&server);
        let got = ask(&model).await;
        assert!(server.seen()[0].head.contains(KEY), "the server got it");

        let folder = tempfile::tempdir().expect("folder");
        let sixb = Sixb::builder("p")
            .sandboxes(Fault::Hangs)
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
            format!("{:?}", summary(&got)),
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

#[derive(Default)]
struct Rotating(Arc<AtomicU32>);

#[async_trait]
impl CredentialProvider for Rotating {
    async fn resolve(&self) -> Result<SecretString, CredentialError> {
        match self.0.fetch_add(1, SeqCst) {
            2 => Err(CredentialError::new("the vault is closed")),
            n => Ok(format!("key-{n}").into()),
        }
    }
}

#[tokio::test]
async fn a_key_that_rotates_is_resolved_at_each_request() {
    let server = Server::start(vec![hello()]).await;
    let model = builder(&server)
        .base_url(
            server.base_url(),
            Some(Credential::provider(Rotating::default())),
        )
        .build()
        .expect("model");
    let ends: Vec<_> = [ask(&model).await, ask(&model).await, ask(&model).await]
        .map(|got| summary(&got).2)
        .into();
    assert!(ends[2].contains("the vault is closed"), "{ends:?}");
    let sent: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| {
            seen.head.contains("Bearer key-0") as u32
                + 2 * seen.head.contains("Bearer key-1") as u32
        })
        .collect();
    assert_eq!(sent, [1, 2], "one request each, none without a key");
}

#[tokio::test]
async fn a_server_without_a_key_gets_none_and_proxies_of_the_environment_are_not_used() {
    let server = Server::start(vec![hello()]).await;
    let model = OpenAiModel::builder("m")
        .base_url(server.base_url(), None)
        .build()
        .expect("model");
    ask(&model).await;
    assert!(
        !server.seen()[0]
            .head
            .to_ascii_lowercase()
            .contains("authorization")
    );
    let bad = OpenAiModel::builder("m")
        .base_url(
            server.base_url(),
            Some(Credential::from("sk-planted\n".to_owned())),
        )
        .build()
        .expect("model");
    let (_, _, end) = summary(&ask(&bad).await);
    assert!(
        end.contains("the key has characters that no header may hold") && !end.contains("planted"),
        "{end}"
    );
}
