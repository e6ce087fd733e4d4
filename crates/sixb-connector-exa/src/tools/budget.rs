//! What a run may spend on the web.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sixb_tools::{ToolError, ToolErrorKind};

use crate::ExaError;

/// Runs that are remembered; those that asked longest ago make room.
const MAX_RUNS: usize = 4_096;
/// What a request counts as whose cost is not told, in US dollars: because Exa said nothing, or the call ended early.
const ASSUMED_DOLLARS: f64 = 0.01;

/// How many requests each run may make, and what they may cost together. Clones share what is spent, so tools with clones of
/// one budget spend from one purse.
///
/// Exa tells the cost afterwards: until then, and where it does not tell, a request counts as 0.01 dollars. One that Exa
/// answered with an error counts as nothing, and so does one that was never sent.
///
/// ```
/// use sixb_connector_exa::WebBudget;
/// let budget = WebBudget::default().max_calls(20).max_cost_dollars(0.25);
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct WebBudget {
    max_calls: Option<u32>,
    max_dollars: Option<f64>,
    spent: Arc<Mutex<Spent>>,
}

#[derive(Debug, Default)]
struct Spent {
    runs: HashMap<String, Purse>,
    clock: u64,
}

#[derive(Debug, Default)]
struct Purse {
    calls: u32,
    dollars: f64,
    /// Requests under way, whose cost is assumed.
    open: u32,
    used: u64,
}

/// A request under way. Dropped without a word, it counts as one whose cost is not told.
#[derive(Debug)]
pub(super) struct Charge {
    spent: Arc<Mutex<Spent>>,
    run: String,
    dollars: f64,
}

impl WebBudget {
    /// Sets how many requests a run may make. Default: any number.
    pub fn max_calls(mut self, calls: u32) -> Self {
        self.max_calls = Some(calls);
        self
    }

    /// Sets what the requests of a run may cost, in US dollars. Default: anything.
    pub fn max_cost_dollars(mut self, dollars: f64) -> Self {
        self.max_dollars = Some(dollars);
        self
    }

    /// Whether the amount of money makes sense.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let dollars = self.max_dollars?;
        (!dollars.is_finite() || dollars < 0.0).then_some("is no amount of money")
    }

    /// Counts a request of the run.
    pub(super) fn begin(&self, run: &str) -> Result<Charge, ToolError> {
        let mut spent = lock(&self.spent);
        spent.clock += 1;
        let now = spent.clock;
        if !spent.runs.contains_key(run) && spent.runs.len() >= MAX_RUNS {
            let oldest = spent.runs.iter().min_by_key(|(_, purse)| purse.used);
            if let Some(oldest) = oldest.map(|(run, _)| run.clone()) {
                spent.runs.remove(&oldest);
            }
        }
        let purse = spent.runs.entry(run.to_owned()).or_default();
        purse.used = now;
        if self.max_calls.is_some_and(|most| purse.calls >= most) {
            return Err(used_up(
                "This run has made all the web requests it may make.",
            ));
        }
        let dollars = purse.dollars + f64::from(purse.open) * ASSUMED_DOLLARS;
        if self.max_dollars.is_some_and(|most| dollars >= most) {
            return Err(used_up(
                "This run has spent all it may spend on web requests.",
            ));
        }
        purse.calls += 1;
        purse.open += 1;
        Ok(Charge {
            spent: self.spent.clone(),
            run: run.to_owned(),
            dollars: ASSUMED_DOLLARS,
        })
    }
}

impl Charge {
    /// What the request cost, as Exa tells it.
    pub(super) fn cost(&mut self, dollars: Option<f64>) {
        self.dollars = dollars
            .filter(|dollars| *dollars >= 0.0)
            .unwrap_or(ASSUMED_DOLLARS);
    }

    /// The request gave no answer. What the provider refused it does not charge for; what was cut off it may.
    pub(super) fn failed(&mut self, error: &ToolError) {
        let refused = error
            .source()
            .and_then(|source| source.downcast_ref::<ExaError>())
            .is_some_and(|error| error.api().is_some() || error.is_before_sending());
        if refused {
            self.dollars = 0.0;
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(purse) = lock(&self.spent).runs.get_mut(&self.run) {
            purse.dollars += self.dollars;
            purse.open = purse.open.saturating_sub(1);
        }
    }
}

fn used_up(text: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::LimitExceeded,
        format!("{text} Answer with what is known."),
    )
}

fn lock(spent: &Mutex<Spent>) -> MutexGuard<'_, Spent> {
    spent.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_for_each_run() {
        let budget = WebBudget::default().max_calls(2);
        let other = budget.clone();
        assert!(budget.begin("a").is_ok() && other.begin("a").is_ok());
        let error = budget.begin("a").expect_err("used up");
        assert_eq!(error.kind(), ToolErrorKind::LimitExceeded);
        assert!(budget.begin("b").is_ok());
    }

    #[test]
    fn money_is_counted_when_it_is_known() {
        let budget = WebBudget::default().max_cost_dollars(0.02);
        let told = |dollars| {
            if let Ok(mut charge) = budget.begin("a") {
                charge.cost(dollars);
            }
        };
        told(Some(0.005));
        told(Some(-7.0));
        assert!(
            budget.begin("a").is_ok(),
            "0.015, and 0.01 for a call that ended early"
        );
        assert!(budget.begin("a").is_err());
        assert!(
            WebBudget::default()
                .max_cost_dollars(f64::NAN)
                .problem()
                .is_some()
        );
    }

    #[test]
    fn requests_under_way_count_as_if_they_were_paid() {
        let budget = WebBudget::default().max_cost_dollars(0.02);
        let first = budget.begin("a").expect("nothing is spent");
        let second = budget.begin("a").expect("0.01 is under way");
        let error = budget.begin("a").expect_err("0.02 are under way");
        assert_eq!(error.kind(), ToolErrorKind::LimitExceeded);
        for mut charge in [first, second] {
            charge.cost(Some(0.001));
        }
        assert!(budget.begin("a").is_ok(), "they cost less");
    }

    #[test]
    fn what_was_not_sent_costs_nothing() {
        let key = || ExaError::Key {
            problem: "none".into(),
            source: None,
        };
        let timeout = || ExaError::Timeout {
            after: std::time::Duration::ZERO,
        };
        let spent = |error: ExaError| {
            let budget = WebBudget::default().max_cost_dollars(0.005);
            let mut charge = budget.begin("a").expect("nothing is spent");
            charge.failed(&crate::tools::refusals::of(error));
            drop(charge);
            budget.begin("a").is_err()
        };
        assert!(!spent(key()) && !spent(ExaError::Request { problem: "none" }));
        assert!(spent(timeout()), "it may have been answered");
    }

    #[test]
    fn old_runs_make_room() {
        let budget = WebBudget::default().max_calls(1);
        for run in 0..MAX_RUNS + 10 {
            assert!(budget.begin(&run.to_string()).is_ok());
        }
        assert_eq!(lock(&budget.spent).runs.len(), MAX_RUNS);
        assert!(budget.begin(&(MAX_RUNS + 9).to_string()).is_err());
    }
}
