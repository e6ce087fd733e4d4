//! The list of checks that every backend must pass. Feature `conformance`.
//!
//! A backend's test file is one function and one line:
//!
//! ```
//! use std::{path::PathBuf, sync::Arc};
//! use sixb_sandbox::{SandboxFactory, conformance::{Expectations, Suite}};
//! # fn my_factory(_: PathBuf) -> Arc<dyn SandboxFactory> { panic!("only compiled") }
//!
//! /// `state` is an empty folder for this one test, kept until its end.
//! async fn suite(state: PathBuf) -> Suite {
//!     Suite::new(my_factory(state), Expectations::default())
//! }
//!
//! sixb_sandbox::conformance_tests!(suite);
//! # fn main() {}
//! ```
//!
//! It makes one `#[tokio::test]` for each check, so that a runner lists each by name; the caller's crate needs `tokio`
//! with `macros` and `rt-multi-thread`. A runner without libtest calls [`Suite::run`].
//!
//! **Gaps are parameters.** What a backend cannot enforce is denied in [`Expectations`]; the check then asserts that the
//! backend *refuses* it with `IsolationUnavailable`, and that its [`Capabilities`] say the same. No
//! check is ever skipped.
//!
//! **Guests need** `bash`, the coreutils, `python3` (network, process limits) and, where origins are enforced, `curl`.
//!
//! **Secrets.** The environment of the test process is the host's secret: every value in it of eight bytes or more must
//! be absent inside. Set one of your own (`FAKE_API_KEY=sk-test-000`) where the process starts.

mod background;
mod environment;
mod escapes;
mod expect;
mod files;
mod guest;
mod host;
mod lifecycle;
mod limits;
mod list;
mod listing;
mod network;
mod output;
mod owner;
mod processes;
mod spool;
mod stdin;
mod streams;
mod workspace;

pub use expect::{Expectations, Scale};
pub use list::{Check, CheckFn, Outcome};
pub use owner::OwnerCommand;

#[doc(hidden)]
pub use list::run_in_test;

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::{Capabilities, CreateOptions, Sandbox, SandboxFactory};
use guest::Guest;

/// One backend under test.
#[derive(Debug)]
#[non_exhaustive]
pub struct Suite {
    /// Makes the sandboxes. Its state must be this suite's alone: checks ask [`SandboxFactory::list`] what is left.
    pub factory: Arc<dyn SandboxFactory>,
    /// What this backend enforces on this machine.
    pub expect: Expectations,
    /// How large the large sizes are.
    pub scale: Scale,
    /// Starts a process that makes a sandbox with the same factory and then waits to be killed: see [`OwnerCommand`].
    /// Set by [`conformance_tests!`](crate::conformance_tests) where it is `None`.
    pub owner: Option<OwnerCommand>,
    /// Checks that need only some sandbox share one, where a boot is slow.
    pub share_sandbox: bool,
    shared: OnceCell<Arc<dyn Sandbox>>,
}

impl Suite {
    /// Checks of `factory` at full scale, each in a sandbox of its own.
    pub fn new(factory: Arc<dyn SandboxFactory>, expect: Expectations) -> Self {
        Self {
            factory,
            expect,
            scale: Scale::FULL,
            owner: None,
            share_sandbox: false,
            shared: OnceCell::new(),
        }
    }

    /// Sets how large the large sizes are.
    pub fn scale(mut self, scale: Scale) -> Self {
        self.scale = scale;
        self
    }

    /// Sets what starts an owner to be killed.
    pub fn owner(mut self, owner: OwnerCommand) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Lets checks that need only some sandbox share one, where a boot is slow.
    pub fn share_sandbox(mut self) -> Self {
        self.share_sandbox = true;
        self
    }

