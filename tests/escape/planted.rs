//! What a guest can leave in a folder of the host for others to run into.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
};

use sixb_sandbox::Command;

use crate::{
    arena::{Arena, compile, run, sh},
    program::c_source,
    row::Seen,
};

const SETUID: &str = include_str!("attacks/setuid.c");
const WAYS: &[&str] = &[
    "chmod",
    "chmod_high_bits",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "open",
    "creat",
    "openat",
    "openat2",
    "mknod",
    "mknodat",
];

/// A program that runs with the rights of the folder's owner: as root, of root.
pub(crate) fn setuid(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let folder = tempfile::tempdir().expect("folder");
        let sandbox = arena.on_folder(folder.path()).await;
        compile(&sandbox, "setuid", &c_source(SETUID)).await;
        let mut planted = Vec::new();
        for bit in ["4000", "2000", "6000"] {
            for way in WAYS {
                run(&sandbox, Command::argv(["/tmp/setuid", way, bit])).await;
                let mode =
                    fs::metadata(folder.path().join("planted")).map_or(0, |found| found.mode());
                if mode & 0o6000 != 0 {
                    planted.push(format!("{way} {bit}"));
                }
            }
        }
        sandbox.destroy().await.expect("destroyed");
        match planted.as_slice() {
            [] => "none".into(),
            planted => format!("planted by {planted:?}"),
        }
    })
}

/// Device nodes, as which the folder would give its reader a disk.
pub(crate) fn devices(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let folder = tempfile::tempdir().expect("folder");
        let sandbox = arena.on_folder(folder.path()).await;
        sh(&sandbox, "mknod b b 8 0; mknod c c 1 1; cp -a /dev/null n; ln /dev/zero z; tar -cf t /dev/full && tar -xf t; true").await;
        let found = fs::read_dir(folder.path()).expect("folder").any(|entry| {
            let kind = entry.expect("entry").file_type().expect("kind");
            kind.is_block_device() || kind.is_char_device()
        });
        sandbox.destroy().await.expect("destroyed");
        if found {
            "a device".into()
        } else {
            "none".into()
        }
    })
}

/// Files that belong to somebody else than the folder's owner.
pub(crate) fn owners(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let folder = tempfile::tempdir().expect("folder");
        let owner = fs::metadata(folder.path()).expect("folder").uid();
        let sandbox = arena.on_folder(folder.path()).await;
        sh(&sandbox, "touch a; chown 0 a; chown 65534 a; mkdir d; chgrp 0 d; install -o root -g root a b; true").await;
        let foreign = fs::read_dir(folder.path())
            .expect("folder")
            .filter(|entry| {
                entry
                    .as_ref()
                    .expect("entry")
                    .metadata()
                    .expect("file")
                    .uid()
                    != owner
            })
            .count();
        sandbox.destroy().await.expect("destroyed");
        match foreign {
            0 => "own".into(),
            foreign => format!("{foreign} of others"),
        }
    })
}
