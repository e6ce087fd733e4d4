//! Hogs and bombs: the limits hold, and host and control channel answer meanwhile.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use sixb_sandbox::{Command, CreateOptions, ResourceLimits, Sandbox, SandboxError};

use crate::{
    arena::{Arena, destroyed, run, unwell},
    row::Seen,
};

/// The longest that a small command may take beside a bomb. The machine is the tests' own and busy.
const ANSWER: Duration = Duration::from_secs(5);

/// Runs `bomb`; meanwhile small commands and file calls are made. `None` = all were answered in time.
async fn beside(
    sandbox: &Arc<dyn Sandbox>,
    bomb: Command,
) -> (String, sixb_sandbox::CommandOutput) {
    let bombing = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { run(&sandbox, bomb).await }
    });
    let mut slowest = Duration::ZERO;
    let mut wrong = None;
    for round in 0.. {
        if bombing.is_finished() && round > 2 {
            break;
        }
        let begin = Instant::now();
        // Built in: beside a bomb of processes, none can be made.
        let small = Command::argv(["/bin/bash", "-c", "echo on"]).timeout(ANSWER);
        match tokio::time::timeout(ANSWER, sandbox.run(small)).await {
            Ok(Ok(output)) if output.stdout.text() == "on\n" => {}
            // Told, at once: no process is left for it.
            Ok(Err(SandboxError::Provider { .. })) => {}
            Ok(Ok(output)) if output.exit_code.is_some_and(|code| code != 0) => {}
            other => wrong = Some(format!("{other:?}")),
        }
        let listed = sandbox
            .list(&sandbox_root(), sixb_sandbox::ListOptions::default())
            .await;
        if listed.is_err() {
            wrong = Some(format!("{listed:?}"));
        }
        slowest = slowest.max(begin.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let output = bombing.await.expect("the bomb");
    let seen = match wrong {
        Some(wrong) => wrong,
        None if slowest > ANSWER => format!("an answer took {slowest:?}"),
        None => String::new(),
    };
    (seen, output)
}

fn sandbox_root() -> sixb_sandbox::SandboxPath {
    sixb_sandbox::SandboxPath::root()
}

async fn bombed(
    arena: &Arena,
    limits: ResourceLimits,
    bomb: Command,
    judge: impl Fn(&sixb_sandbox::CommandOutput) -> Option<String>,
) -> String {
    let sandbox = arena.sandbox(CreateOptions::default().limits(limits)).await;
    let (seen, output) = beside(&sandbox, bomb.timeout(Duration::from_secs(2))).await;
    let unwell = unwell(&sandbox).await;
    let gone = destroyed(arena, sandbox).await;
    let all = [
        Some(seen).filter(|seen| !seen.is_empty()),
        judge(&output),
        unwell,
        gone,
    ];
    let wrong: Vec<String> = all.into_iter().flatten().collect();
    if wrong.is_empty() {
        "answers".into()
    } else {
        wrong.join("; ")
    }
}

fn python(source: &str) -> Command {
    Command::argv(["/usr/bin/python3", "-c", source])
}

pub(crate) fn processes(arena: &Arena) -> Seen<'_> {
    let bomb = Command::argv([
        "/bin/bash",
        "-c",
        "bomb() { bomb | bomb & }; bomb; sleep 100",
    ]);
    Box::pin(bombed(
        arena,
        ResourceLimits::default().pids(64),
        bomb,
        |_| None,
    ))
}

pub(crate) fn threads(arena: &Arena) -> Seen<'_> {
    let bomb = python(
        "import threading,time
n=0
try:
    while n<100000: threading.Thread(target=time.sleep,args=(100,),daemon=True).start(); n+=1
except RuntimeError: pass
print(n,flush=True); time.sleep(100)",
    );
    Box::pin(bombed(
        arena,
        ResourceLimits::default().pids(64),
        bomb,
        |output| {
            let text = output.stdout.text();
            (!matches!(text.trim().parse::<u32>(), Ok(1..=64)))
                .then(|| format!("threads: {text:?}"))
        },
    ))
}

pub(crate) fn descriptors(arena: &Arena) -> Seen<'_> {
    let bomb = python(
        "import os,time
n=0
try:
    while n<1000000: os.dup(0); n+=1
except OSError: pass
print(n,flush=True); time.sleep(100)",
    );
    Box::pin(bombed(
        arena,
        ResourceLimits::default().open_files(256),
        bomb,
        |output| {
            let text = output.stdout.text();
            (!matches!(text.trim().parse::<u32>(), Ok(1..=256)))
                .then(|| format!("descriptors: {text:?}"))
        },
    ))
}

fn told(output: &sixb_sandbox::CommandOutput) -> Option<String> {
    let own_error = output.stderr.text().contains("MemoryError");
    (output.oom_killed != Some(true) && !own_error).then(|| format!("not told: {output:?}"))
}

pub(crate) fn memory(arena: &Arena) -> Seen<'_> {
    let bomb = python(
        "x=[]
while True: x.append(bytearray(1<<20))",
    );
    Box::pin(bombed(
        arena,
        ResourceLimits::default().memory_bytes(128 << 20),
        bomb,
        told,
    ))
}

