//! Runs steps and reports: one line per step on stdout, the log of a failed step on stderr, the total as the last line.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::counts::Counts;
use crate::job::Job;
use crate::steps::{STEPS, Step};

/// A failed step shows at most this many lines of its log: the end, where compilers and test runners put the reason.
const LOG_TAIL_LINES: usize = 200;

pub(crate) fn list() {
    for step in STEPS {
        println!("{:<20}{}", step.name, step.about);
    }
}

/// Runs the steps called `names` (all of them if empty), and goes on after a failure so that every failure is seen.
pub(crate) fn run(names: &[String]) -> Result<ExitCode> {
    let root = crate::facts::root()?;
    let chosen: Vec<&Step> = if names.is_empty() {
        STEPS.iter().collect()
    } else {
        names
            .iter()
            .filter_map(|name| STEPS.iter().find(|step| step.name == name))
            .collect()
    };

    let mut total = Counts::default();
    for step in chosen {
        total += run_step(step, Job::new(&root, step.name)?);
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    Ok(if total.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run_step(step: &Step, mut job: Job) -> Counts {
    let terminal = std::io::stderr().is_terminal();
    if terminal {
        eprint!("      {} …\r", step.name);
    }
    let started = Instant::now();
    let counts = match (step.run)(&mut job) {
        Ok(counts) => counts,
        Err(error) => {
            job.note(&format!("error: {error:#}"));
            Counts {
                failed: 1,
                ..Counts::default()
            }
        }
    };
    if terminal {
        eprint!("\x1b[K");
    }
    println!("{}", line(step, counts, started.elapsed()));
    if counts.failed > 0 {
        // A broken pipe must not hide the totals.
        let _ = writeln!(
            std::io::stderr(),
            "{}",
            indented(&job.log_tail(LOG_TAIL_LINES))
        );
    }
    counts
}

fn line(step: &Step, counts: Counts, took: Duration) -> String {
    let result = if counts.failed == 0 { "ok" } else { "FAIL" };
    let tests = if step.counts_tests {
        counts.to_string()
    } else {
        String::new()
    };
    format!(
        "{result:<6}{:<20}{:>7.1} s  {tests}",
        step.name,
        took.as_secs_f64()
    )
    .trim_end()
    .to_owned()
}

fn indented(log: &str) -> String {
    log.lines()
        .map(|line| format!("    | {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(counts_tests: bool) -> Step {
        Step {
            name: "sample",
            about: "",
            counts_tests,
            run: |_| Ok(Counts::default()),
        }
    }

    #[test]
    fn a_step_is_one_line_with_name_result_and_seconds() {
        let took = Duration::from_millis(12_340);
        let passed = Counts {
            passed: 3,
            failed: 0,
            ignored: 1,
        };
        let failed = Counts {
            passed: 3,
            failed: 2,
            ignored: 0,
        };
        assert_eq!(
            line(&step(false), passed, took),
            "ok    sample                 12.3 s"
        );
        assert_eq!(
            line(&step(true), passed, took),
            "ok    sample                 12.3 s  3 passed, 0 failed, 1 ignored"
        );
        assert_eq!(
            line(&step(true), failed, took),
            "FAIL  sample                 12.3 s  3 passed, 2 failed"
        );
    }
}
