//! Which key goes to a server, and when.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use sixb_agent::OpenAiModel;
use sixb_tools::{Credential, CredentialError, CredentialProvider, SecretString, async_trait};

use super::{
    ask, builder,
    server::{Server, hello},
    summary,
};

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
