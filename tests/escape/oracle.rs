//! The same program under `bwrap`, with a profile as near to ours as its options allow. It has no system call filter: what
//! it lets through shows what that filter is for.

use std::{
    io::Write,
    os::unix::fs::MetadataExt,
    path::Path,
    process::{Command, Stdio},
};

use crate::{arena::Arena, program::Program};

const BWRAP: &str = "/usr/bin/bwrap";

/// The verdict under `bwrap`; `None` where it is not installed.
pub(crate) async fn attack(arena: &Arena, program: &Program) -> Option<String> {
    if !Path::new(BWRAP).exists() {
        return None;
    }
    let mut command = profile(arena, program);
    let (argv, stdin) = program.command();
    command.arg("--").args(argv);
    let output = tokio::task::spawn_blocking(move || -> std::io::Result<_> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            let _ = input.write_all(stdin.as_bytes());
        }
        child.wait_with_output()
    })
    .await
    .expect("a thread")
    .expect("bwrap");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = |text: &str| text.lines().last().map(str::to_owned);
    Some(last(&stdout).unwrap_or_else(|| {
        let end = format!("ended with {}", output.status);
        last(&stderr).map_or(end.clone(), |line| format!("{end}: {line}"))
    }))
}

fn profile(arena: &Arena, program: &Program) -> Command {
    // Root in its namespace would be root of the host: it must drop first, as our helper does.
    let root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if root {
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    }
    command.args(["timeout", "--kill-after=1", "20", BWRAP]);
    command.args(["--unshare-user", "--uid", "1000", "--gid", "1000"]);
    command.args([
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]);
    if !program.host_network {
        command.arg("--unshare-net");
    }
    command.args(["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    command.args(["--ro-bind", "/usr", "/usr"]);
    for path in ["/bin", "/sbin", "/lib", "/lib32", "/lib64"] {
        match std::fs::read_link(path) {
            Ok(to) => command.arg("--symlink").arg(to).arg(path),
            Err(_) => command.args(["--ro-bind-try", path, path]),
        };
    }
    for path in ["/etc/alternatives", "/etc/ld.so.cache"] {
        command.args(["--ro-bind-try", path, path]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev"]);
    for path in ["/tmp", "/run", "/home/agent", "/workspace"] {
        command.args(["--tmpfs", path]);
    }
    command
        .arg("--ro-bind")
        .arg(arena.bait.shown())
        .arg("/data");
    command.args(["--chdir", "/workspace", "--clearenv"]);
    for (key, value) in arena.bait.told() {
        command.args(["--setenv", key, &value]);
    }
    command.args(["--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"]);
    command
}
