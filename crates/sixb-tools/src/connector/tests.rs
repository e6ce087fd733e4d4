use std::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::{Duration, Instant},
};

use secrecy::ExposeSecret;
use tokio_util::sync::CancellationToken;

use super::*;

#[derive(Debug)]
struct Crm(u32);

const CRM: ConnectorHandle<Crm> = ConnectorHandle::new("crm");

/// A connector that counts its attempts, takes a while, and fails the first `failures` of them.
fn counted(failures: u32, takes: Duration) -> (Connectors, Arc<AtomicU32>) {
    let attempts = Arc::new(AtomicU32::new(0));
    let counter = attempts.clone();
    let connector = Connector::new(&CRM, move || {
        let attempt = counter.fetch_add(1, SeqCst);
        async move {
            tokio::time::sleep(takes).await;
            if attempt < failures {
                return Err(ToolError::of(ToolErrorKind::Network));
            }
            Ok(Crm(attempt))
        }
    });
    (Connectors::new([connector]).expect("unique"), attempts)
}

fn context(connectors: &Connectors) -> ToolContext {
    ToolContext::builder("c")
        .extension(connectors.clone())
        .build()
}

#[tokio::test]
async fn a_client_is_made_once_however_many_calls_ask_at_once() {
    let (connectors, attempts) = counted(0, Duration::from_millis(20));
    assert_eq!(
        attempts.load(SeqCst),
        0,
        "nothing is made before it is needed"
    );
    let asked = (0..20).map(|_| {
        let cx = context(&connectors);
        async move { cx.connector(&CRM).await.expect("client").0 }
    });
    assert_eq!(futures::future::join_all(asked).await, [0; 20]);
    assert_eq!(attempts.load(SeqCst), 1);
}

#[tokio::test]
async fn a_failed_connect_is_not_kept() {
    let (connectors, attempts) = counted(2, Duration::ZERO);
    for expect in [
        Err(ToolErrorKind::Network),
        Err(ToolErrorKind::Network),
        Ok(2),
        Ok(2),
    ] {
        let got = context(&connectors).connector(&CRM).await;
        assert_eq!(got.map(|crm| crm.0).map_err(|error| error.kind()), expect);
    }
    assert_eq!(attempts.load(SeqCst), 3);
}

#[tokio::test]
async fn cancelling_ends_a_connect_and_another_caller_takes_over() {
    let (connectors, attempts) = counted(0, Duration::from_millis(200));
    let cancel = CancellationToken::new();
    let cx = ToolContext::builder("c")
        .extension(connectors.clone())
        .cancel(cancel.clone())
        .build();
    let first = tokio::spawn(async move { cx.connector(&CRM).await.map(|crm| crm.0) });
    let second = context(&connectors);
    let second = tokio::spawn(async move { second.connector(&CRM).await.map(|crm| crm.0) });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let begun = Instant::now();
    cancel.cancel();
    let error = first.await.expect("task").expect_err("cancelled");
    assert_eq!(error.kind(), ToolErrorKind::Cancelled);
    assert!(
        begun.elapsed() < Duration::from_millis(150),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(second.await.expect("task").expect("client"), 1);
    assert_eq!(attempts.load(SeqCst), 2);
}

#[tokio::test]
async fn a_deadline_ends_a_connect() {
    let (connectors, _) = counted(0, Duration::from_secs(60));
    let cx = ToolContext::builder("c")
        .extension(connectors)
        .deadline(Instant::now() + Duration::from_millis(20))
        .build();
    let error = cx.connector(&CRM).await.expect_err("late");
    assert_eq!(error.kind(), ToolErrorKind::Timeout);
}

#[tokio::test]
async fn what_is_not_set_up_is_said_to_the_operator_in_full() {
    let (connectors, _) = counted(0, Duration::ZERO);
    let bare = ToolContext::builder("c").build();
    for (cx, handle, expect) in [
        (&bare, "crm", "none is registered"),
        (
            &context(&connectors),
            "erp",
            "no connector is called `erp`; registered: crm",
        ),
    ] {
        let error = cx
            .connector(&ConnectorHandle::<Crm>::named(handle))
            .await
            .expect_err(handle);
        assert_eq!(
            error.model_text(),
            format!("The connector `{handle}` is not set up in this project.")
        );
        assert!(error.operator_text().contains(expect), "{error:?}");
    }
    let other = ConnectorHandle::<String>::new("crm");
    let error = context(&connectors)
        .connector(&other)
        .await
        .expect_err("type");
    assert!(
        error
            .operator_text()
            .contains("the tool's handle wants alloc::string::String"),
        "{error:?}"
    );
}

#[test]
fn a_name_is_taken_once() {
    let connector = || Connector::new(&CRM, || async { Ok(Crm(0)) });
    let error = Connectors::new([connector(), connector()]).expect_err("twice");
    assert_eq!(
        error.to_string(),
        "two connectors are called `crm`: rename one"
    );
}

struct Rotating(AtomicU32);

#[crate::async_trait]
impl CredentialProvider for Rotating {
    async fn resolve(&self) -> Result<secrecy::SecretString, CredentialError> {
        Ok(format!("sk-{}", self.0.fetch_add(1, SeqCst)).into())
    }
}

#[tokio::test]
async fn a_provider_is_asked_each_time_and_no_secret_shows() {
    let rotating = Credential::provider(Rotating(AtomicU32::new(0)));
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.push(
            rotating
                .resolve()
                .await
                .expect("secret")
                .expose_secret()
                .to_owned(),
        );
    }
    assert_eq!(seen, ["sk-0", "sk-1"]);
    let fixed = Credential::from("sk-planted".to_owned());
    let connector = Connector::new(&CRM, {
        let fixed = fixed.clone();
        move || {
            let key = fixed.clone();
            async move { key.resolve().await.map(|_| Crm(0)).map_err(ToolError::from) }
        }
    });
    let connectors = Connectors::new([connector.clone()]).expect("unique");
    for shown in [
        format!("{fixed:?}"),
        format!("{connector:?}"),
        format!("{connectors:?}"),
    ] {
        assert!(!shown.contains("planted"), "{shown}");
    }
}
