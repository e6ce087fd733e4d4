//! Files of runs: attached, kept, there again, looked at.

use std::fs;

use serde_json::{Value, json};

use crate::place::{Ended, Place};

fn script(place: &Place, name: &str, steps: Value) {
    place.write(name, &json!({"steps": steps}).to_string());
}

fn bash(id: &str, command: &str) -> Value {
    json!({"toolCalls": [{"id": id, "name": "bash", "arguments": {"command": command}}]})
}

fn ok(ended: Ended) -> Ended {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

#[test]
fn an_attached_file_is_in_the_next_turn_too() {
    let place = Place::new();
    place.write("orders.csv", "id,amount\n1,9.50\n");
    script(
        &place,
        "one.json",
        json!([
            bash("sum", "tail -n 1 .sixb/agent/attachments/*/*-orders.csv > $SIXB_OUTPUT_DIR/last.csv"),
            {"text": "The last order is in last.csv."},
        ]),
    );
    let args = [
        "run",
        "--thread",
        "t1",
        "--file",
        "orders.csv",
        "--script",
        "one.json",
        "--dump-requests",
        "asked",
        "Which is last?",
    ];
    ok(place.sixb(&args));
    let asked = place.read("asked/request-001.json");
    assert!(
        asked.contains("orders.csv") && asked.contains("1,9.50"),
        "{asked}"
    );

    script(
        &place,
        "two.json",
        json!([
            {}, {},
            bash("all", "cd .sixb/agent/attachments && cat */*-orders.csv */*-last.csv"),
            {"text": "${calls.all.result.stdout}"},
        ]),
    );
    let next = ok(place.sixb(&["run", "--thread", "t1", "--script", "two.json", "And now?"]));
    assert_eq!(next.stdout, "id,amount\n1,9.50\n1,9.50\n");

    let runs = ok(place.sixb(&["runs", "list"]));
    let first = runs
        .stdout
        .lines()
        .last()
        .and_then(|line| line.split(' ').next())
        .expect("run");
    let shown = ok(place.sixb(&["runs", "show", first]));
    for part in [
        "file attached orders.csv text/csv 17 bytes blob_",
        "saved sixb-out/",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    place.assert_nothing_left();
}

#[test]
fn files_go_to_the_store_that_is_named() {
    let place = Place::new();
    script(
        &place,
        "one.json",
        json!([bash("c", "echo kept > $SIXB_OUTPUT_DIR/a.txt"), {"text": "done"}]),
    );
    let url = format!("file://{}/my-blobs", place.work().display());
    ok(place.sixb(&["run", "--blobs", &url, "--script", "one.json", "x"]));
    let count = |folder: &str| {
        fs::read_dir(place.work().join(folder).join("blobs/sha256")).map_or(0, Iterator::count)
    };
    assert_eq!(count("my-blobs"), 1);
    place.write(
        "sixb.toml",
        &format!("[blobs]\nurl = \"{}\"\n", url.replace("my-blobs", "other")),
    );
    ok(place.sixb(&["run", "--script", "one.json", "x"]));
    assert_eq!(count("other"), 1);

    for (args, part) in [
        (
            &["--blobs", "ftp://x/y"][..],
            "--blobs: \"ftp://x/y\" names no store",
        ),
        (&["--blobs", &url, "--workspace", "."], "would lie in"),
        (&["--file", "none.csv"], "--file none.csv"),
        (
            &["--dump-requests", "./d", "--workspace", "."],
            "--dump-requests DIR",
        ),
        (&["--file", "."], "--file ."),
    ] {
        let ended = place.sixb(&[&["run", "--script", "one.json", "x"], args].concat());
        assert_ne!(ended.code, Some(0), "{args:?}");
        assert!(ended.stderr.contains(part), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn a_tool_call_alone_views_a_file() {
    let place = Place::new();
    place.write("data/a.csv", "a,b\n");
    let view = |path: &str| {
        place.sixb(&[
            "tool",
            "--workspace",
            "data:ro",
            "view_file",
            &json!({"path": path}).to_string(),
        ])
    };
    let viewed = ok(view("a.csv"));
    let result: Value = serde_json::from_str(&viewed.stdout).expect("JSON");
    let file = &result["content"][0]["fileRef"];
    assert_eq!(
        (&file["fileName"], &file["mediaType"], &file["sizeBytes"]),
        (&json!("a.csv"), &json!("text/csv"), &json!(4))
    );
    let inside = place.sixb(&[
        "tool",
        "--workspace",
        "data",
        "--blobs",
        &format!("file://{}/data/b", place.work().display()),
        "view_file",
        r#"{"path":"a.csv"}"#,
    ]);
    assert_eq!(
        inside.code,
        Some(2),
        "the sandbox could lead it elsewhere: {inside:?}"
    );
    let missing = view("b.csv");
    assert_eq!(missing.code, Some(1));
    assert!(missing.stdout.contains("not_found"), "{missing:?}");
}
