//! Listing, removing, links that stay inside, snapshots.

use super::{
    Suite,
    guest::{Guest, fails_with, file, path},
};
use crate::{FileKind, ListOptions, SandboxExt, SandboxPath, SnapshotOptions};

async fn names(guest: &Guest, folder: &str, options: ListOptions) -> Vec<String> {
    let entries = guest
        .list(&path(folder), options)
        .await
        .unwrap_or_else(|error| panic!("list {folder}: {error}"));
    entries.iter().map(|entry| entry.path.to_string()).collect()
}

pub(super) async fn flat_and_recursive(suite: &Suite) {
    let guest = suite.guest().await;
    guest.out("mkdir -p ls/b/d ls/empty; echo x > ls/b/c; echo x > ls/a; echo x > ls/b/d/e; ln -s ../b ls/empty/link; ln -s nowhere ls/.z").await;
    let flat = ["ls/.z", "ls/a", "ls/b", "ls/empty"];
    assert_eq!(
        names(&guest, "ls", ListOptions::default()).await,
        flat,
        "sorted, hidden ones too"
    );
    let all = [
        "ls/.z",
        "ls/a",
        "ls/b",
        "ls/b/c",
        "ls/b/d",
        "ls/b/d/e",
        "ls/empty",
        "ls/empty/link",
    ];
    assert_eq!(
        names(&guest, "ls", ListOptions::default().recursive()).await,
        all,
        "links are not entered"
    );
    assert_eq!(
        names(&guest, "ls/b/d", ListOptions::default()).await,
        ["ls/b/d/e"]
    );
    assert!(
        names(&guest, ".", ListOptions::default())
            .await
            .contains(&"ls".to_owned()),
        "the working directory itself"
    );
    guest
        .list(&path("ls"), ListOptions::default().limit(4))
        .await
        .expect("as many as allowed");
    for (options, limit) in [
        (ListOptions::default(), 3),
        (ListOptions::default().recursive(), 7),
    ] {
        fails_with(
            "one entry more than allowed",
            guest.list(&path("ls"), options.limit(limit)).await,
            &["LimitExceeded"],
        );
    }
    guest.done().await;
}

pub(super) async fn removing(suite: &Suite) {
    let guest = suite.guest().await;
    guest.out("mkdir -p rm/tree/deep rm/kept; touch rm/file rm/tree/deep/f rm/kept/f; ln -s kept rm/link; ln -s ../kept rm/tree/link").await;
    for name in [
        "rm/file",
        "rm/link",
        "rm/tree",
        "rm/never-was",
        "rm/never/was",
    ] {
        guest
            .remove(&path(name))
            .await
            .unwrap_or_else(|error| panic!("remove {name}: {error}"));
        guest
            .remove(&path(name))
            .await
            .unwrap_or_else(|error| panic!("remove {name} again: {error}"));
    }
    assert_eq!(
        guest.out("find rm | sort").await,
        "rm\nrm/kept\nrm/kept/f\n",
        "a link is removed, not what it names"
    );
    guest.done().await;
}

pub(super) async fn every_kind_has_a_name(suite: &Suite) {
    let guest = suite.guest().await;
    let socket = "import socket; socket.socket(socket.AF_UNIX).bind('kinds/socket')";
    guest.out(&format!("mkdir -p kinds/dir; echo x > kinds/file; mkfifo kinds/fifo; ln -s file kinds/link; ln -s nowhere kinds/dangling; python3 -c \"{socket}\"")).await;
    for (name, stat, listed) in [
        ("kinds/file", Some(FileKind::File), FileKind::File),
        ("kinds/dir", Some(FileKind::Directory), FileKind::Directory),
        ("kinds/fifo", Some(FileKind::Fifo), FileKind::Fifo),
        ("kinds/socket", Some(FileKind::Socket), FileKind::Socket),
        ("kinds/link", Some(FileKind::File), FileKind::Symlink),
        ("kinds/dangling", None, FileKind::Symlink),
    ] {
        let got = guest.stat(&file(name)).await;
        match stat {
            Some(kind) => assert_eq!(
                got.map(|stat| stat.kind).map_err(|error| error.to_string()),
                Ok(kind),
                "stat of {name}"
            ),
            None => fails_with(&format!("stat of {name}"), got, &["NotFound"]),
        }
        let entries = guest
            .list(&path("kinds"), ListOptions::default())
            .await
            .expect("list");
        let entry = entries
            .iter()
            .find(|entry| entry.path == path(name))
            .unwrap_or_else(|| panic!("{name} is listed"));
        assert_eq!(entry.stat.kind, listed, "{name} in the list");
    }
    assert_eq!(
        guest.stat(&file(".")).await.expect("stat").kind,
        FileKind::Directory
    );
    guest.done().await;
}

