//! A run as people follow it, on stderr: moving lines on a terminal, plain ones in a file or a pipe.

mod live;

use std::{collections::HashMap, path::Path, time::Duration};

use serde_json::Value;
use sixb_agent::{CallStatus, Outcome, RunEvent, RunState, RunStatus, SavedFile, Severity};

use self::live::Live;
use crate::terminal::{self, BOLD, DIM, GREEN, RED, YELLOW, paint, plain};

/// Longest text of one line that comes from a call's input or output, in characters.
const MAX_TEXT: usize = 100;

/// Shows the events of one run.
pub(crate) struct Progress {
    live: Option<Live>,
    /// What the model wrote in this step and is not shown yet: without `streams` all of it, until it is known not to be
    /// the answer; with it the line that is not complete.
    text: String,
    /// The model's text goes to stdout as it is written.
    streams: bool,
    /// Names of running calls.
    calls: HashMap<String, String>,
    finished: u32,
    /// Why there is no sandbox. Told once, at the end, however many calls it fails.
    no_sandbox: Option<String>,
}

impl Progress {
    /// With `streams`, for a terminal, the model's text is shown line by line on stdout while it is written.
    pub(crate) fn new(streams: bool) -> Self {
        Self {
            streams,
            live: terminal::is_live().then(Live::new),
            text: String::new(),
            calls: HashMap::new(),
            finished: 0,
            no_sandbox: None,
        }
    }

    fn say(&self, text: &str) {
        match &self.live {
            Some(live) => live.say(text),
            None => terminal::say(text),
        }
    }

    /// Shows one event.
    pub(crate) fn show(&mut self, event: &RunEvent) {
        match event {
            RunEvent::State { state } => self.state(state),
            RunEvent::TextDelta { text, .. } => self.said(text),
            RunEvent::ToolCallStarted {
                call_id,
                name,
                arguments,
                ..
            } => {
                self.flush_text();
                let line = format!("{} {}", paint(BOLD, plain(name)), clip(&shown(arguments)));
                self.calls.insert(call_id.clone(), line.clone());
                match &mut self.live {
                    Some(live) => live.begin(call_id, shorter(&line)),
                    None => terminal::say(&format!("  {line}")),
                }
            }
            RunEvent::ToolCallOutput { call_id, text, .. }
            | RunEvent::ToolCallNote { call_id, text } => {
                // Piped progress stays short: the result has the output.
                if let Some(live) = &mut self.live
                    && let Some(last) = text.lines().rev().find(|line| !line.trim().is_empty())
                {
                    live.tail(call_id, &clip(&plain(last)));
                }
            }
            RunEvent::ToolCallFinished {
                call_id,
                name,
                status,
                elapsed_ms,
                result,
                error,
                ..
            } => {
                self.finished += 1;
                let line = self.calls.remove(call_id).unwrap_or_else(|| plain(name));
                let (mark, end) = match (status, error) {
                    (CallStatus::Ok, _) => match result.as_ref().and_then(how_it_ended) {
                        None => (paint(GREEN, "ok"), String::new()),
                        Some((mark, more)) => (paint(YELLOW, mark), more),
                    },
                    (CallStatus::Cancelled, _) => (paint(YELLOW, "cut"), String::new()),
                    (_, Some(_)) if self.no_sandbox.is_some() => {
                        (paint(RED, "error"), String::new())
                    }
                    (_, Some(error)) => (
                        paint(RED, "error"),
                        format!(", {}: {}", error.kind, clip(&plain(&error.message))),
                    ),
                    (_, None) => (paint(RED, "error"), String::new()),
                };
                let elapsed = paint(
                    DIM,
                    format!("{}{end}", seconds(Duration::from_millis(*elapsed_ms))),
                );
                if let Some(live) = &mut self.live {
                    live.end(call_id);
                    live.say(&format!("  {mark} {line} {elapsed}"));
                } else {
                    // The whole line stands above, where the call began.
                    terminal::say(&format!("  {mark} {} {elapsed}", shorter(&line)));
                }
            }
            RunEvent::FileSaved { file } => self.say(&saved(file)),
            RunEvent::Diagnostic { diagnostic } if diagnostic.code == "sandbox_boot_failed" => {}
            RunEvent::Diagnostic { diagnostic } => {
                let label = match diagnostic.severity {
                    Severity::Error => paint(RED, "error:"),
                    Severity::Warning => paint(YELLOW, "warning:"),
                    _ => paint(DIM, "note:"),
                };
                let path = diagnostic
                    .path
                    .as_deref()
                    .map(|path| format!("{}: ", plain(path)))
                    .unwrap_or_default();
                self.say(&format!("{label} {path}{}", plain(&diagnostic.message)));
            }
            RunEvent::Finished { outcome } => self.end(outcome),
            _ => {}
        }
    }

