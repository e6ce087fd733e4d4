//! Commands that want to outlive their deadline: whatever they do, nothing of them is left, and the sandbox lives.

use std::time::{Duration, Instant};

use sixb_sandbox::{Command, CreateOptions};

use crate::{
    arena::{Arena, compile, run, unwell},
    program::c_source,
    row::Seen,
};

const RUNNER: &str = include_str!("attacks/runner.c");
const DEADLINE: Duration = Duration::from_millis(700);
/// Until the answer of a command with that deadline, on a busy machine.
const LATEST: Duration = Duration::from_secs(8);

/// Runs `script` past its deadline in a sandbox with the program `/tmp/runner`.
async fn dodge(arena: &Arena, script: &str) -> String {
    let sandbox = arena.sandbox(CreateOptions::default()).await;
    compile(&sandbox, "runner", &c_source(RUNNER)).await;
    let begin = Instant::now();
    run(&sandbox, Command::script(script).timeout(DEADLINE)).await;
    let took = begin.elapsed();
    if let Some(unwell) = unwell(&sandbox).await {
        return unwell;
    }
    // Whoever looks, its leader and process 1 are all there is.
    let look = "import os
names = []
for pid in filter(str.isdigit, os.listdir('/proc')):
    try: names.append(open(f'/proc/{pid}/comm').read().strip())
    except OSError: pass
print(*[name for name in names if name not in ('sixb-supervisor', 'looks')][:3])";
    let look = format!("open('/proc/self/comm','w').write('looks')\n{look}");
    let left = run(&sandbox, Command::argv(["/usr/bin/python3", "-c", &look]))
        .await
        .stdout
        .text();
    sandbox.destroy().await.expect("destroyed");
    match (left.trim(), took) {
        ("", took) if took < LATEST => "all gone".into(),
        ("", took) => format!("all gone, but only after {took:?}"),
        (left, _) => format!("left: {left}"),
    }
}

macro_rules! dodges {
    ($($name:ident: $script:literal;)*) => {
        $(pub(crate) fn $name(arena: &Arena) -> Seen<'_> { Box::pin(dodge(arena, $script)) })*
    };
}

dodges! {
    daemon: "(setsid bash -c 'trap \"\" TERM HUP INT; setsid sleep 1000 & sleep 1000' &) ; trap '' TERM; sleep 1000";
    stopped_leader: "kill -STOP $PPID; sleep 1000";
    stopped_leader_and_end: "kill -STOP $PPID; sleep 1000 & exit 0";
    all_stopped: "sleep 1000 & kill -STOP -1; sleep 1000";
    killed_leader: "setsid sleep 1000 & kill -9 $PPID; sleep 1000";
    runner: "/tmp/runner 1 & sleep 1000";
    many_runners: "/tmp/runner 64 & sleep 1000";
    runner_without_leader: "/tmp/runner 8 & sleep 0.2; kill -9 $PPID; sleep 1000";
    fork_bomb: "bomb() { bomb | bomb & }; bomb; sleep 1000";
    subreapers: "/tmp/runner 8 reap & sleep 1000";
    dead_first_thread: "/tmp/runner 4 thread & sleep 1000";
}
