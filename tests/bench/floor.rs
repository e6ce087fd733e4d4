//! What a sandbox cannot be faster than: the same work without ours.

use std::{
    io::Read,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// A host command with nothing of the host's environment: login scripts of the user would be measured otherwise.
pub(crate) fn clean(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// How long a command takes from start to end.
pub(crate) fn time(mut command: Command) -> Duration {
    let begin = Instant::now();
    let status = command.status().expect("the floor's program starts");
    assert!(status.success(), "{command:?}: {status}");
    begin.elapsed()
}

/// `bash -lc true` without a sandbox, with no profile files to read: ours has one comment.
pub(crate) fn login_shell(home: &Path) -> Command {
    let mut command = clean("/usr/bin/bash", home);
    command.args(["--noprofile", "-lc", "true"]);
    command
}

/// The same in a bare bubblewrap sandbox. `None` where bubblewrap is missing.
pub(crate) fn bubblewrap(home: &Path) -> Option<Command> {
    if !Path::new("/usr/bin/bwrap").exists() {
        return None;
    }
    let mut command = clean("/usr/bin/bwrap", home);
    command.args(["--unshare-all", "--ro-bind", "/usr", "/usr"]);
    for link in ["bin", "sbin", "lib", "lib64"] {
        command.args(["--symlink", &format!("usr/{link}"), &format!("/{link}")]);
    }
    command.args([
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/etc", "--chdir", "/tmp",
    ]);
    command.args(["/usr/bin/bash", "-lc", "true"]);
    Some(command)
}

/// How long it takes to read `bytes` from a pipe that a bare process fills, doing nothing with them.
pub(crate) fn pipe(bytes: u64, home: &Path) -> Duration {
    let mut command = clean("/usr/bin/head", home);
    command
        .args(["-c", &bytes.to_string(), "/dev/zero"])
        .stdout(Stdio::piped());
    let begin = Instant::now();
    let mut child = command.spawn().expect("head starts");
    let mut stdout = child.stdout.take().expect("piped");
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        match stdout.read(&mut buffer).expect("read") {
            0 => break,
            read => total += read as u64,
        }
    }
    child.wait().expect("head ends");
    assert_eq!(total, bytes);
    begin.elapsed()
}
