//! `bash` in a real sandbox: the cases that broke other agents' shells.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sixb_tools::{CancellationToken, ToolContext, ToolErrorKind, ToolRegistry, sandbox_tools};

use crate::tools_lab::{Lab, unless_hung};

mod output;

fn text<'a>(result: &'a Value, key: &str) -> &'a str {
    result[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {result}"))
}

#[tokio::test]
async fn case_01_a_background_child_does_not_hold_the_call() {
    let lab = Lab::new();
    let result = lab.sh("sleep 1000 & echo done").await;
    assert_eq!(
        (&result["exitCode"], text(&result, "stdout")),
        (&json!(0), "done\n")
    );
    lab.end().await;
}

#[tokio::test]
async fn case_03_a_holder_that_keeps_writing_does_not_hold_the_call() {
    let lab = Lab::new();
    let result = lab
        .sh("(while :; do echo tick; sleep 0.1; done) & echo fg")
        .await;
    assert_eq!(result["exitCode"], 0, "{result}");
    assert!(text(&result, "stdout").contains("fg\n"), "{result}");
    lab.end().await;
}

#[tokio::test]
async fn case_04_a_command_without_output_is_a_result() {
    let lab = Lab::new();
    let mut result = lab.sh("false").await;
    result["durationMs"] = 0.into();
    let expect = json!({
        "exitCode": 1, "stdout": "", "stderr": "", "durationMs": 0, "stdoutTruncated": false, "stderrTruncated": false,
        "stdoutBytes": 0, "stderrBytes": 0,
    });
    assert_eq!(result, expect);
    lab.end().await;
}

#[tokio::test]
async fn case_05_there_is_no_terminal_to_ask() {
    let lab = Lab::new();
    let result = lab.sh("read -r x </dev/tty; echo rc=$?").await;
    let rc = text(&result, "stdout")
        .trim()
        .strip_prefix("rc=")
        .and_then(|rc| rc.parse::<i32>().ok());
    assert!(rc.is_some_and(|rc| rc != 0), "{result}");
    let env = lab
        .sh("echo $GIT_TERMINAL_PROMPT $TERM $PAGER $EDITOR; tty")
        .await;
    assert!(
        text(&env, "stdout").starts_with("0 dumb cat false\n"),
        "{env}"
    );
    lab.end().await;
}

#[tokio::test]
async fn case_06_an_interactive_rebase_fails_and_changes_nothing() {
    let lab = Lab::new();
    let setup = lab
        .sh("git init -q . && git config user.email a@b && git config user.name a && \
             for n in 1 2; do echo $n >f && git add f && git commit -qm $n; done && git rev-parse HEAD")
        .await;
    assert_eq!(setup["exitCode"], 0, "{setup}");
    let rebase = lab.sh("git rebase -i HEAD~1").await;
    assert!(
        rebase["exitCode"].as_i64().is_some_and(|code| code != 0),
        "{rebase}"
    );
    let after = lab
        .sh("git rev-parse HEAD && git status --porcelain | wc -l")
        .await;
    assert_eq!(
        text(&after, "stdout"),
        format!("{}0\n", text(&setup, "stdout"))
    );
    lab.end().await;
}

#[tokio::test]
async fn case_07_stdin_is_at_its_end_or_what_was_given() {
    let lab = Lab::new();
    let empty = lab.sh("cat").await;
    assert_eq!(
        (&empty["exitCode"], text(&empty, "stdout")),
        (&json!(0), "")
    );
    let given = lab
        .ok("c", "bash", json!({"command": "cat", "stdin": "hi"}))
        .await;
    assert_eq!(text(&given, "stdout"), "hi");
    lab.end().await;
}

/// Makes a call with longer and longer deadlines until the machine was quick enough for its command to begin.
async fn late(call: impl AsyncFn(Duration) -> Value) {
    for seconds in [1, 5, 25] {
        let result = call(Duration::from_secs(seconds)).await;
        assert_eq!(
            (&result["timedOut"], &result["exitCode"]),
            (&json!(true), &Value::Null),
            "{result}"
        );
        if text(&result, "stdout") == "begun\n" {
            return;
        }
    }
    panic!("no output before a deadline");
}

#[tokio::test]
async fn a_deadline_and_a_signal_are_told_with_the_output_so_far() {
    let lab = Lab::new();
    late(async |deadline| {
        let ms = deadline.as_millis() as u64;
        let input = json!({"command": "echo begun; sleep 1000", "timeoutMs": ms});
        lab.ok("t", "bash", input).await
    })
    .await;
    let killed = lab.sh("echo begun; kill -9 $$").await;
    assert_eq!(
        (
            &killed["signal"],
            &killed["exitCode"],
            text(&killed, "stdout")
        ),
        (&json!(9), &Value::Null, "begun\n")
    );
    lab.end().await;
}