    fn state(&mut self, state: &RunState) {
        match state {
            RunState::Started {
                run_id,
                agent_id,
                model,
                ..
            } => {
                self.say(&format!(
                    "{} {run_id}: agent {agent_id}, model {}",
                    paint(BOLD, "run"),
                    plain(&model.to_string())
                ));
            }
            RunState::Resumed {
                run_id,
                agent_id,
                model,
                steps,
                interrupted,
                ..
            } => {
                let cut = match interrupted {
                    0 => String::new(),
                    1 => ", 1 call had no result".to_owned(),
                    n => format!(", {n} calls had no result"),
                };
                self.say(&format!(
                    "{} {run_id}: agent {agent_id}, model {}, after step {steps}{cut}",
                    paint(BOLD, "resumed"),
                    plain(&model.to_string())
                ));
            }
            RunState::Booting { provider } => match &mut self.live {
                Some(live) => live.status(format!("booting a sandbox ({provider})")),
                None => terminal::say(&format!("booting a sandbox ({provider})")),
            },
            RunState::SandboxReady { elapsed_ms, .. } => {
                self.say(&paint(
                    DIM,
                    format!(
                        "sandbox ready after {}",
                        seconds(Duration::from_millis(*elapsed_ms))
                    ),
                ));
            }
            RunState::SandboxFailed { reason } => self.no_sandbox = Some(plain(reason)),
            RunState::Step { step, max } => {
                self.flush_text();
                match &mut self.live {
                    Some(live) => live.status(format!("step {step} of at most {max}")),
                    None => terminal::say(&format!("step {step} of at most {max}")),
                }
            }
            RunState::Collecting => {
                if let Some(live) = &mut self.live {
                    live.status("collecting files".into());
                }
            }
            _ => {}
        }
    }

    fn said(&mut self, text: &str) {
        self.text.push_str(text);
        let Some(live) = &mut self.live else { return };
        if self.streams
            && let Some(end) = self.text.rfind('\n')
        {
            let rest = self.text.split_off(end + 1);
            live.answer(&std::mem::replace(&mut self.text, rest));
        }
        // What is being written shows in the moving line.
        let line = self.text.lines().last().unwrap_or_default();
        let skip = line.chars().count().saturating_sub(MAX_TEXT);
        live.status(plain(&line.chars().skip(skip).collect::<String>()));
    }

    /// Text of a step that went on with tool calls is part of the progress; text of the last one is the answer.
    fn flush_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if let (true, Some(live)) = (self.streams, &self.live) {
            live.answer(&text);
            return;
        }
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            self.say(&paint(DIM, format!("  {}", plain(line))));
        }
    }

    fn end(&mut self, outcome: &Outcome) {
        if !outcome.completed() || self.streams {
            self.flush_text(); // What there is of the answer.
        }
        if let Some(live) = self.live.take() {
            live.close();
        }
        if let (RunStatus::Completed, Some(reason)) = (&outcome.status, &self.no_sandbox) {
            self.say(&format!(
                "{} no sandbox started: {reason}",
                paint(YELLOW, "warning:")
            ));
        }
        let count = |count: usize, what: &str| {
            format!("{count} {what}{}", if count == 1 { "" } else { "s" })
        };
        let totals = format!(
            "{}, {}, {} in {}",
            count(outcome.steps as usize, "step"),
            count(self.finished as usize, "tool call"),
            count(outcome.files.len(), "file"),
            seconds(outcome.elapsed),
        );
        let tokens = match (outcome.usage.input_tokens, outcome.usage.output_tokens) {
            (0, 0) => String::new(),
            (read, written) => format!(", {read} tokens read and {written} written"),
        };
        let how = match &outcome.status {
            RunStatus::Completed => paint(GREEN, "done"),
            status => paint(RED, status.as_str()),
        };
        self.say(&format!(
            "{how}: {totals}{tokens}, model {}",
            plain(&outcome.model.to_string())
        ));
        if let Some(transcript) = &outcome.transcript {
            self.say(&paint(DIM, format!("transcript: {}", near(transcript))));
        }
    }
}

fn saved(file: &SavedFile) -> String {
    let place = match &file.host_path {
        Some(path) => near(path),
        None => plain(&file.path),
    };
    format!(
        "{} {place} ({})",
        paint(GREEN, "saved"),
        bytes(file.size_bytes)
    )
}

