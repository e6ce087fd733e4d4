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
    let run = &the_run(&place);
    assert_eq!(
        place.read(format!("sixb-out/{run}/copy.txt")),
        "one\ntwo\nthree\n"
    );
    let transcript = place.read(place.transcript(run));
    assert!(!place.work().join(".sixb").exists());
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

/// The current folder as workspace, without more flags: outputs land in it, the transcript where no sandbox can write.
#[test]
fn the_current_folder_may_be_the_workspace() {
    let place = place();
    place.write(
        "one.json",
        &scripted("wc -l < notes/notes.txt | tee $SIXB_OUTPUT_DIR/count"),
    );
    let ended = place.sixb(&["run", "--script", "one.json", "--workspace", ".", "count"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let run = the_run(&place);
    assert_eq!(place.read(format!("sixb-out/{run}/count")), "3\n");
    assert!(place.read(place.transcript(&run)).contains("notes.txt"));
    assert!(!place.work().join(".sixb").exists());
    place.assert_nothing_left();
}

/// What a guest does to the names of folders that the host is about to write to.
#[test]
fn a_guest_cannot_lead_outputs_out_of_the_current_folder() {
    for attack in [
        "mkdir sixb-out; ln -s VICTIM sixb-out/$SIXB_RUN_ID",
        "ln -s VICTIM sixb-out",
        "mkdir -p sixb-out/$SIXB_RUN_ID; ln -s VICTIM sixb-out/$SIXB_RUN_ID/deep",
    ] {
        let place = Place::new();
        let victim = place.work().with_file_name("victim");
        fs::create_dir(&victim).expect("folder");
        let attack = attack.replace("VICTIM", victim.to_str().expect("path"));
        let script = scripted(&format!(
            "{attack}; mkdir $SIXB_OUTPUT_DIR/deep; echo x > $SIXB_OUTPUT_DIR/deep/x; ls -A .sixb"
        ));
        place.write("script.json", &script);
        let ended = place.sixb(&["run", "--script", "script.json", "--workspace", ".", "go"]);
        assert_eq!(
            fs::read_dir(&victim).expect("victim").count(),
            0,
            "{attack}: {ended:?}"
        );
        assert!(
            ended.stderr.contains("deep/x"),
            "what is not saved is told: {ended:?}"
        );
        // The link stays, and the next run does not follow it either, with or without a workspace.
        if attack.starts_with("ln") {
            let ended = place.sixb(&["run", "--script", "script.json", "go"]);
            assert!(
                ended.code == Some(1)
                    && ended.stderr.contains("sixb-out is a link")
                    && ended.stderr.contains("--out DIR"),
                "{ended:?}"
            );
            assert_eq!(fs::read_dir(&victim).expect("victim").count(), 0);
        }
    }
}

#[test]
fn what_a_run_keeps_must_have_a_safe_place() {
    let place = place();
    let run = ["run", "--script", "script.json", "count"];
    for (flags, parts) in [
        (
            &["--workspace", ".", "--transcripts", "runs"][..],
            &["transcripts", "runs", "--transcripts DIR", ":ro"][..],
        ),
        (
            &["--transcripts", "/proc/nowhere"],
            &["/proc/nowhere", "--transcripts DIR"],
        ),
        (&["--out", "/proc/nowhere"], &["/proc/nowhere", "--out DIR"]),
    ] {
        let ended = place.sixb(&[&run[..], flags].concat());
        assert_eq!(ended.code, Some(1), "{flags:?}: {ended:?}");
        for part in parts {
            assert!(ended.stderr.contains(part), "{part}: {ended:?}");
        }
    }
    assert!(!place.work().join("runs").exists());
    let ended = place.sixb(&["demo", "--out", "/proc/nowhere"]);
    assert!(ended.stderr.contains("--out DIR"), "{ended:?}");
}

#[test]
fn a_command_that_was_ended_is_not_ok() {
    let place = Place::new();
    place.write(
        "script.json",
        r#"{"steps":[{"toolCalls":[
            {"name":"bash","arguments":{"command":"kill -TERM $$"}},
            {"name":"bash","arguments":{"command":"sleep 60","timeoutMs":300}}]}, {"text":"done"}]}"#,
    );
    let ended = place.sixb(&["run", "--script", "script.json", "go"]);
    for part in ["  killed by signal 15 bash", "  timed out bash"] {
        assert!(
            ended.stderr.contains(part),
            "{part:?} is missing: {ended:?}"
        );
    }
}

/// A script of one command.
fn scripted(command: &str) -> String {
    let call = serde_json::json!({"name": "bash", "arguments": {"command": command}});
    serde_json::json!({"steps": [{"toolCalls": [call]}, {"text": "done"}]}).to_string()
}

/// The one run that saved something.
fn the_run(place: &Place) -> String {
    let mut runs = fs::read_dir(place.work().join("sixb-out")).expect("outputs");
    let run = runs.next().expect("run").expect("entry").file_name();
    assert!(runs.next().is_none(), "one run");
    run.into_string().expect("name")
}
