//! `cargo xtask escape`: attacks the local sandbox and prints what was tried, expected and seen.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;

use crate::job::Job;
use crate::steps::escape::{self, Attack};

/// Longest verdict that is printed whole.
const WIDEST: usize = 28;

/// Prints a line for each attempt, and the total last. Fails if one is broken.
pub(crate) fn run() -> Result<ExitCode> {
    let root = crate::facts::root()?;
    let mut job = Job::new(&root, "escape-table")?;
    let attacks = escape::attack(&mut job, true)?;
    let (table, broken) = table(&attacks);
    print!("{table}");
    let failed: u64 = attacks.iter().map(|attack| attack.counts.failed).sum();
    if broken > 0 || failed > 0 {
        eprintln!("{}", job.log_tail(100));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// One attempt: what all runs agree on, and what each saw.
#[derive(Default)]
struct Line<'a> {
    tries: &'a str,
    expected: &'a str,
    seen: BTreeMap<&'a str, &'a str>,
    broken: bool,
    oracle: &'a str,
}

fn table(attacks: &[Attack]) -> (String, usize) {
    let mut lines: BTreeMap<&str, Line<'_>> = BTreeMap::new();
    for attack in attacks {
        for fields in attack.report.lines().map(|line| line.split('\t')) {
            let [name, tries, expected, seen, held, oracle] = fields.collect::<Vec<_>>()[..] else {
                continue;
            };
            let line = lines.entry(name).or_default();
            (line.tries, line.expected, line.oracle) = (tries, expected, oracle);
            line.seen.insert(attack.user, seen);
            line.broken |= held != "held";
        }
    }
    let users: Vec<&str> = attacks.iter().map(|attack| attack.user).collect();
    let mut rows = vec![row("attempt", "expected", &users, "", "bwrap", "tried")];
    for (name, line) in &lines {
        let seen: Vec<&str> = users
            .iter()
            .map(|user| line.seen.get(user).copied().unwrap_or("did not end"))
            .collect();
        let missing = line.seen.len() < users.len();
        let held = if line.broken || missing {
            "BROKEN"
        } else {
            "held"
        };
        rows.push(row(
            name,
            line.expected,
            &seen,
            held,
            line.oracle,
            line.tries,
        ));
    }
    let broken = rows.iter().filter(|row| row.contains(" BROKEN ")).count();
    // Where ours holds and bwrap, whose profile has no system call filter, lets the same through.
    let open = lines
        .values()
        .filter(|line| line.oracle.starts_with("reached") && !line.expected.contains("reached"));
    let summary = format!(
        "{} attempts, {broken} broken; bwrap lets {} of them through\n",
        lines.len(),
        open.count()
    );
    (rows.concat() + &summary, broken)
}

fn row(name: &str, expected: &str, seen: &[&str], held: &str, oracle: &str, tried: &str) -> String {
    let seen: String = seen
        .iter()
        .map(|seen| format!("{:<30}", cut(seen)))
        .collect();
    format!(
        "{name:<36}{:<30}{seen}{held:<8}{:<30}{tried}\n",
        cut(expected),
        cut(oracle)
    )
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(WIDEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;

    fn attack(user: &'static str, report: &str) -> Attack {
        Attack {
            user,
            counts: Counts::default(),
            report: report.to_owned(),
        }
    }

    #[test]
    fn an_attempt_is_one_line_and_broken_if_one_run_broke_or_never_ended() {
        let root = "mount\tmount it\tEPERM\tEPERM\theld\tEPERM\nbpf\tprograms\tEPERM\tEPERM\theld\treached\n";
        let user = "mount\tmount it\tEPERM\treached\tBROKEN\t-\n";
        let (text, broken) = table(&[attack("root", root), attack("unprivileged", user)]);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<_> = text.lines().map(words).collect();
        assert_eq!(
            lines,
            [
                "attempt expected root unprivileged bwrap tried",
                "bpf EPERM EPERM did not end BROKEN reached programs",
                "mount EPERM EPERM reached BROKEN - mount it",
                "2 attempts, 2 broken; bwrap lets 1 of them through",
            ]
        );
        assert_eq!(broken, 2);
    }

    #[test]
    fn long_verdicts_are_cut_between_characters() {
        assert_eq!(cut("EPERM"), "EPERM");
        assert_eq!(cut(&"ü".repeat(40)).chars().count(), WIDEST + 1);
    }
}