/// How the command of a call ended, unless it ended well: a mark, and what to add. A result of another tool has none of
/// these fields.
fn how_it_ended(result: &Value) -> Option<(String, String)> {
    let is = |key: &str| result.get(key).and_then(Value::as_bool) == Some(true);
    let number = |key: &str| result.get(key).and_then(Value::as_i64);
    let mark = |mark: &str| Some((mark.to_owned(), String::new()));
    if is("timedOut") {
        return mark("timed out");
    }
    if is("cancelled") {
        return mark("cancelled");
    }
    match (result.get("exitCode")?, number("signal")) {
        (Value::Null, Some(signal)) if is("oomKilled") => Some((
            format!("killed by signal {signal}"),
            ", out of memory".into(),
        )),
        (Value::Null, Some(signal)) => mark(&format!("killed by signal {signal}")),
        (Value::Null, None) => mark("lost"),
        (code, _) if code.as_i64() == Some(0) => None,
        (code, _) => Some(("ok".into(), format!(", exit code {code}"))),
    }
}

/// A path as short as it can be written here.
fn near(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    plain(
        &path
            .strip_prefix(here)
            .unwrap_or(path)
            .display()
            .to_string(),
    )
}

/// A call's input in a few words: the one text it holds, or all of it.
fn shown(arguments: &Value) -> String {
    let text = |key: &str| arguments.get(key)?.as_str();
    match (text("command"), text("path"), arguments.get("offset")) {
        (Some(command), ..) => plain(command.trim()),
        (_, Some(path), Some(offset)) => plain(&format!("{path} from line {offset}")),
        (_, Some(path), None) => plain(path),
        _ => plain(&arguments.to_string()),
    }
}

fn clip(text: &str) -> String {
    clipped(text, MAX_TEXT)
}

/// Leaves room on the line, for what the call says or how it ended.
fn shorter(text: &str) -> String {
    clipped(text, MAX_TEXT / 2)
}

fn clipped(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A time for people: `12 ms`, `3.4 s`, `2 m 5 s`.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        millis @ 1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        millis => format!("{} m {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

/// A size for people: `17 B`, `3.1 KiB`.
fn bytes(size: u64) -> String {
    let (unit, shift) = match size {
        0..1_024 => return format!("{size} B"),
        1_024..1_048_576 => ("KiB", 10),
        _ => ("MiB", 20),
    };
    format!(
        "{}.{} {unit}",
        size >> shift,
        ((size & ((1 << shift) - 1)) * 10) >> shift
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_for_people() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_250, "1.2 s"),
            (125_000, "2 m 5 s"),
        ] {
            assert_eq!(seconds(Duration::from_millis(millis)), text);
        }
        for (size, text) in [(17, "17 B"), (1_536, "1.5 KiB"), (3 << 20, "3.0 MiB")] {
            assert_eq!(bytes(size), text);
        }
    }

    #[test]
    fn a_command_that_did_not_end_by_itself_is_not_ok() {
        for (result, mark) in [
            (json!({"exitCode": 0}), None),
            (json!({"content": "text"}), None),
            (json!("text"), None),
            (json!({"exitCode": 3}), Some(("ok", ", exit code 3"))),
            (
                json!({"exitCode": null, "signal": 9, "timedOut": true}),
                Some(("timed out", "")),
            ),
            (
                json!({"exitCode": null, "signal": 9, "cancelled": true}),
                Some(("cancelled", "")),
            ),
            (
                json!({"exitCode": null, "signal": 15}),
                Some(("killed by signal 15", "")),
            ),
            (
                json!({"exitCode": null, "signal": 9, "oomKilled": true}),
                Some(("killed by signal 9", ", out of memory")),
            ),
            (json!({"exitCode": null}), Some(("lost", ""))),
        ] {
            let expect = mark.map(|(mark, more)| (mark.to_owned(), more.to_owned()));
            assert_eq!(how_it_ended(&result), expect, "{result}");
        }
    }

    #[test]
    fn what_a_call_is_about_fits_on_a_line_and_moves_no_cursor() {
        for (arguments, text) in [
            (json!({"command": "ls\n\x1b[2Jrm"}), "ls  [2Jrm"),
            (json!({"path": "a.csv", "offset": 2}), "a.csv from line 2"),
            (json!({"path": "a.csv"}), "a.csv"),
            (json!({"numbers": "1 2"}), r#"{"numbers":"1 2"}"#),
        ] {
            assert_eq!(shown(&arguments), text);
        }
        assert_eq!(clip(&"é".repeat(200)).chars().count(), MAX_TEXT + 1);
    }
}
