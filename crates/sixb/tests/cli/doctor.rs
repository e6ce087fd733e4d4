//! `sixb doctor`, `--version` and `--help`.

use std::time::{Duration, Instant};

use crate::place::{Place, binary};

#[test]
fn the_report_names_what_works_and_what_to_do() {
    let place = Place::new();
    let ended = place.sixb(&["doctor"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
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

#[test]
fn version_and_help_start_nothing() {
    let place = Place::new();
    let version = place.sixb(&["--version"]);
    assert_eq!(
        version.stdout,
        format!("sixb {}\n", env!("CARGO_PKG_VERSION"))
    );
    let started = Instant::now();
    for _ in 0..10 {
        assert!(
            std::process::Command::new(binary())
                .arg("--version")
                .output()
                .expect("sixb")
                .status
                .success()
        );
    }
    // 10 ms each is the aim; a machine that runs other tests too gets more.
    assert!(
        started.elapsed() < Duration::from_millis(500),
        "{:?}",
        started.elapsed()
    );
    let help = place.sixb(&["--help"]);
    assert!(
        help.stdout.contains("Exit codes") && help.stdout.contains("demo"),
        "{help:?}"
    );
    assert!(!place.state().exists());
}
