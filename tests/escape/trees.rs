//! Folders built to break whoever walks them: too deep, too wide, closed. The host lists, removes and cleans up after them.

use std::{fs, sync::Arc, time::Duration};

use sixb_sandbox::{
    Command, CreateOptions, ListOptions, ResourceLimits, Sandbox, SandboxFactory, SandboxPath,
    SnapshotOptions,
};

use crate::{
    arena::{Arena, destroyed, path, run, sh, unwell},
    row::Seen,
};

/// Deeper than a thread's stack, a process's descriptors or a path's length would bear if each level took one.
const DEEP: &str = "import os
os.mkdir('deep'); os.chdir('deep')
for _ in range(5000):
    os.mkdir('d'); os.chdir('d')
open('bottom','w').close()
CLOSE";

/// In memory, which is faster: for calls that do not care.
fn in_memory() -> CreateOptions {
    CreateOptions::default().limits(ResourceLimits::default().disk_bytes(256 << 20))
}

async fn deep(arena: &Arena, options: CreateOptions, close: &str) -> Arc<dyn Sandbox> {
    let sandbox = arena.sandbox(options).await;
    let script = DEEP.replace("CLOSE", close);
    let command = Command::argv(["/usr/bin/python3", "-c", &script]);
    let output = run(&sandbox, command.timeout(Duration::from_secs(50))).await;
    assert!(output.success(), "{}", output.stderr.text());
    sandbox
}

pub(crate) fn destroy_deep(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = deep(arena, CreateOptions::default(), "").await;
        destroyed(arena, sandbox).await.unwrap_or("removed".into())
    })
}

pub(crate) fn remove_deep(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = deep(arena, in_memory(), "").await;
        let removed = sandbox.remove(&path("deep")).await;
        let left = sh(&sandbox, "ls -A").await;
        let gone = destroyed(arena, sandbox).await;
        match (removed, left.as_str(), gone) {
            (Ok(()), "", None) => "removed".into(),
            other => format!("{other:?}"),
        }
    })
}

/// A closed folder, far below what a path can name: the owner of the files must open it to remove it.
pub(crate) fn destroy_deep_and_closed(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = deep(
            arena,
            CreateOptions::default(),
            "os.chdir('..'); os.chmod('d', 0); os.chmod('.', 0)",
        )
        .await;
        destroyed(arena, sandbox).await.unwrap_or("removed".into())
    })
}

/// A killed owner's sandbox that cannot be removed must not keep others from being made.
pub(crate) fn sweep_deep_and_closed(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = deep(
            arena,
            CreateOptions::default(),
            "os.chdir('..'); os.chmod('d', 0); os.chmod('.', 0)",
        )
        .await;
        let folder = arena
            .state
            .path()
            .join("sandboxes/local")
            .join(sandbox.id());
        // As if the owner had been killed: the folder goes on under the name of a sandbox that nobody holds.
        let orphan = folder.with_file_name("sixb-local-orphan");
        fs::create_dir(&orphan).expect("folder");
        fs::write(orphan.join("lease.json"), "{}").expect("lease");
        fs::rename(folder.join("workspace"), orphan.join("workspace")).expect("moved");
        let swept = arena.factory.sweep().await;
        let next = arena.factory.create(CreateOptions::default()).await;
        let made = next.is_ok();
        if let Ok(next) = next {
            next.destroy().await.expect("destroyed");
        }
        let gone = destroyed(arena, sandbox).await;
        match (swept, made, gone) {
            (Ok(swept), true, None) if swept == ["sixb-local-orphan"] => "removed".into(),
            other => format!("{other:?}"),
        }
    })
}

/// More folders than a process has descriptors: a walk that holds one for each takes them all from the host.
pub(crate) fn list_wide(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = arena.sandbox(in_memory()).await;
        let make = "import os
for n in range(2000): os.makedirs(f'wide/{n}/a')";
        run(&sandbox, Command::argv(["/usr/bin/python3", "-c", make])).await;
        let most = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let before = descriptors();
        let (stop, watched) = (tokio_util::sync::CancellationToken::new(), most.clone());
        let watch = tokio::task::spawn_blocking({
            let stop = stop.clone();
            move || {
                while !stop.is_cancelled() {
                    watched.fetch_max(descriptors(), std::sync::atomic::Ordering::Relaxed);
                }
            }
        });
        let options = || ListOptions::default().recursive().limit(20_000);
        let listed = sandbox.list(&SandboxPath::root(), options()).await;
        let snapshot = sandbox.snapshot(SnapshotOptions::default()).await;
        let removed = sandbox.remove(&path("wide")).await;
        stop.cancel();
        watch.await.expect("watched");
        let most = most
            .load(std::sync::atomic::Ordering::Relaxed)
            .saturating_sub(before);
        sandbox.destroy().await.expect("destroyed");
        match (listed.map(|listed| listed.len()), snapshot, removed) {
            (Ok(4001), Ok(_), Ok(())) if most < 500 => "few descriptors".into(),
            (Ok(4001), Ok(_), Ok(())) => format!("{most} descriptors at once"),
            other => format!("{other:?}"),
        }
    })
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count())
}

/// The answer of a listing is bounded, however many files there are, and the sandbox is well.
pub(crate) fn list_many(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = arena.sandbox(in_memory()).await;
        let make = "import os
os.mkdir('many')
for n in range(20000): os.close(os.open(f'many/{n}', os.O_CREAT))";
        run(&sandbox, Command::argv(["/usr/bin/python3", "-c", make])).await;
        let listed = sandbox
            .list(&path("many"), ListOptions::default().limit(100))
            .await;
        let unwell = unwell(&sandbox).await;
        let gone = destroyed(arena, sandbox).await;
        match (listed, unwell, gone) {
            (Err(sixb_sandbox::SandboxError::LimitExceeded { .. }), None, None) => "bounded".into(),
            (listed, unwell, gone) => {
                format!("{:?} {unwell:?} {gone:?}", listed.map(|all| all.len()))
            }
        }
    })
}
