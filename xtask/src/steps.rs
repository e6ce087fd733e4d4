//! The steps of `cargo xtask ci`, in the order they run: cheap checks first, then what builds and what runs.

mod build;
pub(crate) mod escape;
mod publish;
mod rules;
pub(crate) mod setup;
mod tests;
mod unprivileged;

use anyhow::Result;

use crate::counts::Counts;
use crate::job::Job;

pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Whether the step counts each test it runs, or itself as one check.
    pub(crate) counts_tests: bool,
    pub(crate) run: fn(&mut Job) -> Result<Counts>,
}

pub(crate) const STEPS: &[Step] = &[
    check(
        "setup",
        "Debian packages are installed, or the command that installs them is printed",
        setup::run,
    ),
    check("fmt", "cargo fmt --check", build::fmt),
    check(
        "layers",
        "crates depend, reach the host and lie in folders as docs/architecture.md says",
        rules::layers,
    ),
    check(
        "licences",
        "every crate in the tree has a licence that deny.toml allows",
        rules::licences,
    ),
    check(
        "clippy",
        "clippy on everything with all features, warnings denied",
        build::clippy,
    ),
    check(
        "features",
        "every crate builds alone, without default features and with each feature",
        build::features,
    ),
    check(
        "build-tests",
        "build every test with all features",
        tests::build,
    ),
    tests(
        "tests-root",
        "run every test as the current user (root in CI)",
        tests::run,
    ),
    tests(
        "tests-unprivileged",
        "run the tests of the sandbox, the command line and tests/ as user 65534",
        unprivileged::run,
    ),
    tests(
        "escape",
        "attack the local sandbox from inside, as the current user and as user 65534",
        escape::run,
    ),
    tests(
        "doctests",
        "run the examples in the docs and READMEs",
        tests::doctests,
    ),
    check("docs", "cargo doc, warnings denied", build::docs),
    check(
        "publish",
        "cargo publish --workspace --dry-run",
        publish::run,
    ),
];

const fn check(
    name: &'static str,
    about: &'static str,
    run: fn(&mut Job) -> Result<Counts>,
) -> Step {
    Step {
        name,
        about,
        counts_tests: false,
        run,
    }
}

const fn tests(
    name: &'static str,
    about: &'static str,
    run: fn(&mut Job) -> Result<Counts>,
) -> Step {
    Step {
        name,
        about,
        counts_tests: true,
        run,
    }
}

pub(crate) fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}
