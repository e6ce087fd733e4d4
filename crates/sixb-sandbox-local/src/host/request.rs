//! From a command to the request that the supervisor gets: argv, environment, working directory. Pure.

use std::{collections::BTreeMap, time::Duration};

use sixb_sandbox::{Command, CreateOptions, Program, Result, SandboxError, SandboxPath};

use super::sandbox::Inner;
use crate::{plan, protocol::RunRequest};

/// Linux takes no longer argument (MAX_ARG_STRLEN, with its NUL).
const MAX_ARGUMENT: usize = 128 * 1024 - 1;

/// Refuses options with which no command could run, before a sandbox is made.
pub(super) fn check(options: &CreateOptions) -> Result<()> {
    environment(&options.env, &BTreeMap::new())?;
    match options.default_timeout {
        Some(Duration::ZERO) => Err(SandboxError::InvalidInput {
            field: "default_timeout",
            value: "0".into(),
            reason: "would end every command at once: give a positive time, or none".into(),
        }),
        _ => Ok(()),
    }
}

/// The request for `command` in this sandbox.
pub(super) fn request(
    inner: &Inner,
    command: &mut Command,
    deadline: Option<Duration>,
    tell_started: bool,
) -> Result<RunRequest> {
    let program = std::mem::replace(&mut command.program, Program::Argv(Vec::new()));
    Ok(RunRequest {
        argv: argv(program)?,
        env: environment(&inner.env.0, &command.env)?,
        cwd: guest_cwd(command.cwd.as_deref(), &inner.working_directory)?,
        deadline_ms: deadline
            .map(|deadline| u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX)),
        tell_started,
    })
}

fn argv(program: Program) -> Result<Vec<String>> {
    let argv = match program {
        Program::Argv(argv) => argv,
        Program::Script(script) => vec!["bash".into(), "-lc".into(), script],
        _ => Vec::new(),
    };
    let invalid = |reason: &str| SandboxError::InvalidInput {
        field: "command",
        value: argv.first().cloned().unwrap_or_default(),
        reason: reason.into(),
    };
    if argv.first().is_none_or(|program| program.is_empty()) {
        return Err(invalid("names no program"));
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err(invalid("holds a NUL byte, which no argument can"));
    }
    if let Some(long) = argv.iter().find(|argument| argument.len() > MAX_ARGUMENT) {
        return Err(SandboxError::LimitExceeded {
            what: "one argument or script of a command (bytes; write a file and run that, or use stdin)".into(),
            limit: MAX_ARGUMENT as u64,
            actual: Some(long.len() as u64),
        });
    }
    Ok(argv)
}

/// The base, then the sandbox's, then the command's: later ones win. Nothing comes from the host's environment.
fn environment(
    sandbox: &BTreeMap<String, String>,
    command: &BTreeMap<String, String>,
) -> Result<Vec<String>> {
    let base = [
        ("HOME", plan::HOME),
        ("LANG", "C.UTF-8"),
        ("LOGNAME", plan::USER),
        ("PATH", plan::PATH),
        ("SHELL", "/bin/bash"),
        ("TERM", "dumb"),
        ("USER", plan::USER),
    ];
    let mut all: BTreeMap<&str, &str> = base.into();
    all.extend(
        sandbox
            .iter()
            .chain(command)
            .map(|(key, value)| (key.as_str(), value.as_str())),
    );
    all.into_iter()
        .map(|(key, value)| {
            if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
                return Err(SandboxError::InvalidInput {
                    field: "env",
                    // The value may be a secret.
                    value: key.into(),
                    reason: "is no environment variable: the name may not be empty or hold `=`, and neither part a NUL".into(),
                });
            }
            Ok(format!("{key}={value}"))
        })
        .collect()
}

fn guest_cwd(cwd: Option<&str>, working_directory: &str) -> Result<String> {
    match cwd {
        None | Some("") => Ok(working_directory.to_owned()),
        Some(absolute) if absolute.starts_with('/') => Ok(absolute.to_owned()),
        Some(relative) => {
            let path = SandboxPath::parse(relative)?;
            Ok(if path.is_root() {
                working_directory.to_owned()
            } else {
                format!("{working_directory}/{path}")
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_directories() {
        for (cwd, expect) in [
            (None, Some("/workspace")),
            (Some("."), Some("/workspace")),
            (Some("a/../b"), Some("/workspace/b")),
            (Some("/tmp"), Some("/tmp")),
            (Some("../x"), None),
        ] {
            assert_eq!(
                guest_cwd(cwd, "/workspace").ok().as_deref(),
                expect,
                "{cwd:?}"
            );
        }
    }

    #[test]
    fn the_commands_environment_wins_and_secrets_stay_out_of_errors() {
        let map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        let env = environment(
            &map(&[("A", "1"), ("B", "1")]),
            &map(&[("B", "2"), ("PATH", "/x")]),
        )
        .expect("env");
        for expect in ["A=1", "B=2", "PATH=/x", "HOME=/home/agent"] {
            assert!(env.contains(&expect.to_owned()), "{expect} in {env:?}");
        }
        let error = environment(&map(&[("A=", "sk-secret")]), &map(&[]))
            .expect_err("bad name")
            .to_string();
        assert!(
            error.contains("\"A=\"") && !error.contains("sk-secret"),
            "{error}"
        );
    }

    #[test]
    fn arguments_are_bounded() {
        assert!(argv(Program::Argv(vec![])).is_err());
        assert!(argv(Program::Argv(vec!["a\0".into()])).is_err());
        assert!(argv(Program::Script("x".repeat(MAX_ARGUMENT))).is_ok());
        assert!(argv(Program::Script("x".repeat(MAX_ARGUMENT + 1))).is_err());
    }
}
