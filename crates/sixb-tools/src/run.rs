//! Which run a tool call belongs to, and the lines its tools logged.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use tracing::Level;

/// What kind of run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunKind {
    /// A thread with history.
    Conversation,
    /// A headless task: structured input, structured output.
    WorkflowTask,
    /// One run of the command line.
    Cli,
}

/// Lines that a run keeps; older ones make room.
const MAX_LINES: usize = 1_000;
/// Longest kept line, in bytes.
const MAX_LINE: usize = 4 << 10;

/// The run that a tool call belongs to. Shared by all its calls.
#[derive(Debug)]
#[non_exhaustive]
pub struct RunInfo {
    /// The run.
    pub run_id: String,
    /// The agent that runs.
    pub agent_id: String,
    /// The conversation, if there is one.
    pub thread_id: Option<String>,
    /// What kind of run.
    pub kind: RunKind,
    log: Mutex<VecDeque<LogLine>>,
}

/// A line logged by a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LogLine {
    /// When.
    pub at: SystemTime,
    /// How important.
    pub level: Level,
    /// By which call.
    pub tool_call_id: String,
    /// What; at most 4 KiB.
    pub text: String,
}

impl RunInfo {
    /// A run without a thread.
    pub fn new(run_id: impl Into<String>, agent_id: impl Into<String>, kind: RunKind) -> Self {
        Self {
            run_id: run_id.into(),
            agent_id: agent_id.into(),
            thread_id: None,
            kind,
            log: Mutex::default(),
        }
    }

    /// Sets the conversation.
    pub fn thread(mut self, thread_id: impl Into<String>) -> Self {
        self.thread_id = Some(thread_id.into());
        self
    }

    /// The last 1 000 lines that tools of this run logged, oldest first.
    pub fn log_lines(&self) -> Vec<LogLine> {
        self.lines().iter().cloned().collect()
    }

    pub(crate) fn keep(&self, level: Level, tool_call_id: &str, text: &str) {
        let mut lines = self.lines();
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(LogLine {
            at: SystemTime::now(),
            level,
            tool_call_id: tool_call_id.to_owned(),
            text: text[..text.floor_char_boundary(MAX_LINE)].to_owned(),
        });
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, VecDeque<LogLine>> {
        // A panic in another call cannot leave a half-written line: the list stays usable.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_and_keeps_the_end() {
        let run = RunInfo::new("r", "a", RunKind::Cli);
        for n in 0..1_500 {
            run.keep(Level::INFO, "c", &n.to_string());
        }
        run.keep(Level::INFO, "c", &"é".repeat(4_000));
        let lines = run.log_lines();
        assert_eq!(lines.len(), 1_000);
        assert_eq!(lines[0].text, "501");
        assert!(lines[999].text.len() <= 4096);
    }
}
