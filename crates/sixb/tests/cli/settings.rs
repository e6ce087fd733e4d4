//! `sixb.toml` and `sixb init`.

use crate::place::Place;

#[test]
fn init_writes_a_file_that_works_and_never_overwrites_one() {
    let place = Place::new();
    let ended = place.sixb(&["init"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
    let text = place.read("sixb.toml");
    let ended = place.sixb(&["exec", "--", "echo", "used"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "used\n"),
        "{ended:?}"
    );

    let again = place.sixb(&["init"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(
        again.stderr.contains("sixb.toml") && again.stderr.contains("move it away"),
        "{again:?}"
    );
    assert_eq!(place.read("sixb.toml"), text);

    let elsewhere = place.sixb(&["init", "missing"]);
    assert!(
        elsewhere.code == Some(1) && elsewhere.stderr.contains("make the folder"),
        "{elsewhere:?}"
    );
}

#[test]
fn the_file_sets_what_no_flag_sets() {
    let place = Place::new();
    place.write("data/in.txt", "from the file's workspace");
    place.write(
        "sixb.toml",
        "[sandbox]\nworkspace = \"data:ro\"\ntimeout = \"300ms\"\n",
    );
    let ended = place.sixb(&["exec", "--", "cat", "in.txt"]);
    assert_eq!(ended.stdout, "from the file's workspace", "{ended:?}");
    let ended = place.sixb(&["exec", "--", "sleep", "20"]);
    assert!(
        ended.code == Some(124) && ended.stderr.contains("sixb.toml: sandbox.timeout 300ms"),
        "{ended:?}"
    );
    let ended = place.sixb(&["exec", "--timeout", "20s", "--", "sleep", "0.5"]);
    assert_eq!(ended.code, Some(0), "the flag wins: {ended:?}");

    place.write("else/sixb.toml", "[sandbox]\nworkspace = \"inner\"\n");
    place.write("else/inner/b.txt", "beside the file");
    let ended = place.sixb(&["--config", "else/sixb.toml", "exec", "--", "cat", "b.txt"]);
    assert_eq!(ended.stdout, "beside the file", "{ended:?}");
}
