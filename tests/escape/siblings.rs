//! Two sandboxes at once: neither sees the other.

use std::sync::Arc;

use sixb_sandbox::{Command, CreateOptions, Sandbox, SandboxExt};

use crate::{
    arena::{Arena, run, sh, write},
    row::Seen,
};

const SHARED_MEMORY: &str = concat!(
    include_str!("attacks/attack.py"),
    include_str!("attacks/shared_memory.py")
);

async fn two(arena: &Arena) -> [Arc<dyn Sandbox>; 2] {
    [
        arena.sandbox(CreateOptions::default()).await,
        arena.sandbox(CreateOptions::default()).await,
    ]
}

async fn end(sandboxes: [Arc<dyn Sandbox>; 2]) {
    for sandbox in sandboxes {
        sandbox.destroy().await.expect("destroyed");
    }
}

async fn memory(arena: &Arena, kind: &str) -> String {
    let both = two(arena).await;
    let mut seen = Vec::new();
    for (sandbox, how) in both.iter().zip(["make", "find"]) {
        let argv = ["/usr/bin/python3", "-I", "-c", SHARED_MEMORY, how, kind];
        let output = run(sandbox, Command::argv(argv)).await;
        seen.push(output.stdout.text().trim().to_owned());
    }
    end(both).await;
    // Without the first half the second proves nothing.
    match seen[0].starts_with("reached") {
        true => seen.swap_remove(1),
        false => format!("not made: {}", seen[0]),
    }
}

macro_rules! memories {
    ($($name:ident: $kind:literal;)*) => {
        $(pub(crate) fn $name(arena: &Arena) -> Seen<'_> { Box::pin(memory(arena, $kind)) })*
    };
}

memories! {
    system_v_memory: "sysv";
    posix_memory: "posix";
    queues: "queue";
    semaphores: "semaphore";
}

/// Sockets of one, by any name, against the other.
pub(crate) fn sockets(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let both = two(arena).await;
        let listen = "import socket,time
a=socket.socket(socket.AF_UNIX); a.bind('\\0sibling'); a.listen()
t=socket.socket(); t.bind(('127.0.0.1',4321)); t.listen()
p=socket.socket(socket.AF_UNIX); p.bind('/tmp/sibling'); p.listen()
print('up',flush=True); time.sleep(1000)";
        let id = both[0]
            .start(Command::argv(["/usr/bin/python3", "-c", listen]))
            .await
            .expect("started");
        let try_all = "import socket,time
def reached(f,a):
    try: socket.socket(f).connect(a); return 1
    except OSError: return 0
for _ in range(100):
    n=reached(socket.AF_UNIX,'\\0sibling')+reached(socket.AF_INET,('127.0.0.1',4321))+reached(socket.AF_UNIX,'/tmp/sibling')
    if n==WANT: break
    time.sleep(0.05)
print(n)";
        let mut seen = Vec::new();
        for (sandbox, want) in both.iter().zip(["3", "0"]) {
            let script = try_all.replace("WANT", want);
            let output = run(sandbox, Command::argv(["/usr/bin/python3", "-c", &script])).await;
            seen.push(output.stdout.text().trim().to_owned());
        }
        both[0].kill(&id).await.expect("killed");
        end(both).await;
        match (seen[0].as_str(), seen[1].as_str()) {
            ("3", "0") => "none of 3".into(),
            (own, other) => format!("own {own}, other {other}"),
        }
    })
}

/// Files of one, by its guest path and by the path of the host, against the other.
pub(crate) fn files(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let both = two(arena).await;
        write(&both[0], "marker", "of the first").await;
        sh(
            &both[0],
            "echo x > /tmp/marker; echo x > ~/marker; echo x > /dev/shm/marker",
        )
        .await;
        let host = sh(
            &both[0],
            "awk '$5 == \"/workspace\" { print $4 }' /proc/self/mountinfo",
        )
        .await;
        let look = format!(
            "ls /workspace/marker /tmp/marker ~/marker /dev/shm/marker {host_path}/marker /proc/*/root/workspace/marker 2>/dev/null | wc -l",
            host_path = host.trim()
        );
        let seen = [sh(&both[0], &look).await, sh(&both[1], &look).await];
        let read = both[1].read("marker").await;
        end(both).await;
        match (seen[0].trim().parse::<u32>(), seen[1].trim(), read) {
            (Ok(4..), "0", Err(_)) => "not visible".into(),
            (own, other, read) => format!("own {own:?}, other {other}, by a call {read:?}"),
        }
    })
}

/// Processes of one, against the other.
pub(crate) fn processes(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let both = two(arena).await;
        let id = both[0]
            .start(Command::argv(["sleep", "1234"]))
            .await
            .expect("started");
        let look = "pgrep -xc sleep";
        let (own, other) = (sh(&both[0], look).await, sh(&both[1], look).await);
        both[0].kill(&id).await.expect("killed");
        end(both).await;
        match (own.trim(), other.trim()) {
            ("1", "0") => "not visible".into(),
            (own, other) => format!("own {own}, other {other}"),
        }
    })
}
