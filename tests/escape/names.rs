//! Names that confuse: the host's file calls against what a caller (a model) may write and what a guest may create.

use sixb_sandbox::{CreateOptions, FileWrite, ListOptions, SandboxExt, SandboxPath};

use crate::{
    arena::{Arena, run},
    row::Seen,
};

/// What a caller may not name: each is refused before any file is touched.
pub(crate) fn climbing(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = arena.sandbox(CreateOptions::default()).await;
        let long = "x".repeat(256);
        let deep = "d/".repeat(3000) + "x";
        let names: Vec<Vec<u8>> = [
            "..",
            "../x",
            "a/../../x",
            "./..",
            "a/b/../../..",
            "/etc/passwd",
            "//etc/passwd",
            "/workspace/../etc/passwd",
            "/workspace-evil/x",
            "/proc/self/root/etc/passwd",
            "a\0b",
            "..\0",
            "\0/../..",
            &long,
            &deep,
        ]
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
        let mut taken = Vec::new();
        for name in &names {
            let shown = String::from_utf8_lossy(&name[..name.len().min(40)]).into_owned();
            let Ok(path) = SandboxPath::parse_guest(name, sandbox.working_directory()) else {
                continue;
            };
            if sandbox
                .write_files(vec![FileWrite::new(path, "x")])
                .await
                .is_ok()
            {
                taken.push(shown);
            }
        }
        sandbox.destroy().await.expect("destroyed");
        match taken.as_slice() {
            [] => "refused".into(),
            taken => format!("taken: {taken:?}"),
        }
    })
}

/// What looks like climbing but is a plain name: made by the guest, it is listed, read, written and removed as just that.
pub(crate) fn lookalikes(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = arena.sandbox(CreateOptions::default()).await;
        let names: &[&[u8]] = &[
            b"..x",
            b"...",
            b"..\n",
            b".. ",
            b" ..",
            b"..\\x",
            b"..%2f..",
            b"\xe2\x80\xa5",
            b"\xff\xfe",
            b"..\xff",
            b"-rf",
            b"a\nb",
            b"\x1b[31m",
            b"~",
            b"$(id)",
            b"con:",
            b"\r",
            b"*",
            b"C:\\x",
            b"\xef\xbc\x8e\xef\xbc\x8e",
        ];
        let make = "import os,sys
for n in sys.stdin.buffer.read().split(b'/'):
    open(b'/workspace/'+n,'wb').write(n)";
        let command = sixb_sandbox::Command::argv(["/usr/bin/python3", "-c", make]);
        let output = run(&sandbox, command.stdin_bytes(names.join(&b'/'))).await;
        assert!(output.success(), "{}", output.stderr.text());
        let mut wrong = Vec::new();
        let listed = sandbox
            .list(&SandboxPath::root(), ListOptions::default())
            .await;
        let listed: Vec<Vec<u8>> = listed
            .expect("listed")
            .iter()
            .map(|entry| entry.path.as_bytes().to_vec())
            .collect();
        for name in names {
            let path = SandboxPath::parse(name).expect("a plain name");
            let source = sixb_sandbox::FileSource::Path(path.clone());
            let range = sixb_sandbox::ByteRange::new(0, 100);
            let read = sandbox.read_range(&source, range).await;
            let written = sandbox
                .write_files(vec![FileWrite::new(path.clone(), "new")])
                .await;
            let removed = sandbox.remove(&path).await;
            let right = path.as_bytes() == *name
                && listed.iter().any(|listed| listed == name)
                && read.is_ok_and(|bytes| bytes == *name)
                && written.is_ok()
                && removed.is_ok();
            if !right {
                wrong.push(String::from_utf8_lossy(name).into_owned());
            }
        }
        let left = sandbox
            .list(&SandboxPath::root(), ListOptions::default())
            .await;
        sandbox.destroy().await.expect("destroyed");
        match (wrong.as_slice(), left.expect("listed").len()) {
            ([], 0) => "plain names".into(),
            (wrong, left) => format!("wrong: {wrong:?}, left: {left}"),
        }
    })
}

/// The text of names and errors reaches terminals and models: nothing the guest chose may end a line of an error.
pub(crate) fn special_files(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = arena.sandbox(CreateOptions::default()).await;
        let make = "mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; ln -s /dev/zero zero; ln -s pipe to-pipe; truncate -s 1T huge; mkdir folder";
        run(&sandbox, sixb_sandbox::Command::script(make)).await;
        let mut wrong = Vec::new();
        for name in ["pipe", "sock", "zero", "to-pipe", "folder"] {
            // Opening a pipe waits for its other end, forever: it must not be opened at all.
            let read =
                tokio::time::timeout(std::time::Duration::from_secs(5), sandbox.read(name)).await;
            match read {
                Ok(Err(_)) => {}
                other => wrong.push(format!("{name}: {other:?}")),
            }
        }
        let source = sixb_sandbox::FileSource::Path(SandboxPath::parse("huge").expect("path"));
        // The size of a file is what the guest says: no memory is taken for it.
        let range = sixb_sandbox::ByteRange::new(1 << 39, 1 << 20);
        if sandbox
            .read_range(&source, range)
            .await
            .map(|bytes| bytes.len())
            .ok()
            != Some(1 << 20)
        {
            wrong.push("huge".into());
        }
        if sandbox.read("huge").await.is_ok() {
            wrong.push("huge, whole".into());
        }
        sandbox.destroy().await.expect("destroyed");
        match wrong.as_slice() {
            [] => "refused".into(),
            wrong => format!("{wrong:?}"),
        }
    })
}
