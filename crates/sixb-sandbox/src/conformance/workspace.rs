//! A working directory that is a folder of the host.

use super::{
    Suite,
    guest::{describe, fails_with, path},
    host::Folder,
};
use crate::{CreateOptions, FileWrite, Workspace};

fn host_folder() -> Folder {
    Folder::with("from-host", "host\n")
}

fn options(folder: &Folder, read_only: bool) -> CreateOptions {
    let path = folder.path().to_owned();
    CreateOptions::default().workspace(Workspace::HostFolder { path, read_only })
}

pub(super) async fn a_host_folder_is_shared_and_kept(suite: &Suite) {
    let folder = host_folder();
    let guest = suite.guest_with(options(&folder, false)).await;
    assert_eq!(
        guest.out("cat from-host; echo guest > from-command").await,
        "host\n"
    );
    guest.write("sub/from-call", "call\n").await;
    guest.done().await;
    for (name, contents) in [
        ("from-host", "host\n"),
        ("from-command", "guest\n"),
        ("sub/from-call", "call\n"),
    ] {
        assert_eq!(
            folder.read(name).as_deref(),
            Some(contents),
            "{name}, on the host, after destroy"
        );
    }
}

pub(super) async fn a_read_only_folder_cannot_be_changed(suite: &Suite) {
    let folder = host_folder();
    let guest = suite.guest_with(options(&folder, true)).await;
    assert_eq!(guest.out("cat from-host").await, "host\n");
    for script in [
        "echo x > new",
        "echo x > from-host",
        "rm from-host",
        "mkdir d",
        "mv from-host b",
    ] {
        let output = guest.sh(script).await;
        assert!(
            !output.success(),
            "{script} must fail: {}",
            describe(&output)
        );
    }
    for name in ["new", "from-host", "d/new"] {
        let result = guest
            .write_files(vec![FileWrite::new(path(name), "x")])
            .await;
        fails_with(&format!("writing {name}"), result, &["PermissionDenied"]);
    }
    fails_with(
        "removing",
        guest.remove(&path("from-host")).await,
        &["PermissionDenied"],
    );
    guest.done().await;
    assert_eq!(folder.names(), ["from-host"]);
}
