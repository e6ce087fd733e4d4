//! `sixb sandbox list` and `sixb sandbox sweep`.

use crate::place::{Place, eventually, is_running, signal};

#[test]
fn nothing_is_an_empty_output_and_a_note() {
    let place = Place::new();
    for (args, stdout) in [
        (&["sandbox", "list"][..], ""),
        (&["sandbox", "list", "--json"], "[]\n"),
        (&["sandbox", "sweep"], ""),
    ] {
        let ended = place.sixb(args);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), stdout),
            "{args:?}: {ended:?}"
        );
    }
    let swept = place.sixb(&["sandbox", "sweep", "--json"]).json();
    let expect = serde_json::json!({"removed": [], "cleanedWorkspaces": []});
    assert_eq!(swept, expect);
    assert!(
        place
            .sixb(&["sandbox", "list"])
            .stderr
            .contains("no sandboxes")
    );
}

#[test]
fn a_killed_run_leaves_nothing_after_a_sweep() {
    let place = Place::new();
    let script = r#"{"steps":[{"toolCalls":[{"name":"bash","arguments":{"command":"setsid sleep 299.0126 & sleep 299.0126"}}]}]}"#;
    place.write("script.json", script);
    let mut child = place
        .command(&["run", "--script", "script.json", "sleep"])
        .spawn()
        .expect("sixb");
    eventually("the call runs", || is_running("sleep\x00299.0126"));
    let listed = place.sixb(&["sandbox", "list"]);
    assert_eq!(listed.stdout.lines().count(), 1, "{listed:?}");
    assert!(
        listed
            .stdout
            .contains(&format!("owner {} alive", child.id())),
        "{listed:?}"
    );
    let swept = place.sixb(&["sandbox", "sweep"]);
    assert!(
        swept.stdout.is_empty() && is_running("299.0126"),
        "a live owner keeps its sandbox: {swept:?}"
    );

    signal("KILL", child.id());
    child.wait().expect("wait");
    let swept = place.sixb(&["sandbox", "sweep"]);
    assert_eq!(swept.code, Some(0), "{swept:?}");
    eventually("its processes are gone", || !is_running("299.0126"));
    place.assert_nothing_left();
}

#[test]
fn a_killed_run_leaves_nothing_in_the_users_folder_after_a_sweep() {
    let place = Place::new();
    place.write("data/mine.txt", "mine");
    place.write(
        "script.json",
        r#"{"steps":[{"toolCalls":[{"name":"bash","arguments":{"command":"echo x > $SIXB_OUTPUT_DIR/x; sleep 299.0131"}}]}]}"#,
    );
    let run = [
        "run",
        "--script",
        "script.json",
        "--workspace",
        "data",
        "sleep",
    ];
    let mut child = place.command(&run).spawn().expect("sixb");
    eventually("the call runs", || is_running("sleep\x00299.0131"));
    let second = place.sixb(&run);
    assert!(
        second.code == Some(1)
            && second.stderr.contains("is in use by run_")
            && second.stderr.contains("wait for it"),
        "one run at a time: {second:?}"
    );
    signal("KILL", child.id());
    child.wait().expect("wait");
    assert!(place.work().join("data/.sixb/agent").exists());
    let swept = place.sixb(&["sandbox", "sweep"]);
    assert!(
        swept.code == Some(0) && swept.stderr.contains("what a killed run left in"),
        "{swept:?}"
    );
    eventually("its processes are gone", || !is_running("299.0131"));
    let left: Vec<_> = std::fs::read_dir(place.work().join("data"))
        .expect("folder")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(left, ["mine.txt"]);
    let again = place.sixb(&["sandbox", "sweep", "--json"]);
    assert_eq!(again.json()["cleanedWorkspaces"], serde_json::json!([]));
}
