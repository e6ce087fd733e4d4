//! Sweeps, alone and against puts.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use sixb_artifacts::{
    Digest,
    store::{BlobStore, CancellationToken},
};

async fn sweep(blobs: &BlobStore, keep: &[&str], older_than: Duration) -> (u64, u64, u64) {
    let keep: HashSet<Digest> = keep
        .iter()
        .map(|text| Digest::of(text.as_bytes()))
        .collect();
    let report = blobs
        .sweep(
            |digest| keep.contains(digest),
            older_than,
            &CancellationToken::new(),
        )
        .await
        .expect("swept");
    (report.seen, report.removed, report.removed_bytes)
}

#[tokio::test]
async fn what_is_kept_or_young_stays() {
    let folder = tempfile::tempdir().expect("folder");
    for blobs in [
        BlobStore::memory(),
        BlobStore::local(folder.path()).expect("store"),
    ] {
        for text in ["old", "kept", "older"] {
            blobs.put(text).await.expect("put");
        }
        assert_eq!(
            sweep(&blobs, &[], Duration::from_secs(60)).await,
            (3, 0, 0),
            "all are young"
        );
        tokio::time::sleep(Duration::from_millis(1_600)).await;
        blobs.put("old").await.expect("put again");
        assert_eq!(
            sweep(&blobs, &["kept"], Duration::from_millis(1_500)).await,
            (3, 1, 5),
            "one is old and not kept"
        );
        assert_eq!(sweep(&blobs, &["kept"], Duration::ZERO).await, (2, 1, 3));
        assert_eq!(sweep(&blobs, &[], Duration::ZERO).await, (1, 1, 4));
        assert_eq!(
            sweep(&blobs, &[], Duration::ZERO).await,
            (0, 0, 0),
            "and no mark is left that looks like a blob"
        );
    }
}

/// The property that matters: a put that returned is there, however sweeps and other puts fall between.
#[tokio::test(flavor = "multi_thread")]
async fn a_put_that_returned_is_not_taken_by_a_sweep_of_older_blobs() {
    const AGE: Duration = Duration::from_millis(50);
    let folder = tempfile::tempdir().expect("folder");
    for (blobs, rounds) in [
        (BlobStore::memory(), 200),
        (BlobStore::local(folder.path()).expect("store"), 60),
    ] {
        let over = Arc::new(AtomicBool::new(false));
        let sweeper = tokio::spawn({
            let (blobs, over) = (blobs.clone(), over.clone());
            async move {
                let (mut removed, never) = (0, CancellationToken::new());
                while !over.load(Ordering::Relaxed) {
                    let swept = blobs.sweep(|_| false, AGE, &never).await;
                    removed += swept.expect("swept").removed;
                    tokio::task::yield_now().await;
                }
                removed
            }
        });
        let putters = (0..3).map(|putter| {
            let blobs = blobs.clone();
            tokio::spawn(async move {
                for round in 0..rounds {
                    let text = format!("shared {}", (round * 5 + putter) % 12);
                    let begin = Instant::now();
                    let file = blobs.put(text.clone()).await.expect("put");
                    let found = blobs.stat(&file.digest()).await.expect("stat");
                    // A machine under load may hold this up for longer than the age: then it may be gone by right.
                    if begin.elapsed() < AGE {
                        let blob = found.unwrap_or_else(|| panic!("{text} was taken"));
                        assert_eq!(blob.size, text.len() as u64);
                    }
                    tokio::time::sleep(Duration::from_millis(round % 30)).await;
                }
            })
        });
        for ended in futures::future::join_all(putters).await {
            ended.expect("no blob was taken");
        }
        over.store(true, Ordering::Relaxed);
        let removed = sweeper.await.expect("no panic");
        assert!(removed > 0, "the sweeps did something");
    }
}

/// The two in the worst order: the sweep has its turn and has looked; the put writes; the sweep removes.
#[tokio::test]
async fn a_put_waits_for_a_sweep_and_writes_again() {
    let store = Arc::new(InMemory::new());
    let blobs = BlobStore::new(store.clone());
    let digest = Digest::of(b"hello");
    let mark = Path::from(format!("blobs/sweeping/{}", digest.hex()));
    let key = Path::from(format!("blobs/sha256/{}", digest.hex()));
    store.put(&mark, "sweeping".into()).await.expect("mark");
    let put = tokio::spawn({
        let blobs = blobs.clone();
        async move { blobs.put("hello").await }
    });
    while store.head(&key).await.is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!put.is_finished(), "it waits");
    store.delete(&key).await.expect("removed");
    store.delete(&mark).await.expect("mark removed");
    let file = put.await.expect("no panic").expect("put");
    assert_eq!(blobs.read(&file).await.expect("there"), "hello");
}

/// A sweep that finds another's mark leaves the blob alone.
#[tokio::test]
async fn two_sweeps_do_not_share_a_blob() {
    let store = Arc::new(InMemory::new());
    let blobs = BlobStore::new(store.clone());
    let file = blobs.put("hello").await.expect("put");
    let mark = Path::from(format!("blobs/sweeping/{}", file.digest().hex()));
    store.put(&mark, "sweeping".into()).await.expect("mark");
    assert_eq!(sweep(&blobs, &[], Duration::ZERO).await, (1, 0, 0));
    store.delete(&mark).await.expect("mark removed");
    assert_eq!(sweep(&blobs, &[], Duration::ZERO).await, (1, 1, 5));
}

/// A sweep that died leaves its mark: puts wait a minute, then take it away.
#[tokio::test(start_paused = true)]
async fn a_mark_that_nobody_owns_is_taken_away() {
    let store = Arc::new(InMemory::new());
    let blobs = BlobStore::new(store.clone());
    let mark = Path::from(format!("blobs/sweeping/{}", Digest::of(b"hello").hex()));
    store.put(&mark, "sweeping".into()).await.expect("mark");
    let begin = tokio::time::Instant::now();
    let file = blobs.put("hello").await.expect("put");
    assert!(begin.elapsed() >= Duration::from_secs(60));
    assert_eq!(blobs.read(&file).await.expect("there"), "hello");
    assert!(store.head(&mark).await.is_err());
}

#[tokio::test]
async fn a_cancelled_sweep_ends_between_two_blobs() {
    let blobs = BlobStore::memory();
    blobs.put("hello").await.expect("put");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let report = blobs
        .sweep(|_| false, Duration::ZERO, &cancel)
        .await
        .expect("swept");
    assert_eq!((report.seen, report.removed), (1, 0));
}
