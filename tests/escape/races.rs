//! File calls of the host while the guest swaps what they name, thousands of times a second.

use std::{fs, future::Future, path::Path, sync::Arc, time::Duration};

use sixb_sandbox::{
    Command, FileKind, FileWrite, ListOptions, Sandbox, SandboxExt, SnapshotOptions,
};
use tempfile::TempDir;

use crate::{
    arena::{Arena, compile, path, sh},
    program::c_source,
    row::Seen,
};

const SWAP: &str = include_str!("attacks/swap.c");
const INSIDE: &str = "inside";
const OUTSIDE: &str = "of the host, outside";
/// How long each race runs.
const LONG: Duration = Duration::from_millis(800);

/// A sandbox on a host folder, and a folder beside it that no call may touch.
struct Course {
    sandbox: Arc<dyn Sandbox>,
    _folder: TempDir,
    outside: TempDir,
}

impl Course {
    async fn new(arena: &Arena) -> Self {
        let (folder, outside) = (
            tempfile::tempdir().expect("folder"),
            tempfile::tempdir().expect("folder"),
        );
        fs::write(outside.path().join("file"), OUTSIDE).expect("file");
        // Open to all, so that nothing but the resolution of paths stands in the way.
        for entry in [outside.path().to_owned(), outside.path().join("file")] {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(entry, fs::Permissions::from_mode(0o777)).expect("mode");
        }
        let sandbox = arena.on_folder(folder.path()).await;
        compile(&sandbox, "swap", &c_source(SWAP)).await;
        Self {
            sandbox,
            _folder: folder,
            outside,
        }
    }

    fn outside(&self) -> String {
        self.outside.path().display().to_string()
    }

    /// Runs `swap` inside while `call` is made again and again. `call` tells what it saw.
    async fn race<F: Future<Output = &'static str>>(
        self,
        prepare: &str,
        swap: &str,
        call: impl Fn(Arc<dyn Sandbox>, u32) -> F,
    ) -> String {
        sh(&self.sandbox, &prepare.replace("OUTSIDE", &self.outside())).await;
        let command = Command::script(swap.replace("OUTSIDE", &self.outside()));
        let swapping = self
            .sandbox
            .start(command.timeout(Duration::from_secs(30)))
            .await
            .expect("started");
        let until = tokio::time::Instant::now() + LONG;
        let (mut inside, mut refused, mut bad) = (0, 0, None);
        for round in 0.. {
            if tokio::time::Instant::now() > until {
                break;
            }
            match call(self.sandbox.clone(), round).await {
                "inside" => inside += 1,
                "refused" => refused += 1,
                other => bad = Some(other),
            }
        }
        // Whatever the guest put there meanwhile.
        let _ = self.sandbox.remove(&path("stop")).await;
        sh(&self.sandbox, "touch stop").await;
        let _ = self
            .sandbox
            .wait(&swapping, &sixb_sandbox::CancellationToken::new())
            .await;
        self.sandbox.destroy().await.expect("destroyed");
        if let Some(bad) = bad {
            return bad.to_owned();
        }
        if !untouched(self.outside.path()) {
            return "a folder of the host was changed".into();
        }
        match (inside, refused) {
            (0, _) | (_, 0) => format!("no race: {inside} inside, {refused} refused"),
            _ => "only inside".into(),
        }
    }
}

fn untouched(outside: &Path) -> bool {
    let names: Vec<_> = fs::read_dir(outside)
        .expect("folder")
        .map(|entry| entry.expect("entry").file_name())
        .collect();
    names == ["file"] && fs::read_to_string(outside.join("file")).ok().as_deref() == Some(OUTSIDE)
}

const FILES: &str = "echo -n inside > at; ln -s OUTSIDE/file link";
const FOLDERS: &str = "mkdir at; echo -n inside > at/file; ln -s OUTSIDE link";
const SWAPPING: &str = "exec /tmp/swap at link";

pub(crate) fn read(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let course = Course::new(arena).await;
        course
            .race(FILES, SWAPPING, async |sandbox, _| {
                judge(sandbox.read("at").await)
            })
            .await
    })
}

