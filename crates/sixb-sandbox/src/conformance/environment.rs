//! Variables and directories of a command, and the secrets of the host that must not be among them.

use super::{
    Suite,
    guest::{Guest, fails_with, path},
};
use crate::Command;

pub(super) async fn values_arrive_exactly(suite: &Suite) {
    let guest = suite.guest().await;
    for value in [
        "",
        " ",
        "a b",
        "line\nbreak\n",
        "\"'`$HOME\\",
        "a=b=c",
        "é😀",
        &"x".repeat(100_000),
    ] {
        for command in [
            Command::script("printf %s \"$SIXB_X\""),
            Command::argv(["sh", "-c", "printf %s \"$SIXB_X\""]),
        ] {
            let got = guest.out_of(command.env("SIXB_X", value)).await;
            assert!(
                got == value,
                "{} bytes became {} bytes: {:.80?} → {got:.80?}",
                value.len(),
                got.len(),
                value
            );
        }
    }
    for key in ["", "A=B", "A\0"] {
        let result = guest.run(Command::argv(["true"]).env(key, "x")).await;
        fails_with(
            &format!("a variable named {key:?}"),
            result,
            &["InvalidInput"],
        );
    }
    guest.done().await;
}

/// Names whose values say nothing secret and may be the same on both sides.
const COMMON: [&str; 12] = [
    "PATH", "HOME", "PWD", "OLDPWD", "SHELL", "LANG", "TERM", "USER", "LOGNAME", "HOSTNAME",
    "LC_ALL", "LC_CTYPE",
];

/// The variables of this process that must not be found inside.
fn secrets() -> Vec<(String, String)> {
    let found: Vec<_> = std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(key, value)| !COMMON.contains(&key.as_str()) && value.len() >= 8)
        .collect();
    assert!(
        !found.is_empty(),
        "start the tests with a secret in the environment, such as FAKE_API_KEY=sk-test-000"
    );
    found
}

async fn absent(guest: &Guest, script: &str) {
    let command = Command::script(script).env("SIXB_SEEN", "1");
    let seen = guest.command(command).await.stdout.text();
    assert!(
        seen.contains("SIXB_SEEN="),
        "the script shows an environment at all: {seen:?}"
    );
    for (key, value) in secrets() {
        assert!(
            !seen.contains(&format!("{key}={value}")),
            "{key} of the host is seen inside by: {script}"
        );
    }
}

pub(super) async fn case_19_host_secrets_are_absent(suite: &Suite) {
    let guest = suite.guest().await;
    absent(&guest, "env; export -p; set").await;
    guest.done().await;
}

pub(super) async fn case_20_host_secrets_are_absent_from_proc(suite: &Suite) {
    let guest = suite.guest().await;
    absent(
        &guest,
        "cat /proc/$PPID/environ /proc/1/environ /proc/[0-9]*/environ | tr '\\0' '\\n'",
    )
    .await;
    absent(
        &guest,
        "echo SIXB_SEEN=; cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'",
    )
    .await;
    guest.done().await;
}

pub(super) async fn working_directories(suite: &Suite) {
    let guest = suite.guest().await;
    let root = guest.working_directory().to_owned();
    guest.out("mkdir -p 'cwd/a b'; ln -s cwd cwd-link").await;
    for (cwd, expect) in [
        (None, root.clone()),
        (Some("."), root.clone()),
        (Some("cwd"), format!("{root}/cwd")),
        (Some("./cwd/a b"), format!("{root}/cwd/a b")),
        (Some("cwd/../cwd"), format!("{root}/cwd")),
        (Some("cwd-link"), format!("{root}/cwd")),
        (Some(root.as_str()), root.clone()),
        (Some("/tmp"), "/tmp".into()),
        (Some("/"), "/".into()),
    ] {
        for mut command in [Command::script("pwd -P"), Command::argv(["pwd", "-P"])] {
            command.cwd = cwd.map(str::to_owned);
            assert_eq!(
                guest.out_of(command).await.trim_end_matches('\n'),
                expect,
                "{cwd:?}"
            );
        }
    }
    guest.done().await;
}

pub(super) async fn a_missing_working_directory_is_not_found(suite: &Suite) {
    let guest = suite.guest().await;
    guest.write("cwd-file", "").await;
    for cwd in ["no-such-dir", "/no/such/dir", "no/../no"] {
        let error = guest.run(Command::script("touch cwd-ran").cwd(cwd)).await;
        if let Err(error) = &error {
            let name = cwd.rsplit('/').next().unwrap_or(cwd);
            assert!(
                error.to_string().contains(name),
                "the message names {cwd}: {error}"
            );
        }
        fails_with(&format!("cwd {cwd:?}"), error, &["NotFound"]);
    }
    fails_with(
        "a file as cwd",
        guest.run(Command::argv(["true"]).cwd("cwd-file")).await,
        &["NotFound", "WrongKind"],
    );
    assert!(
        guest.stat(&path("cwd-ran").into()).await.is_err(),
        "nothing ran"
    );
    guest.done().await;
}
