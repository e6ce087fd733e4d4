//! Blobs in memory and in a local folder: what holds in both, and what a folder shows.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use sixb_artifacts::{
    Digest, FileRef,
    store::{BlobError, BlobStore, Body, BoxError},
};

/// Runs a check on each store that needs no server.
async fn each<F: Future<Output = ()>>(check: impl Fn(BlobStore) -> F) {
    let folder = tempfile::tempdir().expect("folder");
    check(BlobStore::memory()).await;
    check(BlobStore::local(folder.path()).expect("store")).await;
}

fn pieces(pieces: &'static [&'static str], end: Option<&'static str>) -> Body {
    let pieces = pieces
        .iter()
        .map(|piece| Ok(Bytes::from_static(piece.as_bytes())));
    Body::stream(stream::iter(
        pieces.chain(end.map(|end| Err(BoxError::from(end)))),
    ))
}

#[tokio::test]
async fn a_put_is_named_by_its_content_and_repeats_are_one_blob() {
    each(|blobs| async move {
        let file = blobs.put("hello").await.expect("put");
        assert_eq!((file.digest(), file.size()), (Digest::of(b"hello"), 5));
        assert_eq!(
            blobs
                .put(pieces(&["he", "", "llo"], None))
                .await
                .expect("put"),
            file
        );
        assert_eq!(blobs.read(&file).await.expect("read"), "hello");
        assert_eq!(
            blobs
                .stat(&file.digest())
                .await
                .expect("stat")
                .expect("there")
                .size,
            5
        );
        let empty = blobs.put("").await.expect("an empty file is one too");
        assert_eq!(blobs.read(&empty).await.expect("read"), "");
    })
    .await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    each(|blobs| async move {
        let file = FileRef::of(b"never put");
        assert_eq!(blobs.stat(&file.digest()).await.expect("stat"), None);
        for error in [
            blobs.read(&file).await.map(drop),
            blobs.open(&file).await.map(drop),
            blobs.open_range(&file, 0..1).await.map(drop),
            blobs.open_range(&file, 1..1).await.map(drop),
        ] {
            assert!(
                matches!(error, Err(BlobError::NotFound { .. })),
                "{error:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_that_fails_or_has_another_size_is_not_published() {
    each(|blobs| async move {
        let error = blobs
            .put(pieces(&["he"], Some("the line broke")))
            .await
            .expect_err("failed");
        assert!(matches!(error, BlobError::Body(_)), "{error:?}");
        assert_eq!(blobs.stat(&Digest::of(b"he")).await.expect("stat"), None);
        for (size, actual) in [(4, 5), (6, 5)] {
            let error = blobs
                .put_sized("hello", size)
                .await
                .expect_err("wrong size")
                .to_string();
            assert_eq!(
                error,
                format!("the body has {actual} bytes, not the {size} that were announced")
            );
        }
        assert_eq!(blobs.stat(&Digest::of(b"hello")).await.expect("stat"), None);
        assert_eq!(blobs.put_sized("hello", 5).await.expect("put").size(), 5);
        let endless = Body::stream(stream::repeat_with(|| {
            Ok::<_, BoxError>(Bytes::from_static(&[0; 1 << 20]))
        }));
        let error = blobs.put(endless).await.expect_err("endless");
        assert!(
            matches!(
                error,
                BlobError::TooLarge {
                    limit: BlobStore::MAX_BLOB
                }
            ),
            "{error:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn ranges_lie_in_the_file() {
    each(|blobs| async move {
        let file = blobs.put("0123456789").await.expect("put");
        for (range, expect) in [
            (0..10, Ok("0123456789")),
            (3..5, Ok("34")),
            (9..10, Ok("9")),
            (4..4, Ok("")),
            (10..10, Ok("")),
            (
                0..11,
                Err("the range 0..11 does not lie in the 10 bytes of the file"),
            ),
            (
                11..11,
                Err("the range 11..11 does not lie in the 10 bytes of the file"),
            ),
        ] {
            let read = match blobs.open_range(&file, range.clone()).await {
                Ok(pieces) => Ok(pieces.try_collect::<Vec<_>>().await.expect("read").concat()),
                Err(error) => Err(error.to_string()),
            };
            assert_eq!(
                read,
                expect
                    .map(|text| text.as_bytes().to_vec())
                    .map_err(str::to_owned),
                "{range:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn damage_is_seen_and_a_put_repairs_it() {
    let store = Arc::new(object_store::memory::InMemory::new());
    let blobs = BlobStore::new(store.clone());
    let file = blobs.put("hello").await.expect("put");
    let key = Path::from(format!("blobs/sha256/{}", file.digest().hex()));
    for (damage, detail) in [
        ("hellO", "its digest is sha256:"),
        ("hell", "it has 4 bytes, not 5"),
        ("hello!", "it has 6 bytes, not 5"),
    ] {
        store.put(&key, damage.into()).await.expect("damaged");
        let error = blobs.read(&file).await.expect_err("damaged").to_string();
        assert!(error.contains(detail), "{error}");
        blobs.put("hello").await.expect("put again");
        assert_eq!(blobs.read(&file).await.expect("repaired"), "hello");
    }
    // A reference with another size than the blob's is as wrong.
    let error = blobs
        .read(&FileRef::new(file.digest(), 4))
        .await
        .expect_err("size")
        .to_string();
    assert!(error.contains("it has 5 bytes, not 4"), "{error}");
}

#[tokio::test]
async fn a_stream_ends_with_the_error_when_the_digest_is_another() {
    let store = Arc::new(object_store::memory::InMemory::new());
    let blobs = BlobStore::new(store.clone());
    let file = blobs.put("hello").await.expect("put");
    let key = Path::from(format!("blobs/sha256/{}", file.digest().hex()));
    store.put(&key, "hellO".into()).await.expect("damaged");
    let mut items: Vec<_> = blobs.open(&file).await.expect("open").collect().await;
    assert!(matches!(items.pop(), Some(Err(BlobError::Damaged { .. }))));
    assert!(items.iter().all(Result::is_ok));
}

/// Also where eight of them write the same blob at once.
#[tokio::test(flavor = "multi_thread")]
async fn parallel_puts_all_succeed() {
    each(|blobs| async move {
        let puts = (0..24_u8).map(|put| {
            let blobs = blobs.clone();
            tokio::spawn(async move { blobs.put(vec![put % 3; 200_000]).await })
        });
        for (at, put) in futures::future::join_all(puts)
            .await
            .into_iter()
            .enumerate()
        {
            let file = put.expect("no panic").expect("put");
            assert_eq!(file, FileRef::of(&vec![(at % 3) as u8; 200_000]));
            assert_eq!(blobs.read(&file).await.expect("read").len(), 200_000);
        }
    })
    .await;
}

#[tokio::test]
async fn a_put_begins_the_age_anew() {
    each(|blobs| async move {
        let file = blobs.put("hello").await.expect("put");
        let first = blobs
            .stat(&file.digest())
            .await
            .expect("stat")
            .expect("there")
            .last_put;
        tokio::time::sleep(Duration::from_millis(30)).await;
        blobs.put("hello").await.expect("put");
        let second = blobs
            .stat(&file.digest())
            .await
            .expect("stat")
            .expect("there")
            .last_put;
        assert!(second > first);
    })
    .await;
}

#[tokio::test]
async fn a_dropped_put_leaves_no_part() {
    let folder = tempfile::tempdir().expect("folder");
    let blobs = BlobStore::local(folder.path()).expect("store");
    let never = Body::stream(
        stream::iter([Ok::<_, BoxError>(Bytes::from_static(b"part"))]).chain(stream::pending()),
    );
    let put = tokio::time::timeout(Duration::from_millis(50), blobs.put(never)).await;
    assert!(put.is_err(), "it waits for the rest");
    let listed: Vec<_> = object_store::local::LocalFileSystem::new_with_prefix(folder.path())
        .expect("store")
        .list(None)
        .try_collect()
        .await
        .expect("listed");
    assert_eq!(listed, []);
}