pub(crate) fn read_below(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let course = Course::new(arena).await;
        course
            .race(FOLDERS, SWAPPING, async |sandbox, _| {
                judge(sandbox.read("at/file").await)
            })
            .await
    })
}

fn judge(read: sixb_sandbox::Result<impl AsRef<[u8]>>) -> &'static str {
    match read {
        Ok(bytes) if bytes.as_ref() == INSIDE.as_bytes() => "inside",
        Ok(_) => "a file of the host was read",
        Err(_) => "refused",
    }
}

pub(crate) fn write_below(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let course = Course::new(arena).await;
        course
            .race(FOLDERS, SWAPPING, async |sandbox, round| {
                let name = format!("at/new-{}/file", round % 4);
                let write = FileWrite::new(path(&name), "written");
                let written = sandbox.write_files(vec![write]).await;
                if round % 8 == 0 {
                    let _ = sandbox
                        .remove(&path(&format!("at/new-{}", round % 4)))
                        .await;
                }
                if written.is_ok() { "inside" } else { "refused" }
            })
            .await
    })
}

/// The host writes beside the target and renames: the guest swaps the draft for a link that leads out.
pub(crate) fn write_with_swapped_draft(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let course = Course::new(arena).await;
        let refused = "refused";
        course
            .race(
                "true",
                "exec /tmp/swap OUTSIDE/file",
                async |sandbox, round| {
                    let write = FileWrite::new(path("target"), vec![b'x'; 4096]);
                    let _ = sandbox.write_files(vec![write]).await;
                    // Either is fine: the guest may do to its own folder what it likes.
                    if round % 2 == 0 { "inside" } else { refused }
                },
            )
            .await
    })
}

pub(crate) fn remove_below(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let course = Course::new(arena).await;
        course
            .race(FOLDERS, SWAPPING, async |sandbox, round| {
                let name = ["at/file", "at/other", "at/x"][round as usize % 3];
                let removed = sandbox.remove(&path(name)).await;
                if removed.is_ok() { "inside" } else { "refused" }
            })
            .await
    })
}

/// A whole folder is removed while folders in it become links.
pub(crate) fn remove_tree(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let course = Course::new(arena).await;
        let swap = "while [ ! -e stop ]; do mkdir -p top/at/in; ln -sn OUTSIDE top/link; (cd top && timeout 0.05 /tmp/swap at link); done 2>/dev/null";
        course
            .race("true", swap, async |sandbox, round| {
                let _ = sandbox.remove(&path("top")).await;
                // Whether it got all of it is luck; what lies outside is judged at the end.
                if round % 2 == 0 { "inside" } else { "refused" }
            })
            .await
    })
}

pub(crate) fn list(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let course = Course::new(arena).await;
        course
            .race(FOLDERS, SWAPPING, async |sandbox, round| {
                let options = ListOptions::default().recursive();
                let at = if round % 2 == 0 {
                    path("at")
                } else {
                    path(".")
                };
                match sandbox.list(&at, options).await {
                    Ok(entries) => {
                        let foreign = |entry: &sixb_sandbox::DirEntry| {
                            entry.stat.kind == FileKind::File
                                && entry.stat.size == OUTSIDE.len() as u64
                        };
                        if entries.iter().any(foreign) {
                            "a folder of the host was listed"
                        } else {
                            "inside"
                        }
                    }
                    Err(_) => "refused",
                }
            })
            .await
    })
}

pub(crate) fn snapshot(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let course = Course::new(arena).await;
        course
            .race(FOLDERS, SWAPPING, async |sandbox, round| {
                match sandbox.snapshot(SnapshotOptions::default()).await {
                    Ok(found) => {
                        let foreign =
                            |stat: &sixb_sandbox::FileStat| stat.size == OUTSIDE.len() as u64;
                        if found.files.values().any(foreign) {
                            "a file of the host was listed"
                        } else if round % 2 == 0 {
                            "inside"
                        } else {
                            "refused"
                        }
                    }
                    Err(_) => "refused",
                }
            })
            .await
    })
}