/// Each small, together too much: no limit of one process sees that.
pub(crate) fn memory_of_many(arena: &Arena) -> Seen<'_> {
    let bomb = python(
        "import os,time
for _ in range(12):
    if os.fork()==0:
        x=bytearray(32<<20); time.sleep(100)
time.sleep(100)",
    );
    Box::pin(bombed(
        arena,
        ResourceLimits::default().memory_bytes(128 << 20),
        bomb,
        told,
    ))
}

/// The first thread of each ends: the process looks dead and without memory.
pub(crate) fn memory_of_the_dead(arena: &Arena) -> Seen<'_> {
    let bomb = python(
        "import ctypes,os,threading,time
def hold():
    x=bytearray(32<<20); time.sleep(100)
for _ in range(12):
    if os.fork()==0:
        threading.Thread(target=hold).start(); time.sleep(0.2)
        ctypes.CDLL(None).pthread_exit(None)
time.sleep(100)",
    );
    Box::pin(bombed(
        arena,
        ResourceLimits::default().memory_bytes(128 << 20),
        bomb,
        told,
    ))
}

/// Memory that belongs to no process once it is made.
pub(crate) fn memory_of_nobody(arena: &Arena) -> Seen<'_> {
    let bomb = python(
        "import mmap,os,ctypes,time
libc=ctypes.CDLL(None)
libc.shmat.restype=ctypes.c_void_p
for n in range(64):
    at=libc.shmget(n+1,8<<20,0o1600)
    p=libc.shmat(at,None,0) if at>=0 else None
    if p and p!=2**64-1: ctypes.memset(p,1,8<<20)
    try: fd=os.memfd_create('x'); os.write(fd,bytes(8<<20))
    except OSError: pass
    open(f'/dev/shm/{n}','wb').write(bytes(8<<20))
time.sleep(100)",
    );
    Box::pin(bombed(
        arena,
        ResourceLimits::default().memory_bytes(128 << 20),
        bomb,
        |output| {
            // Refused or killed, but never had.
            let had = output.oom_killed != Some(true) && output.exit_code == Some(0);
            had.then(|| format!("{output:?}"))
        },
    ))
}

pub(crate) fn disk(arena: &Arena) -> Seen<'_> {
    let bomb = Command::argv([
        "/bin/bash",
        "-c",
        "for f in /workspace/a /tmp/a ~/a /dev/shm/a /run/a; do head -c 64M /dev/zero >$f; done; du -cbs /workspace /tmp ~ /dev/shm /run | tail -1 | cut -f1",
    ]);
    Box::pin(bombed(
        arena,
        ResourceLimits::default().disk_bytes(8 << 20),
        bomb,
        |output| {
            let text = output.stdout.text();
            let used = text.trim().parse::<u64>();
            (!matches!(used, Ok(0..=9_000_000))).then(|| format!("used: {text:?}"))
        },
    ))
}

pub(crate) fn output(arena: &Arena) -> Seen<'_> {
    let flood = Command::argv(["/bin/bash", "-c", "yes & yes >&2 & cat /dev/zero & wait"]);
    Box::pin(bombed(arena, ResourceLimits::default(), flood, |output| {
        let kept = output.stdout.bytes().len();
        (output.stdout.total_bytes < 1 << 20 || kept > 9 << 20).then(|| format!("kept {kept}"))
    }))
}

/// All at once, and many commands that each flood.
pub(crate) fn many_floods(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = arena.sandbox(CreateOptions::default()).await;
        let floods = (0..24).map(|_| {
            let sandbox = sandbox.clone();
            tokio::spawn(async move {
                let flood = Command::argv(["yes"]).timeout(Duration::from_secs(2));
                run(&sandbox, flood).await
            })
        });
        let floods: Vec<_> = floods.collect();
        let well = unwell(&sandbox).await;
        let mut ended = 0;
        for flood in floods {
            ended += u32::from(flood.await.expect("flood").timed_out);
        }
        let gone = destroyed(arena, sandbox).await;
        match (well, ended, gone) {
            (None, 24, None) => "answers".into(),
            other => format!("{other:?}"),
        }
    })
}

/// The end of a sandbox does not wait for its processes to agree.
pub(crate) fn destroy_under_a_bomb(arena: &Arena) -> Seen<'_> {
    Box::pin(async move {
        let sandbox = arena.sandbox(CreateOptions::default()).await;
        let bombing = tokio::spawn({
            let sandbox = sandbox.clone();
            async move {
                let bomb = "trap '' TERM INT HUP; bomb() { bomb | bomb & }; bomb; sleep 100";
                sandbox.run(Command::argv(["/bin/bash", "-c", bomb])).await
            }
        });
        tokio::time::sleep(Duration::from_millis(700)).await;
        let begin = Instant::now();
        let gone = destroyed(arena, sandbox).await;
        let took = begin.elapsed();
        let output = bombing.await.expect("bomb");
        let cancelled = output.as_ref().is_ok_and(|output| output.cancelled);
        match (gone, cancelled, took) {
            (None, true, took) if took < Duration::from_secs(5) => "gone".into(),
            other => format!("{other:?}"),
        }
    })
}