#[tokio::test]
async fn the_deadline_of_the_run_ends_a_command_with_its_output() {
    let lab = Lab::new();
    lab.sandbox().await;
    late(async |deadline| {
        let cx = lab.cx("c").deadline(Instant::now() + deadline).build();
        let input = json!({"command": "echo begun; sleep 1000", "timeoutMs": 120_000});
        let call = lab.tools.call("bash", cx, input);
        unless_hung(call).await.expect("a partial result").to_json()
    })
    .await;
    lab.end().await;
}

#[tokio::test]
async fn a_cancelled_command_returns_what_it_wrote() {
    let lab = Lab::new();
    let token = CancellationToken::new();
    let (sender, mut events) = tokio::sync::mpsc::channel(64);
    let cx = lab.cx("c").cancel(token.clone()).progress(sender).build();
    let input = json!({"command": "echo begun; sleep 1000", "timeoutMs": 120_000});
    let call = lab.tools.call("bash", cx, input);
    let cancel = async {
        let shown = events.recv().await;
        token.cancel();
        shown
    };
    let (result, shown) = unless_hung(futures::future::join(call, cancel)).await;
    let result = result.expect("a partial result").to_json();
    assert!(shown.is_some(), "{result}");
    assert_eq!(
        (&result["cancelled"], text(&result, "stdout")),
        (&json!(true), "begun\n")
    );
    lab.end().await;
}

#[tokio::test]
async fn a_background_command_returns_at_once_and_its_log_can_be_read() {
    let lab = Lab::new();
    let command = "echo up; while :; do sleep 0.1; done";
    let result = lab
        .ok(
            "bg",
            "bash",
            json!({"command": command, "background": true}),
        )
        .await;
    assert_eq!(result["background"], true);
    let path = result["log"]["stdout"].clone();
    let log = async {
        loop {
            if let Ok(log) = lab.call("r", "read", json!({"path": path})).await
                && log["content"] != ""
            {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert_eq!(text(&unless_hung(log).await, "content"), "up\n");
    let seen = lab.sh("pgrep -fc 'sleep 0.1' || ps").await;
    assert_eq!(seen["exitCode"], 0, "{seen}");
    lab.end().await;
}

#[tokio::test]
async fn what_did_not_run_is_an_error_of_its_own_kind() {
    let lab = Lab::new();
    for (input, kind, part) in [
        (
            json!({"command": " "}),
            ToolErrorKind::InvalidInput,
            "blank",
        ),
        (
            json!({}),
            ToolErrorKind::InvalidInput,
            "\"command\" is missing",
        ),
        (
            json!({"command": "x", "cmd": 1}),
            ToolErrorKind::InvalidInput,
            "unknown property cmd",
        ),
        (
            json!({"command": "x", "timeoutMs": 120_001}),
            ToolErrorKind::InvalidInput,
            "maximum of 120000",
        ),
        (
            json!({"command": "x", "timeoutMs": "5"}),
            ToolErrorKind::InvalidInput,
            "/timeoutMs",
        ),
        (
            json!({"command": "x", "timeoutMs": 5000.0}),
            ToolErrorKind::InvalidInput,
            "at `/timeoutMs`: 5000.0 is not written as an integer",
        ),
        (
            json!({"command": "true", "cwd": "nowhere"}),
            ToolErrorKind::NotFound,
            "nowhere",
        ),
    ] {
        let error = lab
            .call("c", "bash", input.clone())
            .await
            .expect_err("an error");
        assert_eq!(error.kind(), kind, "{input}: {error:?}");
        assert!(error.model_text().contains(part), "{input}: {error}");
    }
    let missing = lab.sh("no-such-program").await;
    assert_eq!(
        missing["exitCode"], 127,
        "a failed command is a result: {missing}"
    );
    lab.lazy.destroy().await.expect("destroy");
    let gone = lab
        .call("c", "bash", json!({"command": "true"}))
        .await
        .expect_err("gone");
    assert_eq!(gone.kind(), ToolErrorKind::Provider, "{gone:?}");
    let tools = ToolRegistry::builder()
        .tools(sandbox_tools())
        .build()
        .expect("registry");
    let none = tools
        .call(
            "bash",
            ToolContext::builder("c").build(),
            json!({"command": "true"}),
        )
        .await
        .expect_err("none");
    assert!(
        none.model_text()
            .contains("there is no sandbox in this run"),
        "{none}"
    );
}
