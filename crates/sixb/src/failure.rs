//! How a command ends, and how its error reaches a person.

use std::{fmt, process::ExitCode};

use crate::terminal;

/// What the process tells its caller. The numbers are in `sixb --help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl Exit {
    pub(crate) const OK: Self = Self(0);
    pub(crate) const FAILED: Self = Self(1);
    pub(crate) const USAGE: Self = Self(2);
    pub(crate) const TIMED_OUT: Self = Self(124);
    pub(crate) const CANCELLED: Self = Self(130);
    /// As a shell says it when a reader went away (SIGPIPE).
    pub(crate) const READER_GONE: Self = Self(141);
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.0.into()
    }
}

/// An error of the command line or of `sixb.toml`: nothing was started.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error that ends with exit code 2. The text names the flag or key, the value and the remedy.
pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(text.into()))
}

/// Tells the error and picks the exit code.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    if is_closed_pipe(error) {
        return Exit::READER_GONE;
    }
    terminal::error(&told(error));
    if error.is::<Usage>() {
        Exit::USAGE
    } else {
        Exit::FAILED
    }
}

/// The error and its causes on one line. A cause that its error quotes already is not told again.
fn told(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |text, cause| {
        let cause = cause.to_string();
        match text.is_empty() {
            true => cause,
            false if text.contains(&cause) => text,
            false => format!("{text}: {cause}"),
        }
    })
}

/// `sixb … | head` ends without a complaint.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
