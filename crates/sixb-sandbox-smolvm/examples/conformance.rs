//! Runs the conformance suite, the crash checks and the figures on real microVMs. `cargo xtask smolvm-lab` builds it,
//! starts it where machines boot, and reads its last line: `N passed, N failed`.
//!
//! `smolvm-conformance [WORD,…]` runs the checks whose names hold one of the words, but not the check named behind a `!`.
//! Settings come by environment: `SIXB_LAB_BIN` (the smolvm program), `SIXB_LAB_IMAGE` (`agent`, `bare`, a path),
//! `SIXB_LAB_STATE` (a short path), `SIXB_LAB_EMULATED` (sizes and times of an emulated machine).

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test runner: it starts itself again as an owner to be killed, and kills machines"
)]

mod lab;

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use sixb_sandbox::conformance::{Expectations, OwnerCommand, Scale, Suite};
use sixb_sandbox::{NetworkEnforcement, SandboxFactory};
use sixb_sandbox_smolvm::{Image, SmolvmSandboxFactory};

/// The argument by which this program only tells whether a machine boots.
const PROBE: &str = "--probe";
/// The argument that makes this program an owner.
const OWNER: &str = "--own-a-sandbox";

pub(crate) fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

pub(crate) fn state() -> PathBuf {
    setting("SIXB_LAB_STATE", "/tmp/sixb-lab").into()
}

pub(crate) fn factory() -> SmolvmSandboxFactory {
    let image: Image = setting("SIXB_LAB_IMAGE", "agent")
        .parse()
        .expect("SIXB_LAB_IMAGE");
    let mut factory = SmolvmSandboxFactory::default()
        .state_dir(state())
        .image(image);
    if let Ok(program) = std::env::var("SIXB_LAB_BIN") {
        factory = factory.bin(program);
    }
    if emulated() {
        // A second core of a machine inside an emulated one costs more than it gives.
        factory = factory
            .cpus(1)
            .memory_bytes(512 << 20)
            .boot_deadline(std::time::Duration::from_secs(120));
    }
    factory
}

pub(crate) fn emulated() -> bool {
    std::env::var_os("SIXB_LAB_EMULATED").is_some()
}

/// Whether a check with this name is asked for.
fn chosen(words: &str, name: &str) -> bool {
    let (without, with): (Vec<&str>, Vec<&str>) = words
        .split(',')
        .filter(|word| !word.is_empty())
        .partition(|word| word.starts_with('!'));
    (with.is_empty() || with.iter().any(|word| name.contains(word)))
        && !without.iter().any(|word| &word[1..] == name)
}

#[tokio::main]
async fn main() -> ExitCode {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let shared: Arc<dyn SandboxFactory> = Arc::new(factory());
    if argument == PROBE {
        let probed = factory().image(Image::Bare).preflight().await;
        return match probed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    if argument == OWNER {
        Suite::own_a_sandbox(shared).await
    }
    // Disks of machines are whole GiB: a limit in bytes is refused, and the suite asserts that it is.
    let expect = Expectations::default()
        .network(NetworkEnforcement::PerOrigin)
        .limits(true, true, false);
    let owner = OwnerCommand::new(|| {
        let mut command =
            std::process::Command::new(std::env::current_exe().expect("this program"));
        command.arg(OWNER);
        command
    });
    let scale = if emulated() {
        Scale::EMULATED
    } else {
        Scale::FULL
    };
    let chosen = |name: &str| chosen(&argument, name);
    let suite = Suite::new(shared, expect)
        .owner(owner)
        .share_sandbox()
        .scale(scale);
    let outcome = suite.run(chosen).await;
    let (passed, failed) = lab::run(chosen).await;
    let (passed, failed) = (passed + outcome.passed, failed + outcome.failed.len());
    println!("{passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
