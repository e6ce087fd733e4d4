//! `sixb sandbox list` and `sixb sandbox sweep`.

use crate::place::{Place, eventually, is_running, signal};

#[test]
fn nothing_is_an_empty_output_and_a_note() {
    let place = Place::new();
    for (args, stdout) in [
        (&["sandbox", "list"][..], ""),
        (&["sandbox", "list", "--json"], "[]\n"),
        (&["sandbox", "sweep"], ""),
        (&["sandbox", "sweep", "--json"], "{\"removed\":[]}\n"),
    ] {
        let ended = place.sixb(args);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), stdout),
            "{args:?}: {ended:?}"
        );
    }
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