    /// All checks, in the order in which they are best run.
    pub fn checks() -> &'static [Check] {
        list::CHECKS
    }

    /// Runs the checks whose names are `chosen`, one after the other, and prints a line for each to standard error. Ends
    /// with the sandboxes of the suite destroyed.
    pub async fn run(self, chosen: impl Fn(&str) -> bool) -> Outcome {
        list::run(self, chosen).await
    }

    /// A sandbox with default options: a new one, or the shared one. Checks use file names of their own.
    async fn guest(&self) -> Guest {
        if !self.share_sandbox {
            return self.guest_with(CreateOptions::default()).await;
        }
        let shared = self
            .shared
            .get_or_init(|| self.create(CreateOptions::default()))
            .await;
        Guest::shared(shared.clone(), self.scale)
    }

    /// A sandbox of its own.
    async fn guest_with(&self, options: CreateOptions) -> Guest {
        Guest::own(self.create(options).await, self.scale)
    }

    async fn create(&self, options: CreateOptions) -> Arc<dyn Sandbox> {
        let shown = format!("{options:?}");
        match self.factory.create(options).await {
            Ok(sandbox) => sandbox,
            Err(error) => panic!("create failed: {error}\nwith {shown}"),
        }
    }

    /// Asserts that `options` are refused with a remedy.
    async fn refuses(&self, what: &str, options: CreateOptions) {
        use crate::SandboxError::IsolationUnavailable;
        match self.factory.create(options).await {
            Err(IsolationUnavailable { remedy, .. }) => {
                assert!(
                    !remedy.is_empty(),
                    "{what} is refused without a remedy: say what the operator can do"
                );
            }
            Err(other) => panic!("{what} must be refused with IsolationUnavailable, not: {other}"),
            Ok(sandbox) => {
                let _ = sandbox.destroy().await;
                panic!(
                    "{what} cannot be enforced here (Expectations say), yet a sandbox was made: refuse it"
                );
            }
        }
    }
}

/// What differs between the claim of a backend and the expectation of its tests.
fn differences(expect: &Expectations, claimed: &Capabilities) -> Vec<String> {
    let limits = &claimed.limits;
    [
        (
            "network",
            format!("{:?}", expect.network),
            format!("{:?}", claimed.network),
        ),
        (
            "memory limit",
            expect.memory.to_string(),
            limits.memory.is_some().to_string(),
        ),
        (
            "pids limit",
            expect.pids.to_string(),
            limits.pids.is_some().to_string(),
        ),
        (
            "disk limit",
            expect.disk.to_string(),
            limits.disk.is_some().to_string(),
        ),
        (
            "background processes",
            expect.background.to_string(),
            claimed.background.to_string(),
        ),
        (
            "snapshots",
            expect.snapshots.to_string(),
            claimed.snapshots.to_string(),
        ),
    ]
    .into_iter()
    .filter(|(_, expect, claimed)| expect != claimed)
    .map(|(what, expect, claimed)| format!("{what}: expected {expect}, claimed {claimed}"))
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Enforcer, Isolation, NetworkEnforcement};

    #[test]
    fn names_are_unique_and_say_their_theme() {
        let names: BTreeSet<_> = Suite::checks().iter().map(|check| check.name).collect();
        assert_eq!(names.len(), Suite::checks().len());
        assert!(
            names.iter().all(|name| name.split("::").count() == 2),
            "{names:?}"
        );
    }

    #[test]
    fn a_claim_is_compared_both_ways() {
        let claim = |network, memory, background| {
            let mut claim = Capabilities::new(Isolation::Namespaces, "test", network);
            (claim.limits.memory, claim.background, claim.snapshots) = (memory, background, true);
            claim
        };
        let expect = Expectations::default();
        for (claimed, different) in [
            (claim(NetworkEnforcement::AllOrNothing, None, true), vec![]),
            (
                claim(NetworkEnforcement::PerOrigin, None, true),
                vec!["network: expected AllOrNothing, claimed PerOrigin"],
            ),
            (
                claim(NetworkEnforcement::AllOrNothing, Some(Enforcer::Vm), true),
                vec!["memory limit: expected false, claimed true"],
            ),
            (
                claim(NetworkEnforcement::AllOrNothing, None, false),
                vec!["background processes: expected true, claimed false"],
            ),
        ] {
            assert_eq!(differences(&expect, &claimed), different);
        }
    }

    #[test]
    fn a_scale_divides_sizes_and_stretches_time() {
        assert_eq!(
            (Scale::FULL.size(200), Scale::FULL.seconds(2.0).as_secs()),
            (200, 2)
        );
        assert_eq!(
            (
                Scale::EMULATED.size(200),
                Scale::EMULATED.seconds(2.0).as_secs(),
                Scale::EMULATED.passing(2.0).as_secs()
            ),
            (10, 20, 6)
        );
        assert!(Scale::EMULATED.to_string().contains("1/20"));
    }
}
