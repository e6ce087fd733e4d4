//! What people see: everything here goes to stderr, coloured only on a terminal.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};

/// Whether stderr is a terminal that shows progress.
pub(crate) fn is_live() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether messages are coloured.
pub(crate) fn is_coloured() -> bool {
    is_live() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Colours `text` where messages are coloured.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    if is_coloured() {
        format!("{style}{text}{style:#}")
    } else {
        text.to_string()
    }
}

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// A line for people. A closed stderr is no reason to stop the work.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// An error.
pub(crate) fn error(text: &str) {
    say(&format!("{} {text}", paint(RED, "error:")));
}

/// Something to know that is no error.
pub(crate) fn note(text: &str) {
    say(&format!("{} {text}", paint(YELLOW, "note:")));
}

/// Takes away what could move the cursor or colour the screen: the text comes from inside a sandbox.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
