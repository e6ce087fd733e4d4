//! `artifacts.put`: its order, what a failure leaves, and what cancellation reaches.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use sixb_artifacts::{
    Budget, BudgetLimits, Digest, FileRef, MediaType, Provenance, RunFiles,
    store::{
        ArtifactError, ArtifactStore, BlobStore, Body, BoxError, CallArtifacts, CancellationToken,
        Materialise,
    },
};

/// A sandbox that keeps files in a list, fails, or never boots.
#[derive(Debug, Default)]
struct Sandbox {
    files: Mutex<Vec<(String, Bytes)>>,
    fails: bool,
    never_boots: bool,
}

#[async_trait]
impl Materialise for Sandbox {
    async fn materialise(&self, path: &str, bytes: Bytes) -> Result<String, BoxError> {
        if self.never_boots {
            std::future::pending::<()>().await;
        }
        if self.fails {
            return Err("the disk is full".into());
        }
        self.files
            .lock()
            .expect("lock")
            .push((path.to_owned(), bytes));
        Ok(format!("/workspace/{path}"))
    }
}

struct Lab {
    sandbox: Arc<Sandbox>,
    run: ArtifactStore,
    cancel: CancellationToken,
}

impl Lab {
    fn new(limits: BudgetLimits, sandbox: Sandbox) -> Self {
        let sandbox = Arc::new(sandbox);
        let run = ArtifactStore::new(
            BlobStore::memory(),
            Budget::new(limits),
            RunFiles::default(),
            sandbox.clone(),
        );
        Self {
            sandbox,
            run,
            cancel: CancellationToken::new(),
        }
    }

    fn small() -> Self {
        Self::new(BudgetLimits::new(10, 15), Sandbox::default())
    }

    fn call(&self) -> CallArtifacts {
        self.run.call("call_1", self.cancel.child_token())
    }

    /// Nothing charged, nothing in the sandbox, nothing in the list.
    fn is_untouched(&self) -> bool {
        self.run.budget().used() == 0
            && self.sandbox.files.lock().expect("lock").is_empty()
            && self.run.files().all().is_empty()
    }
}

fn chunks(chunks: &'static [&'static str]) -> Body {
    Body::stream(
        stream::iter(chunks).map(|chunk| Ok::<_, BoxError>(Bytes::from_static(chunk.as_bytes()))),
    )
}

#[tokio::test]
async fn a_file_is_in_the_store_in_the_sandbox_and_in_the_list() {
    let lab = Lab::small();
    let made = lab
        .call()
        .put(
            chunks(&["a,", "b\n"]),
            "t.csv",
            Some("Text/CSV; header=present"),
        )
        .await
        .expect("put");
    let path = format!(
        ".sixb/agent/artifacts/{}/{}-t.csv",
        &Digest::of(b"call_1").hex()[..16],
        &Digest::of(b"a,b\n").hex()[..12]
    );
    assert_eq!(made.path, format!("/workspace/{path}"));
    assert_eq!(
        made.file.media_type().map(MediaType::as_str),
        Some("text/csv")
    );
    assert_eq!(
        *lab.sandbox.files.lock().expect("lock"),
        [(path, Bytes::from_static(b"a,b\n"))]
    );
    assert_eq!(
        lab.run.blobs().read(&made.file).await.expect("blob"),
        "a,b\n"
    );
    assert_eq!(lab.run.budget().used(), 4);
    let files = lab.run.files().all();
    assert_eq!(
        (
            files.len(),
            files[0].provenance,
            files[0].tool_call_id.as_deref()
        ),
        (1, Provenance::Created, Some("call_1"))
    );
    assert!(lab.run.files().check(&made.file).is_ok());
    assert!(lab.run.files().check(&FileRef::of(b"forged")).is_err());
}

