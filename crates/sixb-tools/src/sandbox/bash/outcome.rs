//! How a command ended, as a model reads it.

use serde::Serialize;
use sixb_sandbox::{BackgroundId, CapturedStream, CommandOutput, OutputId, OutputStream};

use super::view::{View, view};
use crate::sandbox::spool_path;

/// The result of `bash`. Every key that is always there says so even when it is empty: no output is a result too.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome {
    exit_code: Option<i32>,
    stdout: String,
    stderr: String,
    duration_ms: u64,
    #[serde(skip_serializing_if = "is_false")]
    timed_out: bool,
    #[serde(skip_serializing_if = "is_false")]
    cancelled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// Why there is no exit code, when no signal explains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    oom_killed: bool,
    stdout_truncated: bool,
    stderr_truncated: bool,
    stdout_bytes: u64,
    stderr_bytes: u64,
    #[serde(skip_serializing_if = "StreamPaths::is_empty")]
    full_output: StreamPaths,
}

/// Where streams can be read.
#[derive(Debug, Default, Serialize)]
struct StreamPaths {
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
}

impl StreamPaths {
    fn is_empty(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Outcome {
    /// Reads a command's end; `id` names its spooled output.
    pub(super) fn new(output: CommandOutput, id: &OutputId) -> Self {
        let (stdout, stderr) = (view(&output.stdout), view(&output.stderr));
        let path = |view: &View, stream: &CapturedStream, which| {
            (view.truncated && stream.spooled_bytes > 0).then(|| spool_path(id, which))
        };
        let explained = output.exit_code.is_some() || output.signal.is_some();
        let unknown = (!explained && !output.timed_out && !output.cancelled)
            .then(|| "the exit code is not known".to_owned());
        Self {
            exit_code: output.exit_code,
            duration_ms: output.duration_ms(),
            timed_out: output.timed_out,
            cancelled: output.cancelled,
            signal: output.signal,
            oom_killed: output.oom_killed == Some(true),
            stdout_truncated: stdout.truncated,
            stderr_truncated: stderr.truncated,
            stdout_bytes: output.stdout.total_bytes,
            stderr_bytes: output.stderr.total_bytes,
            full_output: StreamPaths {
                stdout: path(&stdout, &output.stdout, OutputStream::Stdout),
                stderr: path(&stderr, &output.stderr, OutputStream::Stderr),
            },
            reason: output.reason.or(unknown),
            stdout: stdout.text,
            stderr: stderr.text,
        }
    }
}

/// The result of `bash` with `background`.
#[derive(Debug, Serialize)]
pub(super) struct Started {
    background: bool,
    id: String,
    log: StreamPaths,
    note: &'static str,
}

impl Started {
    pub(super) fn new(id: &BackgroundId) -> Self {
        Self {
            background: true,
            id: id.to_string(),
            log: StreamPaths {
                stdout: Some(spool_path(&id.0, OutputStream::Stdout)),
                stderr: Some(spool_path(&id.0, OutputStream::Stderr)),
            },
            note: "running; `read` the log paths to see its output, which appear once it has written something",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;

    fn outcome(change: impl FnOnce(&mut CommandOutput)) -> Value {
        let empty = CapturedStream::default();
        let mut output = CommandOutput::new(None, empty.clone(), empty, Duration::from_millis(7));
        change(&mut output);
        serde_json::to_value(Outcome::new(output, &OutputId::for_call("c1"))).expect("json")
    }

    #[test]
    fn case_04_no_output_is_said_explicitly() {
        let expect = json!({
            "exitCode": 1, "stdout": "", "stderr": "", "durationMs": 7, "stdoutTruncated": false, "stderrTruncated": false,
            "stdoutBytes": 0, "stderrBytes": 0,
        });
        assert_eq!(outcome(|output| output.exit_code = Some(1)), expect);
    }

    #[test]
    fn case_16_an_unknown_exit_code_is_null_with_a_reason() {
        let lost = outcome(|output| {
            output.reason =
                Some("the connection to the sandbox was lost before the command ended".into());
            output.stdout = CapturedStream::whole("partial");
        });
        assert_eq!(lost["exitCode"], Value::Null);
        assert_eq!(lost["stdout"], "partial");
        assert!(
            lost["reason"]
                .as_str()
                .is_some_and(|reason| reason.contains("lost"))
        );
        assert_eq!(outcome(|_| {})["reason"], "the exit code is not known");
        let killed = outcome(|output| output.signal = Some(9));
        assert_eq!(
            (&killed["exitCode"], &killed["signal"], killed.get("reason")),
            (&Value::Null, &json!(9), None)
        );
    }

    #[test]
    fn case_13_only_a_truncated_stream_names_its_file() {
        let long = |output: &mut CommandOutput| {
            output.exit_code = Some(0);
            output.stdout = CapturedStream::whole("line\n".repeat(10_000));
            output.stdout.spooled_bytes = 50_000;
            output.stderr = CapturedStream::whole("x".repeat(17_000));
            output.stderr.spooled_bytes = 17_000;
        };
        let result = outcome(long);
        assert_eq!(
            result["fullOutput"],
            json!({"stdout": ".sixb/agent/spool/c1/stdout"})
        );
        assert_eq!(
            (&result["stdoutTruncated"], &result["stderrTruncated"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(result["stdoutBytes"], 50_000);
    }
}
