//! `sixb doctor`, `--version` and `--help`.

use crate::place::Place;

#[test]
fn the_report_names_what_works_and_what_to_do() {
    let place = Place::new();
    let ended = place.sixb(&["doctor"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        ended.stdout.lines().next(),
        Some("sandboxes work here"),
        "{ended:?}"
    );
    for part in ["kernel", "isolation", "bash", "python3", "git"] {
        assert!(
            ended.stdout.contains(part),
            "{part:?} is missing: {ended:?}"
        );
    }
    let report = place.sixb(&["doctor", "--json"]).json();
    assert_eq!(report["ready"], true, "{report}");
    for check in report["checks"].as_array().expect("checks") {
        assert_eq!(
            check["status"] == "ok",
            check["remedy"].is_null(),
            "a remedy for each miss: {check}"
        );
    }
    place.assert_nothing_left();
}

/// Inside a sandbox no other one can be made: what a machine without user namespaces shows.
#[test]
fn the_first_line_says_that_sandboxes_do_not_work() {
    let place = Place::new();
    std::fs::create_dir(place.work().join("inner")).expect("folder");
    std::fs::copy(crate::place::binary(), place.work().join("inner/sixb")).expect("copy");
    let ended = place.sixb(&["exec", "--workspace", "inner", "--", "./sixb", "doctor"]);
    assert_eq!(ended.code, Some(0), "a report is no failure: {ended:?}");
    let mut lines = ended.stdout.lines();
    assert_eq!(
        lines.next(),
        Some("sandboxes do not work here; what is missing: isolation"),
        "{ended:?}"
    );
}

#[test]
fn version_and_help_start_nothing() {
    let place = Place::new();
    let version = place.sixb(&["--version"]);
    assert_eq!(
        version.stdout,
        format!("sixb {}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = place.sixb(&["--help"]);
    assert!(
        help.stdout.contains("Exit codes") && help.stdout.contains("demo"),
        "{help:?}"
    );
    assert!(!place.state().exists());
}
