//! `sixb tool`: one call and batches.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
    time::Duration,
};

use serde_json::json;

use crate::place::{Place, is_running};

#[test]
fn one_call_prints_its_result() {
    let place = Place::new();
    let ended = place.sixb(&["tool", "bash", r#"{"command":"echo hi; exit 3"}"#]);
    let result = ended.json();
    assert_eq!(ended.code, Some(0), "an exit code is data: {ended:?}");
    assert_eq!(
        (&result["stdout"], &result["exitCode"]),
        (&json!("hi\n"), &json!(3)),
        "{ended:?}"
    );
    let piped = place.sixb_with_input(&["tool", "bash", "-"], br#"{"command":"cat","stdin":"x"}"#);
    assert_eq!(piped.json()["stdout"], "x", "{piped:?}");
    place.assert_nothing_left();
}

#[test]
fn a_tool_error_is_data_with_exit_code_1() {
    let place = Place::new();
    for (name, input, kind, part) in [
        ("read", r#"{"path":"missing"}"#, "not_found", "missing"),
        ("read", r#"{"path":7}"#, "invalid_input", "path"),
        ("read", "{", "invalid_input", "column"),
        (
            "read",
            r#"{"path":"/etc/passwd"}"#,
            "permission_denied",
            "absolute",
        ),
        ("bsh", "{}", "not_found", "bash"),
    ] {
        let ended = place.sixb(&["tool", name, input]);
        assert_eq!(
            (ended.code, &ended.json()["error"]["kind"]),
            (Some(1), &json!(kind)),
            "{name} {input}: {ended:?}"
        );
        assert_eq!(ended.stderr, "", "what is on stdout is not told twice");
        assert!(
            ended.json()["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains(part)),
            "{ended:?}"
        );
    }
}

#[test]
fn a_call_out_of_time_keeps_what_it_has() {
    let place = Place::new();
    let input = r#"{"command":"echo begun; sleep 20.0128"}"#;
    let ended = place.sixb(&["tool", "--timeout", "700ms", "bash", input]);
    let result = ended.json();
    assert_eq!(
        (&result["stdout"], &result["timedOut"]),
        (&json!("begun\n"), &json!(true)),
        "{ended:?}"
    );
    assert!(
        ended.elapsed < Duration::from_secs(10) && !is_running("20.0128"),
        "{ended:?}"
    );
}

#[test]
fn the_tools_are_listed() {
    let place = Place::new();
    let ended = place.sixb(&["tool", "--list"]);
    let names: Vec<&str> = ended
        .stdout
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(
        (names, ended.code),
        (vec!["bash", "read", "view_file"], Some(0)),
        "{ended:?}"
    );
    let listed = place.sixb(&["tool", "--list", "--json"]).json();
    assert_eq!(listed[0]["inputSchema"]["required"], json!(["command"]));
}

#[test]
fn a_batch_is_answered_in_order_in_one_sandbox() {
    let place = Place::new();
    let lines = [
        r#"{"id":"a","tool":"bash","input":{"command":"sleep 30 & echo done"}}"#,
        r#"{"id":"b","tool":"bash","input":{"command":"seq 1 100000; echo FATAL >&2; exit 3"}}"#,
        r#"{"id":"c","tool":"read","input":{"path":".sixb/agent/spool/b/stdout","offset":50000,"limit":1}}"#,
        r#"{"id":"d","tool":"read","input":{"path":"../etc/passwd"}}"#,
    ];
    let ended = place.sixb_with_input(&["tool", "--batch"], (lines.join("\n") + "\n").as_bytes());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.elapsed < Duration::from_secs(25),
        "{:?}",
        ended.elapsed
    );
    let answers = ended.json_lines();
    let ids: Vec<_> = answers
        .iter()
        .map(|answer| answer["id"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(ids, ["a", "b", "c", "d"], "{ended:?}");
    assert_eq!(answers[0]["result"]["stdout"], "done\n");
    let b = &answers[1]["result"];
    let kept: Vec<&str> = b["stdout"].as_str().expect("text").lines().collect();
    assert_eq!(
        (kept.first(), kept.last()),
        (Some(&"1"), Some(&"100000")),
        "head and tail are kept"
    );
    assert_eq!(
        (&b["exitCode"], &b["stderr"], &b["stdoutTruncated"]),
        (&json!(3), &json!("FATAL\n"), &json!(true))
    );
    assert_eq!(
        answers[2]["result"]["content"].as_str().map(str::trim_end),
        Some("50000"),
        "{}",
        answers[2]
    );
    assert!(
        answers[3]["error"]["kind"].is_string() && answers[3].get("result").is_none(),
        "{}",
        answers[3]
    );
    assert!(ended.stderr.is_empty(), "{}", ended.stderr);
    place.assert_nothing_left();
}

#[test]
fn bad_lines_are_answered_and_the_batch_goes_on() {
    let place = Place::new();
    let lines = [
        "\u{feff}not json",
        "",
        r#"{"id":"x","tool":"bash"}"#,
        r#"{"id":"x","tool":"bash","input":{"command":"echo twice"}}"#,
        r#"{"id":"y","tool":"bash","inptu":{}}"#,
        r#"{"id":7,"tool":"bash","input":{}}"#,
        r#"{"id":"","tool":"bash","input":{"command":"true"}}"#,
        "\u{0}",
        r#"["a","bash",{"command":"true"}]"#,
        r#"{"id":"z","tool":5}"#,
        r#"{"id":"z"}"#,
        r#"{"tool":"bash","input":{"command":"echo last"}}"#,
    ];
    let ended = place.sixb_with_input(&["tool", "--batch"], lines.join("\n").as_bytes());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answers = ended.json_lines();
    let expect = [
        (json!(null), "line 1 is no JSON: expected ident at column 2"),
        (json!("x"), "command"),
        (json!("x"), "line 4 repeats the id"),
        (json!("y"), "line 5 has the unknown key \"inptu\""),
        (json!(7), "line 6 has the id 7, which is no string"),
        (json!(""), "line 7 has an empty id"),
        (json!(null), "line 8 is no JSON"),
        (json!(null), "line 9 is no JSON object"),
        (json!("z"), "line 10 has the tool 5"),
        (json!("z"), "line 11 names no tool"),
    ];
    assert_eq!(
        answers.len(),
        expect.len() + 1,
        "a blank line is no call: {ended:?}"
    );
    for (answer, (id, part)) in answers.iter().zip(expect) {
        assert_eq!(
            (&answer["id"], &answer["error"]["kind"]),
            (&id, &json!("invalid_input")),
            "{answer}"
        );
        assert!(
            answer["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains(part)),
            "{part:?}: {answer}"
        );
    }
    let last = answers.last().expect("last");
    assert_eq!(
        (&last["id"], &last["result"]["stdout"]),
        (&json!("line_12"), &json!("last\n")),
        "{last}"
    );
}

#[test]
fn an_answer_is_out_before_the_next_line_is_in() {
    let place = Place::new();
    let mut child = place
        .command(&["tool", "--batch"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("sixb");
    let mut input = child.stdin.take().expect("stdin");
    let mut output = BufReader::new(child.stdout.take().expect("stdout"));
    for n in ["1", "2"] {
        let command = format!("echo {n} >> log; wc -l < log");
        writeln!(
            input,
            "{}",
            json!({"tool": "bash", "input": {"command": command}})
        )
        .expect("write");
        let mut line = String::new();
        output.read_line(&mut line).expect("read");
        let answer: serde_json::Value = serde_json::from_str(&line).expect("json");
        assert_eq!(
            answer["result"]["stdout"].as_str().map(str::trim),
            Some(n),
            "{answer}"
        );
    }
    drop(input);
    assert!(child.wait().expect("wait").success());
}

#[test]
fn a_line_too_long_is_refused_without_being_held() {
    let place = Place::new();
    let mut input = vec![b'x'; 9 << 20];
    input.extend_from_slice(
        b"\n{\"id\":\"a\",\"tool\":\"bash\",\"input\":{\"command\":\"echo on\"}}\n",
    );
    let ended = place.sixb_with_input(&["tool", "--batch"], &input);
    let answers = ended.json_lines();
    assert!(
        answers[0]["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("8388608")),
        "{ended:?}"
    );
    assert_eq!(answers[1]["result"]["stdout"], "on\n");
}

#[test]
fn a_byte_order_mark_before_the_first_line_is_no_error() {
    let place = Place::new();
    let line = b"\xef\xbb\xbf{\"tool\":\"bash\",\"input\":{\"command\":\"echo on\"}}\n";
    let ended = place.sixb_with_input(&["tool", "--batch"], line);
    assert_eq!(ended.json()["result"]["stdout"], "on\n", "{ended:?}");
}
