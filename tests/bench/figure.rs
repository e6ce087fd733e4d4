//! One line of the report: what was measured, against what, and what was promised.

use std::time::Duration;

/// What a figure must reach.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// At most this many times the floor.
    AtMost(f64),
    /// At least this many times the floor.
    AtLeast(f64),
    /// At most this, in the figure's unit.
    Value(f64),
}

/// Prints figures as they come and counts them.
pub(crate) struct Report {
    filter: Vec<String>,
    met: usize,
    short: usize,
}

impl Report {
    pub(crate) fn new(filter: Vec<String>) -> Self {
        println!(
            "{:<52} {:>12} {:>12} {:>7}  goal",
            "figure", "ours", "floor", "ratio"
        );
        Self {
            filter,
            met: 0,
            short: 0,
        }
    }

    /// Whether a group is asked for.
    pub(crate) fn wants(&self, group: &str) -> bool {
        self.filter.is_empty()
            || self
                .filter
                .iter()
                .any(|filter| group.contains(filter.as_str()))
    }

    /// Two numbers in the same unit, and the median of their ratios.
    pub(crate) fn ratio(&mut self, name: &str, unit: &str, measured: Paired, goal: Goal) {
        let Paired { ours, floor, ratio } = measured;
        let (met, wanted) = match goal {
            Goal::AtMost(most) => (ratio <= most, format!("<= {most}x")),
            Goal::AtLeast(least) => (ratio >= least, format!(">= {least}x")),
            Goal::Value(most) => (ours <= most, format!("<= {most} {unit}")),
        };
        self.line(
            name,
            &format!("{ours:.2} {unit}"),
            &format!("{floor:.2} {unit}"),
            &format!("{ratio:.2}"),
            &wanted,
            met,
        );
    }

    /// A number with a goal of its own.
    pub(crate) fn value(&mut self, name: &str, unit: &str, ours: f64, most: f64) {
        self.line(
            name,
            &format!("{ours:.2} {unit}"),
            "-",
            "-",
            &format!("<= {most} {unit}"),
            ours <= most,
        );
    }

    /// A figure that holds when either the ratio or the difference to the floor does.
    pub(crate) fn ratio_or_more(&mut self, name: &str, measured: Paired, most: f64, more_ms: f64) {
        let Paired { ours, floor, ratio } = measured;
        let met = ratio <= most || ours - floor <= more_ms;
        self.line(
            name,
            &format!("{ours:.2} ms"),
            &format!("{floor:.2} ms"),
            &format!("{ratio:.2}"),
            &format!("<= {most}x or + {more_ms} ms"),
            met,
        );
    }

    fn line(&mut self, name: &str, ours: &str, floor: &str, ratio: &str, goal: &str, met: bool) {
        if met {
            self.met += 1
        } else {
            self.short += 1
        }
        let verdict = if met { "met" } else { "SHORT" };
        println!("{name:<52} {ours:>12} {floor:>12} {ratio:>7}  {goal:<18} {verdict}");
    }

    pub(crate) fn end(self) {
        println!("{} figures met, {} short", self.met, self.short);
    }
}

/// Medians of a subject and its floor.
pub(crate) struct Paired {
    pub(crate) ours: f64,
    pub(crate) floor: f64,
    pub(crate) ratio: f64,
}

impl Paired {
    /// From rounds of (ours, floor).
    pub(crate) fn of(rounds: &[(f64, f64)]) -> Self {
        Self {
            ours: median(rounds.iter().map(|round| round.0)),
            floor: median(rounds.iter().map(|round| round.1)),
            ratio: median(rounds.iter().map(|round| round.0 / round.1)),
        }
    }
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
