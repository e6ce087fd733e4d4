//! `bash` in a real sandbox: the cases that broke other agents' shells.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sixb_tools::{
    CancellationToken, ToolContext, ToolErrorKind, ToolProgress, ToolRegistry, sandbox_tools,
};

use crate::tools_lab::Lab;

fn text<'a>(result: &'a Value, key: &str) -> &'a str {
    result[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {result}"))
}

#[tokio::test]
async fn case_01_a_background_child_does_not_hold_the_call() {
    let lab = Lab::new();
    lab.sandbox().await;
    let start = Instant::now();
    let result = lab.sh("sleep 30 & echo done").await;
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(
        (&result["exitCode"], text(&result, "stdout")),
        (&json!(0), "done\n")
    );
    lab.end().await;
}

#[tokio::test]
async fn case_03_a_holder_that_keeps_writing_does_not_hold_the_call() {
    let lab = Lab::new();
    lab.sandbox().await;
    let start = Instant::now();
    let result = lab
        .sh("(while :; do echo tick; sleep 0.1; done) & echo fg")
        .await;
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
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
    lab.sandbox().await;
    let start = Instant::now();
    let result = lab.sh("read -r x </dev/tty; echo rc=$?").await;
    assert!(start.elapsed() < Duration::from_secs(2));
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
    lab.sandbox().await;
    let start = Instant::now();
    let empty = lab.sh("cat").await;
    assert!(start.elapsed() < Duration::from_secs(1));
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

#[tokio::test]
async fn case_08_a_cut_in_a_character_does_not_panic() {
    let lab = Lab::new();
    let result = lab
        .sh("head -c 29999 /dev/zero | tr '\\0' a; printf é")
        .await;
    assert!(text(&result, "stdout").ends_with("aé"), "{result}");
    assert_eq!(
        (&result["stdoutTruncated"], &result["stdoutBytes"]),
        (&json!(true), &json!(30_001))
    );
    lab.end().await;
}

#[tokio::test]
async fn case_10_endless_output_is_bounded() {
    let lab = Lab::new();
    let zeros = lab.sh("head -c 200000000 /dev/zero").await;
    assert_eq!(
        (&zeros["exitCode"], &zeros["stdoutBytes"]),
        (&json!(0), &json!(200_000_000))
    );
    assert!(text(&zeros, "stdout").chars().count() <= 20_000);
    let note = "0 lines, 199980";
    assert!(
        text(&zeros, "stdout").contains(note)
            && text(&zeros, "stdout").contains("keeps only the first 67108864 bytes")
    );
    let yes = lab.sh("timeout 1 yes").await;
    assert!(
        text(&yes, "stdout").starts_with("y\ny\n")
            && yes["stdoutTruncated"] == true
            && yes["exitCode"] == 124
    );
    lab.end().await;
}

#[tokio::test]
async fn case_12_and_13_head_tail_and_the_middle_by_read() {
    let lab = Lab::new();
    let command = "seq 1 100000; echo FATAL_LAST >&2; exit 3";
    let result = lab.ok("b", "bash", json!({"command": command})).await;
    let stdout = text(&result, "stdout");
    assert!(
        stdout.starts_with("1\n2\n") && stdout.ends_with("99999\n100000\n"),
        "{result}"
    );
    assert_eq!(
        (text(&result, "stderr"), &result["exitCode"]),
        ("FATAL_LAST\n", &json!(3))
    );
    assert_eq!(
        result["fullOutput"],
        json!({"stdout": ".sixb/agent/spool/b/stdout"})
    );
    let shown = stdout
        .lines()
        .filter(|line| line.parse::<u32>().is_ok())
        .count();
    assert!(
        stdout.contains(&format!("[… {} lines, ", 100_000 - shown)),
        "{shown}"
    );

    let path = &result["fullOutput"]["stdout"];
    let middle = lab
        .ok(
            "r",
            "read",
            json!({"path": path, "offset": 50_000, "limit": 1}),
        )
        .await;
    assert_eq!(
        (text(&middle, "content"), &middle["startLine"]),
        ("50000\n", &json!(50_000))
    );
    assert_eq!(
        (&middle["truncated"], &middle["nextOffset"]),
        (&json!(true), &json!(50_001))
    );
    lab.end().await;
}

#[tokio::test]
async fn case_14_progress_and_colours_are_for_terminals() {
    let lab = Lab::new();
    let result = lab
        .sh(r"printf '\r1%%\r50%%\r100%%\n\033[31mred\033[0m\n'")
        .await;
    assert_eq!(text(&result, "stdout"), "100%\nred\n");
    assert_eq!(
        (&result["stdoutTruncated"], &result["stdoutBytes"]),
        (&json!(false), &json!(26))
    );
    lab.end().await;
}

#[tokio::test]
async fn json_stays_json() {
    let lab = Lab::new();
    let script =
        "import json; print(json.dumps([{'n': n, 'x': 1.50} for n in range(5000)], indent=4))";
    let result = lab
        .ok(
            "j",
            "bash",
            json!({"command": format!("python3 -c \"{script}\"")}),
        )
        .await;
    let list: Vec<Value> = serde_json::from_str(text(&result, "stdout")).expect("still JSON");
    assert_eq!(list[1]["n"], 1);
    assert_eq!(
        list.last(),
        Some(&json!(format!(
            "[… {} of 5000 elements left out]",
            5_001 - list.len()
        )))
    );
    lab.end().await;
}

#[tokio::test]
async fn a_deadline_and_a_signal_are_told_with_the_output_so_far() {
    let lab = Lab::new();
    let late = lab
        .ok(
            "t",
            "bash",
            json!({"command": "echo begun; sleep 30", "timeoutMs": 300}),
        )
        .await;
    assert_eq!(
        (&late["timedOut"], &late["exitCode"], text(&late, "stdout")),
        (&json!(true), &Value::Null, "begun\n")
    );
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
async fn a_cancelled_command_returns_what_it_wrote() {
    let lab = Lab::new();
    lab.sandbox().await;
    let token = CancellationToken::new();
    let cx = lab.cx("c").cancel(token.clone()).build();
    let call = lab
        .tools
        .call("bash", cx, json!({"command": "echo begun; sleep 30"}));
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        token.cancel();
    };
    let start = Instant::now();
    let (result, ()) = tokio::join!(call, cancel);
    let result = result.expect("a partial result").to_json();
    assert!(start.elapsed() < Duration::from_secs(3));
    assert_eq!(
        (&result["cancelled"], text(&result, "stdout")),
        (&json!(true), "begun\n")
    );
    lab.end().await;
}

#[tokio::test]
async fn the_deadline_of_the_run_ends_a_command_with_its_output() {
    let lab = Lab::new();
    lab.sandbox().await;
    let cx = lab
        .cx("c")
        .deadline(Instant::now() + Duration::from_millis(600))
        .build();
    let result = lab
        .tools
        .call("bash", cx, json!({"command": "echo begun; sleep 30"}))
        .await;
    let result = result.expect("a partial result").to_json();
    assert_eq!(
        (&result["timedOut"], text(&result, "stdout")),
        (&json!(true), "begun\n")
    );
    lab.end().await;
}

#[tokio::test]
async fn a_background_command_returns_at_once_and_its_log_can_be_read() {
    let lab = Lab::new();
    lab.sandbox().await;
    let start = Instant::now();
    let command = "echo up; while :; do sleep 0.1; done";
    let result = lab
        .ok(
            "bg",
            "bash",
            json!({"command": command, "background": true}),
        )
        .await;
    assert!(start.elapsed() < Duration::from_secs(2));
    assert_eq!(result["background"], true);
    let path = result["log"]["stdout"].clone();
    let mut content = String::new();
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if let Ok(log) = lab.call("r", "read", json!({"path": path})).await {
            content = text(&log, "content").to_owned();
            if !content.is_empty() {
                break;
            }
        }
    }
    assert_eq!(content, "up\n");
    let seen = lab.sh("pgrep -fc 'sleep 0.1' || ps").await;
    assert_eq!(seen["exitCode"], 0, "{seen}");
    lab.end().await;
}

#[tokio::test]
async fn output_is_shown_while_it_comes() {
    let lab = Lab::new();
    lab.sandbox().await;
    let (sender, mut events) = tokio::sync::mpsc::channel(64);
    let cx = lab.cx("live").progress(sender).build();
    let call = lab.tools.call(
        "bash",
        cx,
        json!({"command": "printf 'é1'; sleep 0.3; echo 2 >&2"}),
    );
    let (result, first) = tokio::join!(call, async {
        let first = events.recv().await;
        (first, Instant::now())
    });
    result.expect("result");
    assert!(
        first.1.elapsed() > Duration::from_millis(150),
        "shown before the end"
    );
    assert!(matches!(first.0, Some(ToolProgress::Output { text, .. }) if text == "é1"));
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
