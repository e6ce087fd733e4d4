//! The tool `read` on large files.

use std::{io::Write, path::Path, time::Instant};

use serde_json::{Value, json};
use sixb_sandbox::{CreateOptions, LazySandbox, Workspace};
use sixb_sandbox_local::LocalSandboxFactory;
use sixb_tools::{ToolContext, ToolRegistry, sandbox::sandbox_tools};

use crate::figure::{Goal, Paired, Report, median, ms};

const LINES: u64 = 1_100_000;
const WANTED: u64 = 1_000_000;

pub(crate) async fn run(report: &mut Report) {
    if !report.wants("read") {
        return;
    }
    let (state, folder) = (
        tempfile::tempdir().expect("folder"),
        tempfile::tempdir().expect("folder"),
    );
    let options = CreateOptions::default().workspace(Workspace::HostFolder {
        path: folder.path().to_owned(),
        read_only: false,
    });
    let factory = LocalSandboxFactory::default().state_dir(state.path());
    let sandbox = LazySandbox::boot(std::sync::Arc::new(factory), options);
    let tools = ToolRegistry::builder()
        .tools(sandbox_tools())
        .build()
        .expect("tools");
    let read = async |input: Value| -> Value {
        let context = ToolContext::builder("bench")
            .extension(sandbox.clone())
            .build();
        tools
            .call("read", context, input)
            .await
            .expect("read")
            .to_json()
    };

    let mut rounds = Vec::new();
    let mut next = Vec::new();
    for round in 0..12 {
        // A file of its own each time: nothing is remembered of it.
        let name = format!("big-{round}.txt");
        write_lines(&folder.path().join(&name));
        let begin = Instant::now();
        let page = read(json!({"path": name, "offset": WANTED, "limit": 10})).await;
        let ours = begin.elapsed();
        assert_eq!(page["startLine"], WANTED);
        let begin = Instant::now();
        let following = read(json!({"path": name, "offset": WANTED + 10, "limit": 10})).await;
        next.push(ms(begin.elapsed()));
        assert_eq!(following["startLine"], WANTED + 10);
        let floor = scan(&folder.path().join(&name));
        if round >= 2 {
            rounds.push((ms(ours), floor));
        }
        std::fs::remove_file(folder.path().join(&name)).expect("removed");
    }
    report.ratio(
        "read: line 1 000 000 of 100 MB / a memchr scan",
        "ms",
        Paired::of(&rounds),
        Goal::AtMost(2.0),
    );
    report.value(
        "read: the next page from there",
        "ms",
        median(next.into_iter()),
        1.0,
    );

    let mut first = Vec::new();
    for round in 0..50 {
        let name = format!("small-{round}.txt");
        std::fs::write(folder.path().join(&name), "a line of text\n".repeat(5_000)).expect("file");
        let begin = Instant::now();
        read(json!({"path": name})).await;
        first.push(ms(begin.elapsed()));
    }
    report.value(
        "read: the first page of a file",
        "ms",
        median(first.into_iter()),
        1.0,
    );
    sandbox.destroy().await.expect("destroyed");
}

/// About 100 MB, 91 bytes a line.
fn write_lines(path: &Path) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).expect("file"));
    for line in 0..LINES {
        writeln!(file, "{line:>10} {}", "x".repeat(80)).expect("written");
    }
    file.flush().expect("written");
}

/// What the look-up cannot do without: reading up to the line and counting newlines.
fn scan(path: &Path) -> f64 {
    use std::io::Read;
    let begin = Instant::now();
    let mut file = std::fs::File::open(path).expect("file");
    let mut buffer = vec![0; 256 << 10];
    let mut lines = 0;
    while lines < WANTED {
        let read = file.read(&mut buffer).expect("read");
        lines += memchr::memchr_iter(b'\n', &buffer[..read]).count() as u64;
    }
    ms(begin.elapsed())
}
