//! `sixb run` with a script in the place of a model.

use std::fs;

use crate::place::{Place, eventually, is_running, signal};

const SCRIPT: &str = r#"{"steps":[
  {"text":"Counting.","toolCalls":[
    {"id":"lines","name":"bash","arguments":{"command":"wc -l < notes.txt; cp notes.txt \"$SIXB_OUTPUT_DIR/copy.txt\""}},
    {"id":"page","name":"read","arguments":{"path":"notes.txt","limit":1}}]},
  {"text":"There are ${calls.lines.result.stdout}lines, the first is ${calls.page.result.content}"}]}"#;

fn place() -> Place {
    let place = Place::new();
    place.write("script.json", SCRIPT);
    place.write("notes/notes.txt", "one\ntwo\nthree\n");
    place
}

#[test]
fn a_script_and_a_folder_of_the_users_own() {
    let place = place();
    let ended = place.sixb(&[
        "run",
        "--script",
        "script.json",
        "--workspace",
        "notes",
        "count the lines",
    ]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "There are 3\nlines, the first is one\n"),
        "{ended:?}"
    );
    for part in [
        "script.json (scripted)",
        "bash wc -l < notes.txt",
        "read notes.txt",
        "saved sixb-out/",
        "done: 2 steps, 2 tool calls, 1 file",
    ] {
        assert!(
            ended.stderr.contains(part),
            "{part:?} is missing: {}",
            ended.stderr
        );
    }
    let run = fs::read_dir(place.work().join("sixb-out"))
        .expect("outputs")
        .flatten()
        .next()
        .expect("run")
        .file_name();
    let run = run.to_str().expect("name");
    assert_eq!(
        place.read(format!("sixb-out/{run}/copy.txt")),
        "one\ntwo\nthree\n"
    );
    let transcript = place.read(format!(".sixb/runs/{run}/transcript.jsonl"));
    assert!(
        transcript.lines().count() > 4 && transcript.contains("count the lines"),
        "{transcript}"
    );
    assert!(!transcript.contains(crate::place::SECRET));
    let left: Vec<_> = fs::read_dir(place.work().join("notes"))
        .expect("folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(
        left,
        ["notes.txt"],
        "the run keeps nothing in the user's folder"
    );
    place.assert_nothing_left();
}

#[test]
fn events_are_json_lines() {
    let place = place();
    let ended = place.sixb(&[
        "run",
        "--script",
        "script.json",
        "--workspace",
        "notes",
        "--out",
        "results",
        "--json",
        "count",
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let events = ended.json_lines();
    assert_eq!(events[0]["state"]["model"]["scripted"], true, "{ended:?}");
    let kinds: Vec<_> = events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    for kind in [
        "state",
        "textDelta",
        "toolCallStarted",
        "toolCallFinished",
        "fileSaved",
    ] {
        assert!(kinds.contains(&kind), "{kind} is missing: {kinds:?}");
    }
    let last = events.last().expect("last");
    assert_eq!(last["outcome"]["status"], "completed", "{last}");
    assert_eq!(
        fs::read_dir(place.work().join("results"))
            .expect("outputs")
            .count(),
        1
    );
}

#[test]
fn the_agent_of_the_file_runs() {
    let place = place();
    place.write(
        "sixb.toml",
        "[sandbox]\nworkspace = \"notes\"\n[agents.counter]\nname = \"Counter\"\nmodel = \"script:script.json\"\ntools = [\"bash\"]\n",
    );
    let ended = place.sixb(&["run", "count"]);
    assert!(
        ended.stderr.contains("agent counter") && ended.stderr.contains("not_found"),
        "`read` is not granted: {ended:?}"
    );
    assert_eq!(
        ended.code,
        Some(1),
        "the script needs its result: {ended:?}"
    );
}

#[test]
fn a_limit_or_a_signal_ends_a_run() {
    let place = Place::new();
    place.write(
        "script.json",
        r#"{"steps":[{"toolCalls":[{"name":"bash","arguments":{"command":"sleep 60.0127"}}]}]}"#,
    );
    let ended = place.sixb(&[
        "run",
        "--script",
        "script.json",
        "--timeout",
        "700ms",
        "sleep",
    ]);
    assert!(
        ended.code == Some(1) && ended.stderr.contains("timed-out"),
        "{ended:?}"
    );
    assert!(!is_running("60.0127"));

    let mut child = place
        .command(&["run", "--script", "script.json", "sleep"])
        .spawn()
        .expect("sixb");
    eventually("the call runs", || is_running("sleep\x0060.0127"));
    signal("INT", child.id());
    assert_eq!(child.wait().expect("wait").code(), Some(130));
    assert!(!is_running("60.0127"));
    place.assert_nothing_left();
}
