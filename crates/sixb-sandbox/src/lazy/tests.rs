//! Boot, share, end: against a factory whose clock and failures are set, and that counts what it left behind.

use std::{
    sync::atomic::{AtomicI32, AtomicU32},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::{
    BackgroundId, ByteRange, Capabilities, Command, CommandOutput, DirEntry, FileSource, FileStat,
    FileWrite, Isolation, LinePosition, ListOptions, NetworkEnforcement, SandboxPath,
    SandboxRecord, SeekLine, Snapshot, SnapshotOptions,
};

/// What a fake provider does, and what it did.
#[derive(Debug, Default)]
struct Provider {
    boot: Duration,
    fails: bool,
    panics: bool,
    /// Comes up even when its boot was cancelled: the cancellation came too late.
    deaf: bool,
    /// How many calls of `destroy` fail.
    sticky: AtomicI32,
    boots: AtomicU32,
    /// Sandboxes that exist now.
    alive: Arc<AtomicI32>,
}

#[derive(Debug)]
struct Factory(Arc<Provider>);

#[derive(Debug)]
struct Fake {
    provider: Arc<Provider>,
    capabilities: Capabilities,
}

impl fmt::Display for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fake")
    }
}

impl fmt::Display for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fake-1")
    }
}

#[async_trait]
impl SandboxFactory for Factory {
    fn provider(&self) -> &'static str {
        "fake"
    }

    async fn create(&self, options: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        self.0.boots.fetch_add(1, Ordering::SeqCst);
        self.0.alive.fetch_add(1, Ordering::SeqCst);
        let undo = Undo(Some(self.0.alive.clone()));
        assert!(!self.0.panics, "as asked");
        tokio::select! {
            () = sleep(self.0.boot) => {}
            () = options.cancel.cancelled(), if !self.0.deaf => {
                sleep(Duration::from_millis(30)).await;
                return Err(SandboxError::Cancelled { op: "create" });
            }
        }
        if self.0.fails {
            return Err(SandboxError::provider("create", "as asked", None));
        }
        undo.keep();
        let capabilities = Capabilities::new(Isolation::None, "fake", NetworkEnforcement::Nothing);
        Ok(Arc::new(Fake {
            provider: self.0.clone(),
            capabilities,
        }))
    }

    async fn probe(&self) -> Result<Capabilities> {
        Err(SandboxError::provider("probe", "fake", None))
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        Ok(Vec::new())
    }

    async fn sweep(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// What a failed, cancelled or dropped creation takes back.
struct Undo(Option<Arc<AtomicI32>>);

impl Undo {
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        if let Some(alive) = &self.0 {
            alive.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn unused<T>() -> Result<T> {
    Err(SandboxError::provider("call", "no test calls this", None))
}

#[async_trait]
impl Sandbox for Fake {
    fn id(&self) -> &str {
        "fake-1"
    }
    fn provider(&self) -> &'static str {
        "fake"
    }
    fn status(&self) -> SandboxStatus {
        SandboxStatus::Running
    }
    fn working_directory(&self) -> &str {
        "/workspace"
    }
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    async fn run(&self, _: Command) -> Result<CommandOutput> {
        unused()
    }
    async fn start(&self, _: Command) -> Result<BackgroundId> {
        unused()
    }
    async fn wait(&self, _: &BackgroundId, _: &CancellationToken) -> Result<CommandOutput> {
        unused()
    }
    async fn kill(&self, _: &BackgroundId) -> Result<()> {
        unused()
    }
    async fn write_files(&self, _: Vec<FileWrite>) -> Result<()> {
        unused()
    }
    async fn read_range(&self, _: &FileSource, _: ByteRange) -> Result<Bytes> {
        unused()
    }
    async fn stat(&self, _: &FileSource) -> Result<FileStat> {
        unused()
    }
    async fn list(&self, _: &SandboxPath, _: ListOptions) -> Result<Vec<DirEntry>> {
        unused()
    }
    async fn remove(&self, _: &SandboxPath) -> Result<()> {
        unused()
    }
    async fn seek_line(&self, _: &FileSource, _: SeekLine) -> Result<LinePosition> {
        unused()
    }
    async fn snapshot(&self, _: SnapshotOptions) -> Result<Snapshot> {
        unused()
    }
    async fn stop(&self) -> Result<()> {
        unused()
    }
    async fn destroy(&self) -> Result<()> {
        sleep(Duration::from_millis(20)).await;
        if self.provider.sticky.fetch_sub(1, Ordering::SeqCst) > 0 {
            return Err(SandboxError::provider("destroy", "stuck", None));
        }
        self.provider.alive.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

fn boot(provider: Provider) -> (LazySandbox, Arc<Provider>) {
    let provider = Arc::new(provider);
    (
        LazySandbox::boot(
            Arc::new(Factory(provider.clone())),
            CreateOptions::default(),
        ),
        provider,
    )
}

fn slow(millis: u64) -> Provider {
    Provider {
        boot: Duration::from_millis(millis),
        ..Provider::default()
    }
}

fn alive(provider: &Provider) -> i32 {
    provider.alive.load(Ordering::SeqCst)
}

async fn later() {
    sleep(Duration::from_secs(60)).await;
}

fn text<T: fmt::Debug>(result: Result<T>) -> String {
    result.expect_err("an error").to_string()
}

#[tokio::test(start_paused = true)]
async fn many_waiters_share_one_boot_that_began_at_once() {
    let (lazy, provider) = boot(slow(500));
    sleep(Duration::from_millis(400)).await;
    assert!(lazy.ready().is_none() && !lazy.used());
    let begun = Instant::now();
    let waiters = (0..10).map(|_| {
        let lazy = lazy.clone();
        async move { lazy.get().await.map(|sandbox| sandbox.id().to_owned()) }
    });
    for id in futures::future::join_all(waiters).await {
        assert_eq!(id.expect("up"), "fake-1");
    }
    assert_eq!(begun.elapsed(), Duration::from_millis(100));
    assert_eq!(provider.boots.load(Ordering::SeqCst), 1);
    assert!(lazy.ready().is_some() && lazy.used());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_gives_up_ends_no_boot() {
    let (lazy, _) = boot(slow(500));
    timeout(Duration::from_millis(1), lazy.get())
        .await
        .expect_err("still booting");
    lazy.get().await.expect("up");
}

#[tokio::test(start_paused = true)]
async fn a_failed_boot_is_told_to_each_who_asks_and_to_nobody_else() {
    let (lazy, provider) = boot(Provider {
        fails: true,
        ..slow(10)
    });
    for _ in 0..2 {
        assert_eq!(text(lazy.get().await), "create failed: as asked");
    }
    lazy.destroy().await.expect("nothing to destroy");
    assert_eq!(alive(&provider), 0);
}

#[tokio::test(start_paused = true)]
async fn a_boot_that_panics_leaves_nobody_waiting() {
    let (lazy, provider) = boot(Provider {
        panics: true,
        ..slow(10)
    });
    assert_eq!(text(lazy.get().await), "boot failed: the boot ended early");
    lazy.destroy().await.expect("nothing to destroy");
    assert_eq!(alive(&provider), 0);
}

#[tokio::test(start_paused = true)]
async fn the_callers_token_ends_the_boot_but_not_the_sandbox() {
    let token = CancellationToken::new();
    let provider = Arc::new(slow(100));
    let factory = Arc::new(Factory(provider.clone()));
    let up = LazySandbox::boot(
        factory.clone(),
        CreateOptions::default().cancel(token.clone()),
    );
    up.get().await.expect("up");
    let booting = LazySandbox::boot(factory, CreateOptions::default().cancel(token.clone()));
    tokio::task::yield_now().await;
    token.cancel();
    assert_eq!(text(booting.get().await), "create was cancelled");
    assert!(up.get().await.is_ok());
    assert_eq!(alive(&provider), 1);
}

#[tokio::test(start_paused = true)]
async fn destroy_ends_what_is_up_or_not_yet_up() {
    for (name, provider, wait, id) in [
        ("up", slow(10), 50, "fake-1"),
        ("booting", slow(1000), 50, "fake (never up)"),
        ("not even begun", slow(1000), 0, "fake (never up)"),
        (
            "up although cancelled",
            Provider {
                deaf: true,
                ..slow(1000)
            },
            50,
            "fake-1",
        ),
    ] {
        let (lazy, provider) = boot(provider);
        sleep(Duration::from_millis(wait)).await;
        let waiter = tokio::spawn({
            let lazy = lazy.clone();
            async move {
                sleep(Duration::from_millis(60)).await;
                lazy.get().await
            }
        });
        sleep(Duration::from_millis(1)).await;
        lazy.destroy().await.expect(name);
        assert_eq!(alive(&provider), 0, "{name}: gone when destroy returns");
        lazy.destroy().await.expect(name);
        let expect = format!("sandbox {id} is stopped, not running: create another one");
        assert_eq!(text(lazy.get().await), expect, "{name}");
        assert!(lazy.ready().is_none(), "{name}");
        assert!(waiter.await.expect("join").is_err(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_learns_at_once_that_the_boot_is_given_up() {
    let (lazy, _) = boot(Provider {
        deaf: true,
        ..slow(100_000)
    });
    let waiter = tokio::spawn({
        let lazy = lazy.clone();
        async move { lazy.get().await }
    });
    sleep(Duration::from_millis(1)).await;
    let begun = Instant::now();
    timeout(Duration::from_millis(1), lazy.destroy())
        .await
        .expect_err("the boot is deaf");
    assert!(text(waiter.await.expect("join")).contains("not running"));
    assert!(begun.elapsed() < Duration::from_millis(10));
}

#[tokio::test(start_paused = true)]
async fn a_destroy_that_is_dropped_goes_on() {
    let (lazy, provider) = boot(Provider {
        deaf: true,
        ..slow(1000)
    });
    timeout(Duration::from_millis(1), lazy.destroy())
        .await
        .expect_err("still booting");
    assert_eq!(alive(&provider), 1);
    later().await;
    assert_eq!(alive(&provider), 0);
}

#[tokio::test(start_paused = true)]
async fn the_last_clone_takes_the_sandbox_with_it() {
    for (name, provider, wait) in [
        ("up", slow(10), 50),
        ("booting", slow(1000), 50),
        (
            "deaf",
            Provider {
                deaf: true,
                ..slow(1000)
            },
            5,
        ),
    ] {
        let (lazy, provider) = boot(provider);
        sleep(Duration::from_millis(wait)).await;
        let clone = lazy.clone();
        drop(lazy);
        tokio::task::yield_now().await;
        assert_eq!(alive(&provider), 1, "{name}: a clone is left");
        drop(clone);
        later().await;
        assert_eq!(alive(&provider), 0, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_destroy_that_failed_is_told_and_tried_again() {
    let (lazy, provider) = boot(Provider {
        sticky: 2.into(),
        ..slow(10)
    });
    lazy.get().await.expect("up");
    for (call, expect) in [
        Some("destroy failed: stuck"),
        Some("destroy failed: stuck"),
        None,
        None,
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(
            lazy.destroy()
                .await
                .err()
                .map(|error| error.to_string())
                .as_deref(),
            expect,
            "call {call}"
        );
    }
    assert_eq!(alive(&provider), 0);
}
