//! Paths into the workspace, past it and through links.
#![expect(
    clippy::disallowed_methods,
    reason = "plants what a guest could have planted"
)]

use std::{fs, os::unix::fs::symlink};

use super::*;

/// `work`, which a guest may write to, and `victim`, which it may not.
fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let root = tempfile::tempdir().expect("folder");
    let (work, victim) = (root.path().join("work"), root.path().join("victim"));
    for folder in [&work, &victim] {
        fs::create_dir(folder).expect("folder");
    }
    let work = real(&work).expect("path");
    (root, work, victim)
}

#[test]
fn what_leads_into_the_workspace_is_exposed_however_it_is_written() {
    let (root, work, victim) = folders();
    symlink(&work, root.path().join("alias")).expect("link");
    symlink(&victim, work.join("planted")).expect("link");
    for (path, exposed) in [
        ("work", true),
        ("work/out", true),
        ("work/planted/out", true),
        ("alias/out", true),
        ("victim/../work/out", true),
        ("work/../out", false),
        ("work/planted/../../out", false),
        ("victim/out", false),
        ("workshop", false),
    ] {
        let place = Place::find_from(&root.path().join(path), Some(&work), None);
        assert_eq!(place.expect(path).is_exposed(), exposed, "{path}");
    }
}

#[test]
fn links_below_the_workspace_or_the_current_folder_are_not_followed() {
    let (_root, work, victim) = folders();
    symlink(&victim, work.join("absolute")).expect("link");
    symlink("../victim", work.join("relative")).expect("link");
    symlink(".", work.join("inner")).expect("link");
    for name in ["absolute", "relative", "inner", "absolute/x", "inner/x"] {
        for (writable, here) in [(Some(&work), None), (None, Some(&work))] {
            let place = Place::find_from(
                &work.join(name),
                writable.map(PathBuf::as_path),
                here.map(PathBuf::as_path),
            )
            .expect(name);
            let error = place.open().expect_err(name).to_string();
            assert!(error.contains("is a link"), "{name}: {error}");
            let (root, _) = place.open_root().expect("root");
            place.check(&root).expect_err(name);
        }
    }
    assert_eq!(fs::read_dir(&victim).expect("victim").count(), 0);
}

#[test]
fn the_users_own_links_elsewhere_are_followed() {
    let (root, work, victim) = folders();
    symlink(&victim, root.path().join("big-disk")).expect("link");
    let place = Place::find_from(&root.path().join("big-disk/out"), Some(&work), None);
    let (_, made) = place.expect("place").open().expect("open");
    assert!(made && victim.join("out").is_dir());
}
