//! The moving part of the progress: a status line, and one line per running call.

use std::{
    collections::HashMap,
    io::{self, Write},
    time::Duration,
};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal;

/// Fast enough to look alive, slow enough for a connection far away.
const TICK: Duration = Duration::from_millis(120);

pub(super) struct Live {
    lines: MultiProgress,
    status: ProgressBar,
    calls: HashMap<String, ProgressBar>,
}

impl Live {
    pub(super) fn new() -> Self {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(12));
        let status =
            lines.add(ProgressBar::new_spinner().with_style(style("{spinner} {wide_msg}")));
        status.enable_steady_tick(TICK);
        Self {
            lines,
            status,
            calls: HashMap::new(),
        }
    }

    /// A line that stays, above the moving ones.
    pub(super) fn say(&self, text: &str) {
        // A terminal that is gone is no reason to stop the run.
        let _ = self.lines.println(text);
    }

    /// Text of the model, to stdout, above the moving lines. Nothing of it may move the cursor: it can hold what a command
    /// printed.
    pub(super) fn answer(&self, text: &str) {
        let harmless = |c: &char| !c.is_control() || *c == '\t';
        self.lines.suspend(|| {
            for line in text.lines() {
                // A reader that is gone is found out at the end.
                let line: String = line.chars().filter(harmless).collect();
                let _ = writeln!(io::stdout().lock(), "{line}");
            }
        });
    }

    pub(super) fn status(&mut self, text: String) {
        self.status.set_message(text);
    }

    pub(super) fn begin(&mut self, call: &str, text: String) {
        let line = ProgressBar::new_spinner()
            .with_style(style("  {spinner} {elapsed} {prefix} {wide_msg}"))
            .with_prefix(text);
        let line = self.lines.insert_before(&self.status, line);
        line.enable_steady_tick(TICK);
        self.calls.insert(call.to_owned(), line);
    }

    /// The last line of output of a running call.
    pub(super) fn tail(&mut self, call: &str, text: &str) {
        if let Some(line) = self.calls.get(call) {
            line.set_message(format!("│ {text}"));
        }
    }

    pub(super) fn end(&mut self, call: &str) {
        if let Some(line) = self.calls.remove(call) {
            line.finish_and_clear();
        }
    }

    /// Takes the moving lines away.
    pub(super) fn close(self) {
        for line in self.calls.values() {
            line.finish_and_clear();
        }
        self.status.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let coloured = if terminal::is_coloured() {
        template.replace("{spinner}", "{spinner:.cyan}")
    } else {
        template.to_owned()
    };
    ProgressStyle::with_template(&coloured).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
