//! The demo's own tool: a Rust function that a model can call.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sixb_tools::{AgentTool, Tool, ToolBuildError, ToolContext, ToolError, schemars};

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// Numbers with spaces or line ends between.
    numbers: String,
}

#[derive(Debug, PartialEq, Serialize)]
struct Summary {
    count: usize,
    min: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    max: f64,
    mean: f64,
}

pub(super) fn tool() -> Result<Arc<dyn Tool>, ToolBuildError> {
    AgentTool::new("percentiles")
        .description("Summarises numbers: least, median, 90th and 99th percentile, most and mean.")
        .run(|_cx: ToolContext, input: Input| async move { summarise(&input.numbers) })
}

fn summarise(text: &str) -> Result<Summary, ToolError> {
    let parse = |word: &str| match word.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(ToolError::invalid_input(format!(
            "numbers: {:?} is not a number",
            word.chars().take(40).collect::<String>()
        ))),
    };
    let mut numbers = text
        .split_whitespace()
        .map(parse)
        .collect::<Result<Vec<_>, _>>()?;
    numbers.sort_by(f64::total_cmp);
    let (Some(&min), Some(&max)) = (numbers.first(), numbers.last()) else {
        return Err(ToolError::invalid_input(
            "numbers: there are none; give at least one",
        ));
    };
    // Nearest rank: always one of the numbers given.
    let percentile = |percent: usize| numbers[(numbers.len() * percent).div_ceil(100).max(1) - 1];
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    Ok(Summary {
        count: numbers.len(),
        min,
        p50: percentile(50),
        p90: percentile(90),
        p99: percentile(99),
        max,
        mean: (mean * 100.0).round() / 100.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_numbers_that_were_given() {
        let hundred: String = (1..=100).rev().map(|n| format!("{n}\n")).collect();
        let summary = summarise(&hundred).expect("summary");
        assert_eq!((summary.p50, summary.p90, summary.p99), (50.0, 90.0, 99.0));
        assert_eq!(
            (summary.count, summary.min, summary.max, summary.mean),
            (100, 1.0, 100.0, 50.5)
        );
        assert_eq!(summarise("7").expect("one").p99, 7.0);
    }

    #[test]
    fn wrong_numbers_are_named() {
        for (text, part) in [("", "at least one"), ("1 two", "\"two\""), ("1 NaN", "NaN")] {
            assert!(
                summarise(text).expect_err(text).model_text().contains(part),
                "{text}"
            );
        }
    }
}
