//! Blobs over the wire of S3: what holds in memory holds here, and what a bad line or a failing server leaves.

use std::{sync::Arc, time::Duration};

use futures::TryStreamExt;
use object_store::{RetryConfig, aws::AmazonS3Builder};
use sixb_artifacts::{
    Digest, FileRef, MediaType,
    store::{BlobError, BlobStore, CancellationToken, Disposition},
};

use super::s3_server::{BUCKET, Fault, Line, S3Server, open, options, request};

const MIB: usize = 1 << 20;

/// A store that tries everything once.
fn once(port: u16) -> BlobStore {
    let mut builder = AmazonS3Builder::new().with_bucket_name(BUCKET);
    for (name, value) in options(port) {
        builder = builder.with_config(name.parse().expect("option"), value);
    }
    let retry = RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    };
    BlobStore::new(Arc::new(builder.with_retry(retry).build().expect("store")))
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_keeps_blobs_like_any_store() {
    let server = S3Server::start().await;
    let blobs = server.blobs();
    let body: Vec<u8> = (0..3 * MIB).map(|at| (at % 251) as u8).collect();
    let file = blobs.put(body.clone()).await.expect("put");
    assert_eq!(file, FileRef::of(&body));
    assert_eq!(blobs.put(body.clone()).await.expect("put again"), file);
    assert_eq!(blobs.read(&file).await.expect("read"), body);
    let range = blobs
        .open_range(&file, 1_000..1_010)
        .await
        .expect("range")
        .try_collect::<Vec<_>>()
        .await
        .expect("read");
    assert_eq!(range.concat(), body[1_000..1_010]);
    let stat = blobs
        .stat(&file.digest())
        .await
        .expect("stat")
        .expect("there");
    assert_eq!(stat.size, body.len() as u64);
    assert_eq!(
        blobs.stat(&Digest::of(b"nothing")).await.expect("stat"),
        None
    );
    let error = blobs
        .read(&FileRef::of(b"nothing"))
        .await
        .expect_err("not there");
    assert!(matches!(error, BlobError::NotFound { .. }), "{error:?}");

    // Eight at once, of three contents.
    let puts = (0..8_u8).map(|put| {
        let blobs = blobs.clone();
        tokio::spawn(async move { blobs.put(vec![put % 3; MIB]).await.expect("put") })
    });
    for file in futures::future::join_all(puts).await {
        let file = file.expect("no panic");
        assert_eq!(blobs.read(&file).await.expect("read").len(), MIB);
    }

    // Ages are told in seconds here.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    blobs.put(body.clone()).await.expect("its age begins anew");
    let cancel = CancellationToken::new();
    let report = blobs.sweep(
        |digest| *digest == FileRef::of(&vec![0; MIB]).digest(),
        Duration::from_secs(1),
        &cancel,
    );
    let report = report.await.expect("swept");
    assert_eq!((report.seen, report.removed), (4, 2));
    assert!(
        blobs.stat(&file.digest()).await.expect("stat").is_some(),
        "the young one"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_upload_publishes_nothing() {
    let server = S3Server::start().await;
    let body = vec![7; 8 * MIB];
    let digest = Digest::of(&body);
    for fault in [
        Fault::CutAfter(100),
        Fault::CutAfter(MIB),
        Fault::CutAfter(7 * MIB),
    ] {
        let line = Line::to(&server, fault).await;
        let error = once(line.port)
            .put(body.clone())
            .await
            .expect_err("the line is cut");
        assert!(matches!(error, BlobError::Store { .. }), "{error:?}");
        assert_eq!(
            server.blobs().stat(&digest).await.expect("stat"),
            None,
            "{fault:?}"
        );
        assert_eq!(
            once(server.port).stat(&digest).await.expect("stat"),
            None,
            "{fault:?}"
        );
        line.set(Fault::None);
        let file = once(line.port)
            .put("small")
            .await
            .expect("the line is whole again");
        assert_eq!(once(server.port).read(&file).await.expect("read"), "small");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_upload_publishes_nothing() {
    let server = S3Server::start().await;
    let body = vec![8; 8 * MIB];
    let digest = Digest::of(&body);
    let line = Line::to(&server, Fault::StallAfter(MIB)).await;
    let put = tokio::time::timeout(Duration::from_secs(2), once(line.port).put(body)).await;
    assert!(put.is_err(), "it waits for the line");
    drop(line);
    assert_eq!(once(server.port).stat(&digest).await.expect("stat"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_for_a_while_is_asked_again() {
    let server = S3Server::start().await;
    let line = Line::to(&server, Fault::ServerError(3)).await;
    let file = open(line.port).put("hello").await.expect("the fourth try");
    assert_eq!(server.blobs().read(&file).await.expect("read"), "hello");
    // One that goes on failing is an error in bounded time, and publishes nothing.
    line.set(Fault::ServerError(1_000));
    let put = tokio::time::timeout(Duration::from_secs(60), open(line.port).put("other"))
        .await
        .expect("it gives up");
    assert!(
        matches!(
            put,
            Err(BlobError::Store {
                op: "putting a blob",
                ..
            })
        ),
        "{put:?}"
    );
    assert_eq!(
        server
            .blobs()
            .stat(&Digest::of(b"other"))
            .await
            .expect("stat"),
        None
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn case_56_a_link_expires_and_the_id_gives_a_new_one() {
    let server = S3Server::start().await;
    let blobs = server.blobs();
    let name = "größe.txt".parse().expect("name");
    let file = blobs
        .put("hello")
        .await
        .expect("put")
        .with_media_type(MediaType::TEXT)
        .with_file_name(name);
    let second = Duration::from_secs(1);
    let error = blobs
        .presign(&file, second, Disposition::Attachment)
        .await
        .expect_err("not allowed")
        .to_string();
    assert!(error.contains("with_presigned_links"), "{error}");

    let blobs = blobs.with_presigned_links(Duration::from_secs(3_600));
    let first = blobs
        .presign(&file, second, Disposition::Attachment)
        .await
        .expect("signed");
    let expires = |url: &str| {
        url.split("X-Amz-Expires=")
            .nth(1)
            .and_then(|rest| rest.split('&').next())
            .map(str::to_owned)
    };
    assert_eq!(expires(first.expose_url().as_str()).as_deref(), Some("1"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(first.expires() < std::time::SystemTime::now());

    // The id is what a history keeps: it is signed again when it is read.
    let kept: FileRef =
        serde_json::from_str(&serde_json::to_string(&file).expect("json")).expect("reads");
    let again = blobs
        .presign(&kept, second * 60, Disposition::Attachment)
        .await
        .expect("signed again");
    assert_ne!(again.expose_url(), first.expose_url());
    let url = again.expose_url();
    let answer = request(
        server.port,
        &format!("GET {}?{}", url.path(), url.query().expect("signed")),
        "",
    )
    .await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nhello"),
        "{answer}"
    );
    let lower = answer.to_ascii_lowercase();
    assert!(lower.contains("content-disposition: attachment; filename=\"gr__e.txt\"; filename*=utf-8''gr%c3%b6%c3%9fe.txt"), "{answer}");
    assert!(
        lower.contains("content-type: text/plain; charset=utf-8"),
        "{answer}"
    );
    for part in [
        "response-content-type",
        "response-content-disposition",
        "X-Amz-Signature",
    ] {
        assert!(url.as_str().contains(part), "{part} is signed");
    }

    // No link outlives its file, and a file that is gone has none.
    let short = server.blobs().with_presigned_links(Duration::from_secs(30));
    let link = short
        .presign(&file, Duration::from_secs(3_600), Disposition::Inline)
        .await
        .expect("signed");
    let seconds: u64 = expires(link.expose_url().as_str())
        .expect("expires")
        .parse()
        .expect("seconds");
    assert!((1..=30).contains(&seconds), "{seconds}");
    let gone = blobs
        .presign(&FileRef::of(b"gone"), second, Disposition::Inline)
        .await;
    assert!(matches!(gone, Err(BlobError::NotFound { .. })), "{gone:?}");
    let old = server.blobs().with_presigned_links(Duration::ZERO);
    assert!(matches!(
        old.presign(&file, second, Disposition::Inline).await,
        Err(BlobError::NotFound { .. })
    ));
}
