//! One row of the table, and how it is judged.

use std::{future::Future, pin::Pin};

use crate::{
    arena::Arena,
    oracle,
    program::{self, Program},
    report,
};

/// One attempt.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// What is tried, for people.
    pub(crate) tries: &'static str,
    pub(crate) stage: Stage,
    /// The verdicts with which the sandbox held. More than one where kernels differ.
    pub(crate) expect: &'static [&'static str],
}

/// Where an attempt takes place.
pub(crate) enum Stage {
    /// A program inside, alone.
    Inside(Program),
    /// A scene that needs the host's side, too.
    Scene(for<'a> fn(&'a Arena) -> Seen<'a>),
}

/// The verdict of a scene.
pub(crate) type Seen<'a> = Pin<Box<dyn Future<Output = String> + Send + 'a>>;

/// Makes the attempt; panics if the sandbox did not hold.
pub(crate) fn check(row: &Row) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    let (seen, oracle) = runtime.block_on(async {
        let arena = Arena::new();
        match &row.stage {
            Stage::Inside(program) => {
                let seen = program::attack(&arena, program).await;
                let oracle = if report::wanted() {
                    oracle::attack(&arena, program).await
                } else {
                    None
                };
                (arena.bait.judge(seen), oracle)
            }
            Stage::Scene(scene) => (arena.bait.judge(scene(&arena).await), None),
        }
    });
    report::write(row, &seen, oracle.as_deref());
    assert!(
        row.expect.contains(&seen.as_str()),
        "BROKEN: {}\n  tried: {}\n  expected: {}\n  seen: {seen}",
        row.name,
        row.tries,
        row.expect.join(" or ")
    );
}
