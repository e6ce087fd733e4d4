//! What `read` asks of a sandbox, counted.

use std::{
    io::Cursor,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use bytes::Bytes;
use serde_json::json;
use sixb_sandbox::{
    BackgroundId, CancellationToken, Capabilities, Command, CommandOutput, CreateOptions, DirEntry,
    FileWrite, Isolation, LazySandbox, ListOptions, NetworkEnforcement, Result, SandboxFactory,
    SandboxPath, SandboxRecord, SandboxStatus, Snapshot, SnapshotOptions, lines,
};

use super::*;
use crate::ToolRegistry;

/// A sandbox of one file, whose every path leads to it.
#[derive(Debug)]
struct OneFile {
    text: String,
    capabilities: Capabilities,
    seeks: AtomicU64,
    /// Lines from where a search began to the line that it was for.
    searched: AtomicU64,
    reads: AtomicU64,
}

#[derive(Debug)]
struct Factory(Arc<OneFile>);

impl OneFile {
    fn new(text: String) -> Arc<Self> {
        Arc::new(Self {
            text,
            capabilities: Capabilities::new(Isolation::None, "fake", NetworkEnforcement::Nothing),
            seeks: AtomicU64::new(0),
            searched: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        })
    }

    /// Seeks, lines searched and reads since the last time.
    fn counts(&self) -> (u64, u64, u64) {
        let [seeks, searched, reads] =
            [&self.seeks, &self.searched, &self.reads].map(|count| count.swap(0, SeqCst));
        (seeks, searched, reads)
    }
}

fn no<T>(op: &'static str) -> Result<T> {
    Err(SandboxError::provider(op, "this sandbox only reads", None))
}

impl std::fmt::Display for OneFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("one-file")
    }
}

#[async_trait]
impl Sandbox for OneFile {
    fn id(&self) -> &str {
        "one-file"
    }
    fn provider(&self) -> &'static str {
        "fake"
    }
    fn status(&self) -> SandboxStatus {
        SandboxStatus::Running
    }
    fn working_directory(&self) -> &str {
        "/"
    }
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    async fn run(&self, _: Command) -> Result<CommandOutput> {
        no("run")
    }
    async fn start(&self, _: Command) -> Result<BackgroundId> {
        no("start")
    }
    async fn wait(&self, _: &BackgroundId, _: &CancellationToken) -> Result<CommandOutput> {
        no("wait")
    }
    async fn kill(&self, _: &BackgroundId) -> Result<()> {
        no("kill")
    }
    async fn write_files(&self, _: Vec<FileWrite>) -> Result<()> {
        no("write")
    }
    async fn read_range(&self, _: &FileSource, range: ByteRange) -> Result<Bytes> {
        self.reads.fetch_add(1, SeqCst);
        let end = self.text.len();
        let start = (range.offset as usize).min(end);
        let bytes = &self.text.as_bytes()[start..end.min(start + range.len)];
        Ok(Bytes::copy_from_slice(bytes))
    }
    async fn stat(&self, _: &FileSource) -> Result<FileStat> {
        let size = self.text.len() as u64;
        Ok(FileStat::new(
            FileKind::File,
            size,
            0o644,
            Duration::ZERO,
            1,
        ))
    }
    async fn list(&self, _: &SandboxPath, _: ListOptions) -> Result<Vec<DirEntry>> {
        no("list")
    }
    async fn remove(&self, _: &SandboxPath) -> Result<()> {
        no("remove")
    }
    async fn seek_line(&self, _: &FileSource, seek: SeekLine) -> Result<LinePosition> {
        self.seeks.fetch_add(1, SeqCst);
        self.searched.fetch_add(seek.line - seek.from.0, SeqCst);
        lines::seek_line(&mut Cursor::new(&self.text), seek)
            .map_err(|error| SandboxError::provider("seek", error, None))
    }
    async fn snapshot(&self, _: SnapshotOptions) -> Result<Snapshot> {
        no("snapshot")
    }
    async fn stop(&self) -> Result<()> {
        Ok(())
    }
    async fn destroy(&self) -> Result<()> {
        Ok(())
    }
}

impl std::fmt::Display for Factory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("fake")
    }
}

#[async_trait]
impl SandboxFactory for Factory {
    fn provider(&self) -> &'static str {
        "fake"
    }
    async fn create(&self, _: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        Ok(self.0.clone())
    }
    async fn probe(&self) -> Result<Capabilities> {
        Ok(self.0.capabilities.clone())
    }
    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        Ok(Vec::new())
    }
    async fn sweep(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn a_page_after_a_known_one_is_not_searched_for() {
    let file = OneFile::new((1..=100_000).map(|n| format!("line {n:06}\n")).collect());
    let lazy = LazySandbox::boot(Arc::new(Factory(file.clone())), CreateOptions::default());
    let registry = ToolRegistry::builder()
        .tool(read())
        .build()
        .expect("registry");
    let page = async |offset: u64| {
        let cx = ToolContext::builder("r").extension(lazy.clone()).build();
        let input = json!({"path": "f", "offset": offset, "limit": 1_000});
        let page = registry.call("read", cx, input).await.expect("page");
        let page = page.to_json();
        let start = format!("line {offset:06}\n");
        assert!(
            page["content"]
                .as_str()
                .is_some_and(|text| text.starts_with(&start)),
            "{offset}"
        );
        page["nextOffset"].as_u64()
    };
    let next = page(50_000).await;
    assert_eq!((next, file.counts()), (Some(51_000), (1, 49_999, 1)));
    // Whether new or seen before: where it starts is known, so that only its own bytes are read.
    for offset in [51_000, 52_000, 50_000, 1] {
        page(offset).await;
        assert_eq!(file.counts(), (0, 0, 1), "{offset}");
    }
    // Between known lines the search is short.
    page(52_500).await;
    assert_eq!(file.counts(), (1, 500, 1));
}
