//! Floods of output: rate and memory.

use std::time::{Duration, Instant};

use sixb_sandbox::{Command, CreateOptions, OutputId, OutputLimits, Sandbox, SandboxFactory};
use sixb_sandbox_local::LocalSandboxFactory;

use crate::{
    figure::{Goal, Paired, Report},
    floor,
};

const BYTES: u64 = 200_000_000;

pub(crate) async fn run(report: &mut Report) {
    if !report.wants("output") {
        return;
    }
    let (state, home) = (
        tempfile::tempdir().expect("folder"),
        tempfile::tempdir().expect("folder"),
    );
    let factory = LocalSandboxFactory::default().state_dir(state.path());
    let sandbox = factory
        .create(CreateOptions::default())
        .await
        .expect("sandbox");

    let rate = |elapsed: Duration| BYTES as f64 / 1e6 / elapsed.as_secs_f64();
    for (name, spool, least) in [
        ("output: 200 MB / a bare pipe, no spool", false, 0.7),
        ("output: 200 MB / a bare pipe, 64 MiB spooled", true, 0.4),
    ] {
        let mut rounds = Vec::new();
        for round in 0..12 {
            let mut command = flood();
            if spool {
                command = command.output_id(OutputId::for_call(&format!("flood-{round}")));
            }
            let begin = Instant::now();
            let output = sandbox.run(command).await.expect("command");
            let ours = begin.elapsed();
            assert_eq!(output.stdout.total_bytes, BYTES);
            let floor = floor::pipe(BYTES, home.path());
            if round >= 2 {
                rounds.push((rate(ours), rate(floor)));
            }
        }
        report.ratio(name, "MB/s", Paired::of(&rounds), Goal::AtLeast(least));
    }

    for (name, command) in [
        ("output: peak memory under 200 MB", flood()),
        (
            "output: peak memory under `timeout 5 yes`",
            Command::script("timeout 5 yes"),
        ),
    ] {
        let peak = peak_of(sandbox.as_ref(), command).await;
        report.value(name, "MiB", peak, 64.0);
    }
    sandbox.destroy().await.expect("destroyed");
}

fn flood() -> Command {
    Command::argv([
        "head".to_owned(),
        "-c".to_owned(),
        BYTES.to_string(),
        "/dev/zero".to_owned(),
    ])
    .limits(OutputLimits::default())
}

/// MiB by which this process grew while the command ran, sampled every few milliseconds.
async fn peak_of(sandbox: &dyn Sandbox, command: Command) -> f64 {
    let before = resident();
    let mut run = sandbox.run(command);
    let mut peak = before;
    loop {
        tokio::select! {
            output = &mut run => {
                output.expect("command");
                break;
            }
            () = tokio::time::sleep(Duration::from_millis(2)) => peak = peak.max(resident()),
        }
    }
    peak - before
}

/// Resident memory of this process, in MiB.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: f64 = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("pages");
    pages * 4096.0 / f64::from(1 << 20)
}