#[tokio::test]
async fn each_refusal_comes_in_its_turn_and_leaves_nothing() {
    let png = "\u{fffd}PNG is not a signature";
    for (body, name, media_type, part) in [
        ("x", "../x", Some("nonsense"), "file name"),
        ("x", "x", Some("nonsense"), "media type"),
        ("0123456789a", "x", Some("image/png"), "at most 10 bytes"),
        (
            "text",
            "x.png",
            Some("image/png"),
            "declared as image/png, but the bytes are text/plain",
        ),
        (
            &png[..4],
            "x",
            Some("application/pdf"),
            "declared as application/pdf",
        ),
    ] {
        let lab = Lab::small();
        let error = lab
            .call()
            .put(body.to_owned(), name, media_type)
            .await
            .expect_err("refused")
            .to_string();
        assert!(error.contains(part), "{error}");
        assert!(lab.is_untouched(), "{error}");
        assert_eq!(
            lab.run
                .blobs()
                .stat(&Digest::of(body.as_bytes()))
                .await
                .expect("stat"),
            None,
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_stream_that_grows_over_the_limit_is_stopped_there() {
    let lab = Lab::small();
    let endless = Body::stream(stream::repeat_with(|| {
        Ok::<_, BoxError>(Bytes::from_static(b"1234"))
    }));
    let error = lab
        .call()
        .put(endless, "x", None)
        .await
        .expect_err("too large")
        .to_string();
    assert!(
        error.contains("12 bytes or more") && error.contains("at most 10 bytes"),
        "{error}"
    );
    assert!(lab.is_untouched());
    let broken = Body::stream(stream::iter([
        Ok(Bytes::from_static(b"1234")),
        Err(BoxError::from("gone")),
    ]));
    lab.call()
        .put(broken, "x", None)
        .await
        .expect_err("the stream failed");
    assert!(lab.is_untouched());
}

#[tokio::test(flavor = "multi_thread")]
async fn case_58_parallel_puts_are_exactly_as_many_as_fit() {
    let lab = Lab::new(BudgetLimits::new(15, 15), Sandbox::default());
    let puts = (0..8_u8).map(|put| {
        let call = lab.call();
        tokio::spawn(async move { call.put(vec![b'a' + put; 10], "x", None).await })
    });
    let results: Vec<_> = futures::future::join_all(puts)
        .await
        .into_iter()
        .map(|put| put.expect("no panic"))
        .collect();
    // One that fits may follow another that gave its bytes back only by failing: here none fails but for the budget.
    assert_eq!(results.iter().filter(|put| put.is_ok()).count(), 1);
    assert!(
        results
            .iter()
            .filter_map(|put| put.as_ref().err())
            .all(|error| matches!(error, ArtifactError::Budget(_)))
    );
    assert_eq!(lab.run.budget().used(), 10);
    // Then a failing put leaves the usage unchanged.
    lab.call()
        .put("abc", "x", Some("image/png"))
        .await
        .expect_err("contradiction");
    assert_eq!(lab.run.budget().used(), 10);
    assert_eq!(lab.sandbox.files.lock().expect("lock").len(), 1);
}

#[tokio::test]
async fn equal_bytes_are_charged_once_also_in_a_full_budget() {
    let lab = Lab::new(BudgetLimits::new(10, 10), Sandbox::default());
    let call = lab.call();
    call.put("0123456789", "a", None).await.expect("put");
    call.put("0123456789", "b", None)
        .await
        .expect("the same bytes");
    call.put_viewed("0123456789".into(), "a", "/workspace/a")
        .await
        .expect("viewed");
    call.put_viewed("0123456789".into(), "a", "/workspace/a")
        .await
        .expect("viewed again");
    call.put("x", "c", None).await.expect_err("full");
    assert_eq!(lab.run.budget().used(), 10);
    let provenance: Vec<_> = lab
        .run
        .files()
        .all()
        .into_iter()
        .map(|file| file.provenance)
        .collect();
    assert_eq!(
        provenance,
        [Provenance::Created, Provenance::Created, Provenance::Viewed],
        "two names, and one that was viewed"
    );
}

#[tokio::test]
async fn a_sandbox_that_fails_leaves_the_blob_to_the_sweep_and_gives_the_bytes_back() {
    let lab = Lab::new(
        BudgetLimits::new(10, 15),
        Sandbox {
            fails: true,
            ..Sandbox::default()
        },
    );
    let error = lab
        .call()
        .put("hello", "x", None)
        .await
        .expect_err("failed");
    assert!(matches!(error, ArtifactError::Sandbox(_)), "{error:?}");
    assert!(lab.is_untouched());
    assert!(
        lab.run
            .blobs()
            .stat(&Digest::of(b"hello"))
            .await
            .expect("stat")
            .is_some()
    );
    assert!(
        lab.run.files().check(&FileRef::of(b"hello")).is_err(),
        "and the reference is not known"
    );
}

#[tokio::test]
async fn cancellation_reaches_every_wait() {
    let waits_for_body = || {
        Body::stream(
            stream::iter([Ok::<_, BoxError>(Bytes::from_static(b"12"))]).chain(stream::pending()),
        )
    };
    for (what, never_boots, body) in [
        ("the body", false, waits_for_body as fn() -> Body),
        ("the sandbox", true, || Body::from("hello")),
    ] {
        let lab = Lab::new(
            BudgetLimits::new(10, 15),
            Sandbox {
                never_boots,
                ..Sandbox::default()
            },
        );
        let cancel = lab.cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(30)).await;
            cancel.cancel();
        });
        let put = tokio::time::timeout(Duration::from_secs(10), lab.call().put(body(), "x", None))
            .await
            .expect("it ends");
        assert!(
            matches!(put, Err(ArtifactError::Cancelled)),
            "{what}: {put:?}"
        );
        assert!(lab.is_untouched(), "{what}");
        // And before anything else: not even the name is looked at.
        let put = lab.call().put("x", "../x", None).await;
        assert!(
            matches!(put, Err(ArtifactError::Cancelled)),
            "{what}: {put:?}"
        );
    }
}

#[tokio::test]
async fn a_dropped_put_gives_its_bytes_back() {
    let lab = Lab::new(
        BudgetLimits::new(10, 15),
        Sandbox {
            never_boots: true,
            ..Sandbox::default()
        },
    );
    let call = lab.call();
    let put = tokio::time::timeout(Duration::from_millis(50), call.put("hello", "x", None)).await;
    assert!(put.is_err(), "it waits for the sandbox");
    assert!(lab.is_untouched());
}
