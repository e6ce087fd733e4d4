//! The command line as a whole process.

use std::path::PathBuf;

use crate::{
    figure::{Goal, Paired, Report, ms},
    floor,
};

pub(crate) async fn run(report: &mut Report) {
    if !report.wants("whole") {
        return;
    }
    let Some(sixb) = std::env::var_os("SIXB_TEST_BIN").map(PathBuf::from) else {
        println!("whole: SIXB_TEST_BIN names no sixb: `cargo xtask bench` sets it");
        return;
    };
    let home = tempfile::tempdir().expect("folder");
    let sixb = |arguments: &[&str]| {
        let mut command = floor::clean(sixb.to_str().expect("a plain path"), home.path());
        command.args(arguments);
        command
    };
    let alternate = |ours: &dyn Fn() -> std::process::Command,
                     other: &dyn Fn() -> std::process::Command| {
        let rounds: Vec<_> = (0..40)
            .map(|_| (ms(floor::time(ours())), ms(floor::time(other()))))
            .collect();
        Paired::of(&rounds[5..])
    };
    let nothing = || floor::clean("/usr/bin/true", home.path());
    report.ratio(
        "whole: sixb --version / true",
        "ms",
        alternate(&|| sixb(&["--version"]), &nothing),
        Goal::Value(10.0),
    );
    if let Some(_bubblewrap) = floor::bubblewrap(home.path()) {
        let bubblewrap = || floor::bubblewrap(home.path()).expect("as before");
        let exec = || sixb(&["exec", "--", "true"]);
        report.ratio(
            "whole: sixb exec -- true / bwrap bash -lc true",
            "ms",
            alternate(&exec, &bubblewrap),
            Goal::Value(40.0),
        );
    }
}