pub(super) async fn links_that_stay_inside_are_followed(suite: &Suite) {
    let guest = suite.guest().await;
    guest.out("mkdir -p in/sub; echo real > in/sub/real; cd in; ln -s sub/real rel; ln -s $PWD/sub/real abs; ln -s sub dir; ln -s $PWD/sub absdir; ln -s ../in/rel chain").await;
    for name in [
        "in/rel",
        "in/abs",
        "in/dir/real",
        "in/absdir/real",
        "in/chain",
    ] {
        assert_eq!(&guest.read(name).await[..], b"real\n", "{name}");
        assert_eq!(
            guest.stat(&file(name)).await.expect("stat").size,
            5,
            "{name}"
        );
    }
    for name in ["in/dir/new", "in/absdir/new2"] {
        guest.write(name, "through\n").await;
    }
    assert_eq!(
        guest.out("cat in/sub/new in/sub/new2").await,
        "through\nthrough\n"
    );
    assert_eq!(
        names(&guest, "in/dir", ListOptions::default()).await.len(),
        3,
        "the folder that a link names is listed"
    );
    guest.done().await;
}

pub(super) async fn snapshots_and_changes(suite: &Suite) {
    let guest = suite.guest().await;
    if !suite.expect.snapshots {
        fails_with(
            "snapshot",
            guest.snapshot(SnapshotOptions::default()).await,
            &["IsolationUnavailable"],
        );
        return guest.done().await;
    }
    guest.out("mkdir -p snap/sub snap/.git snap/node_modules/x; cd snap; echo 1 > same; echo 1 > grows; echo 1 > rewritten; echo 1 > gone; echo 1 > sub/deep; ln -s same link").await;
    let before = guest
        .snapshot(SnapshotOptions::default())
        .await
        .expect("snapshot");
    let ours = |paths: &[SandboxPath]| -> Vec<String> {
        paths
            .iter()
            .map(SandboxPath::to_string)
            .filter(|name| name.starts_with("snap/"))
            .collect()
    };
    let kept = ours(&before.files.keys().cloned().collect::<Vec<_>>());
    assert_eq!(
        kept,
        [
            "snap/gone",
            "snap/grows",
            "snap/rewritten",
            "snap/same",
            "snap/sub/deep"
        ],
        "regular files only"
    );
    assert_eq!(before.files[&path("snap/grows")].size, 2);
    let none = guest.changes_since(&before).await.expect("changes");
    assert_eq!(
        (
            ours(&none.created),
            ours(&none.modified),
            ours(&none.removed)
        ),
        (vec![], vec![], vec![]),
        "nothing happened"
    );

    guest.out("cd snap; echo 2 >> grows; echo 2 > rewritten; rm gone; echo 1 > new; echo 1 > .git/x; echo 1 > node_modules/x/y").await;
    guest.write("snap/sub/deep", "2\n").await;
    let changes = guest.changes_since(&before).await.expect("changes");
    assert_eq!(
        ours(&changes.created),
        ["snap/new"],
        "skipped folders are skipped"
    );
    assert_eq!(
        ours(&changes.modified),
        ["snap/grows", "snap/rewritten", "snap/sub/deep"],
        "the same size is no disguise"
    );
    assert_eq!(ours(&changes.removed), ["snap/gone"]);
    let few = SnapshotOptions::default().limit(2);
    fails_with(
        "more files than allowed",
        guest.snapshot(few).await,
        &["LimitExceeded"],
    );
    guest.done().await;
}
