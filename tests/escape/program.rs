//! Attack programs: small files in `attacks/`, run in a fresh sandbox, answering with one line.

use std::time::Duration;

use sixb_sandbox::{Command, CreateOptions, NetworkPolicy};

use crate::arena::{Arena, run, unwell};

const ATTACK_PY: &str = include_str!("attacks/attack.py");
const ATTACK_H: &str = include_str!("attacks/attack.h");

/// One program and its arguments.
pub(crate) struct Program {
    /// Its name tells the language: `.c`, `.py` or `.sh`.
    pub(crate) file: &'static str,
    pub(crate) source: &'static str,
    /// Words, split at spaces.
    pub(crate) args: &'static str,
    /// In a sandbox that shares the host's network.
    pub(crate) host_network: bool,
}

impl Program {
    /// Argv and standard input, so that no file of ours lies in the working directory.
    pub(crate) fn command(&self) -> (Vec<String>, String) {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (mut argv, stdin): (Vec<String>, String) = match self.file.rsplit('.').next() {
            Some("c") => {
                let build = "gcc -O1 -x c -o /tmp/attack - && exec /tmp/attack \"$@\"";
                (
                    own(&["/bin/bash", "-c", build, "attack"]),
                    c_source(self.source),
                )
            }
            Some("py") => {
                let source = format!("{ATTACK_PY}\n{}", self.source);
                (
                    own(&["/usr/bin/python3", "-I", "-c", &source]),
                    String::new(),
                )
            }
            _ => (
                own(&["/bin/bash", "-c", self.source, "attack"]),
                String::new(),
            ),
        };
        argv.extend(self.args.split_whitespace().map(str::to_owned));
        (argv, stdin)
    }
}

/// A C program with the shared header in its place: there is no second file inside.
pub(crate) fn c_source(source: &str) -> String {
    source.replace("#include \"attack.h\"", ATTACK_H)
}

/// Runs it in a fresh sandbox.
pub(crate) async fn attack(arena: &Arena, program: &Program) -> String {
    let network = if program.host_network {
        NetworkPolicy::All
    } else {
        NetworkPolicy::None
    };
    let sandbox = arena
        .sandbox(CreateOptions::default().network(network))
        .await;
    let (argv, stdin) = program.command();
    let mut command = Command::argv(argv).timeout(Duration::from_secs(30));
    if !stdin.is_empty() {
        command = command.stdin_bytes(stdin);
    }
    for (key, value) in arena.bait.told() {
        command = command.env(key, value);
    }
    let output = run(&sandbox, command).await;
    let seen = match (output.signal, output.stdout.text().lines().last()) {
        (Some(31), _) => "SIGSYS".to_owned(),
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(line)) => line.to_owned(),
        (None, None) => match output.reason {
            Some(reason) => reason,
            None => format!("no verdict: {}", output.stderr.text()),
        },
    };
    let unwell = unwell(&sandbox).await;
    sandbox.destroy().await.expect("destroyed");
    match unwell {
        Some(unwell) => format!("{seen}, and {unwell}"),
        None => seen,
    }
}
