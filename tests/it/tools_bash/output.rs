//! What a model sees of a command's output, and where the rest of it is.

use serde_json::{Value, json};
use sixb_tools::ToolProgress;

use super::text;
use crate::tools_lab::{Lab, unless_hung};

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
async fn output_is_shown_while_it_comes() {
    let lab = Lab::new();
    let (sender, mut events) = tokio::sync::mpsc::channel(64);
    let cx = lab.cx("live").progress(sender).build();
    // Ends only once someone has seen its output.
    let command = "printf 'é1'; until [ -e seen ]; do sleep 0.02; done; echo 2 >&2";
    let call = lab.tools.call("bash", cx, json!({"command": command}));
    let look = async {
        let first = events.recv().await;
        lab.write("seen", "").await;
        first
    };
    let (result, first) = unless_hung(futures::future::join(call, look)).await;
    let result = result.expect("result").to_json();
    assert_eq!(result["exitCode"], 0, "{result}");
    assert!(matches!(first, Some(ToolProgress::Output { text, .. }) if text == "é1"));
    lab.end().await;
}
