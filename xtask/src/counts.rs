//! How many checks passed and failed, and how to read that from the summaries that test runners print.

use std::fmt;
use std::ops::AddAssign;

/// A step without tests counts as one check; a step with tests counts each test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl Counts {
    /// The count of a step that runs no tests.
    pub(crate) fn check(passed: bool) -> Self {
        Self {
            passed: u64::from(passed),
            failed: u64::from(!passed),
            ignored: 0,
        }
    }

    /// The count of a test run that printed `output`. A run that failed without naming a failed test (it did not build, it
    /// crashed, it timed out) and a run of no tests at all count as one failure, so neither can pass unseen.
    pub(crate) fn tests(success: bool, output: &str) -> Self {
        // nextest shows what a failed test printed, and that ends in a summary of libtest: it must not count twice.
        let mut counts = nextest(output).unwrap_or_else(|| libtest(output));
        if counts.failed == 0 && (!success || counts.passed == 0) {
            counts.failed = 1;
        }
        counts
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.ignored > 0 {
            write!(f, ", {} ignored", self.ignored)?;
        }
        Ok(())
    }
}

/// Sums the lines `test result: ok. 3 passed; 0 failed; 1 ignored; …`, one for each test binary.
fn libtest(output: &str) -> Counts {
    let mut sum = Counts::default();
    for line in output.lines() {
        if let Some((_, counts)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        {
            sum += words(counts.split(';'));
        }
    }
    sum
}

/// Reads the line `Summary [ 1.2s] 4 tests run: 2 passed (1 slow), 1 failed, 1 timed out, 1 skipped`, the last of a run.
fn nextest(output: &str) -> Option<Counts> {
    let is_summary = |line: &&str| line.trim_start().starts_with("Summary [");
    let summary = output.lines().rfind(is_summary)?;
    let (_, counts) = summary.split_once(" run: ")?;
    Some(words(counts.split(',')))
}

/// Adds up parts such as `3 passed` and `1 timed out`.
fn words<'a>(parts: impl Iterator<Item = &'a str>) -> Counts {
    let mut counts = Counts::default();
    for part in parts {
        let Some((number, what)) = part.trim().split_once(' ') else {
            continue;
        };
        let Ok(number) = number.parse::<u64>() else {
            continue;
        };
        match what.split(" (").next().unwrap_or(what) {
            "passed" => counts.passed += number,
            "failed" | "exec failed" | "timed out" => counts.failed += number,
            "ignored" | "skipped" => counts.ignored += number,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(success: bool, output: &str, [passed, failed, ignored]: [u64; 3]) {
        assert_eq!(
            Counts::tests(success, output),
            Counts {
                passed,
                failed,
                ignored
            },
            "success: {success}, output: {output:?}"
        );
    }

    #[test]
    fn summaries_of_libtest_are_added_up() {
        let ok = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n";
        let bad = "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.01s\n";
        check(true, ok, [3, 0, 1]);
        check(true, &[ok, ok].concat(), [6, 0, 2]);
        check(
            false,
            &[ok, "error: test failed, to rerun pass `-p x`\n", bad].concat(),
            [8, 2, 1],
        );
    }

    #[test]
    fn summaries_of_nextest_are_read() {
        check(
            true,
            "     Summary [   0.4s] 7 tests run: 7 passed, 2 skipped\n",
            [7, 0, 2],
        );
        check(
            true,
            "     Summary [  61.2s] 3 tests run: 3 passed (2 slow, 1 leaky), 0 skipped\n",
            [3, 0, 0],
        );
        check(
            false,
            "     Summary [   9.0s] 1 test run: 0 passed, 1 exec failed, 0 skipped\n",
            [0, 1, 0],
        );
        check(
            false,
            "  Summary [ 9s] 6 tests run: 3 passed (1 slow), 2 failed (1 due to being leaky), 1 timed out, 0 skipped",
            [3, 3, 0],
        );
        check(
            false,
            "  Summary [ 9s] 2/4 tests run: 1 passed, 1 failed, 0 skipped",
            [1, 1, 0],
        );
        check(
            false,
            "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out\n  \
             Summary [ 9s] 2 tests run: 1 passed, 1 failed, 0 skipped",
            [1, 1, 0],
        );
    }

    #[test]
    fn a_run_without_evidence_of_success_is_a_failure() {
        check(true, "", [0, 1, 0]);
        check(
            true,
            "test result: ok. 0 passed; 0 failed; 4 ignored; 0 measured; 0 filtered out\n",
            [0, 1, 4],
        );
        check(false, "error: could not compile `sixb`\n", [0, 1, 0]);
        check(
            false,
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
            [3, 1, 0],
        );
    }
}
