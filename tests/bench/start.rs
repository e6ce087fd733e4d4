//! Creating a sandbox, and a command in one that is up.

use std::time::Instant;

use sixb_sandbox::{Command, CreateOptions, SandboxFactory};
use sixb_sandbox_local::LocalSandboxFactory;

use crate::{
    figure::{Goal, Paired, Report, ms},
    floor,
};

pub(crate) async fn run(report: &mut Report) {
    if !report.wants("start") {
        return;
    }
    let (state, home) = (
        tempfile::tempdir().expect("folder"),
        tempfile::tempdir().expect("folder"),
    );
    let factory = LocalSandboxFactory::default().state_dir(state.path());
    let command = || Command::script("true");

    let mut rounds = Vec::new();
    for round in 0..60 {
        let begin = Instant::now();
        let sandbox = factory
            .create(CreateOptions::default())
            .await
            .expect("sandbox");
        let output = sandbox.run(command()).await.expect("command");
        let ours = begin.elapsed();
        assert!(output.success());
        sandbox.destroy().await.expect("destroyed");
        let Some(bubblewrap) = floor::bubblewrap(home.path()) else {
            println!("start: bubblewrap is missing: sudo apt-get install bubblewrap");
            break;
        };
        let floor = floor::time(bubblewrap);
        // The first rounds make the sealed copy of the program and warm the caches.
        if round >= 10 {
            rounds.push((ms(ours), ms(floor)));
        }
    }
    if !rounds.is_empty() {
        report.ratio(
            "start: create + first command / bwrap bash -lc true",
            "ms",
            Paired::of(&rounds),
            Goal::AtMost(1.5),
        );
    }

    let sandbox = factory
        .create(CreateOptions::default())
        .await
        .expect("sandbox");
    let mut rounds = Vec::new();
    for round in 0..220 {
        let begin = Instant::now();
        assert!(sandbox.run(command()).await.expect("command").success());
        let ours = begin.elapsed();
        let floor = floor::time(floor::login_shell(home.path()));
        if round >= 20 {
            rounds.push((ms(ours), ms(floor)));
        }
    }
    report.ratio_or_more(
        "start: warm bash -lc true / without a sandbox",
        Paired::of(&rounds),
        1.5,
        2.0,
    );
    sandbox.destroy().await.expect("destroyed");
}
