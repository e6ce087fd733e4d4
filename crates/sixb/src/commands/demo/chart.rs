//! The demo's image: a tool in Rust that draws a chart and keeps it as a file of the run.

use std::{io::Cursor, sync::Arc};

use image::{ImageFormat, Rgb, RgbImage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sixb_tools::{AgentTool, Tool, ToolBuildError, ToolContext, ToolError, schemars};

const HEIGHT: u32 = 240;
const BAR: u32 = 40;
const GAP: u32 = 10;
/// Bars that fit next to each other.
const MOST: usize = 40;
const PAPER: Rgb<u8> = Rgb([250, 250, 247]);
const INK: Rgb<u8> = Rgb([38, 84, 124]);

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// One bar a line: a label, a space and a number.
    rows: String,
    /// The name of the file, such as `chart.png`.
    file_name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Chart {
    /// In the sandbox.
    path: String,
    size_bytes: u64,
    bars: usize,
}

pub(super) fn tool() -> Result<Arc<dyn Tool>, ToolBuildError> {
    AgentTool::new("bar_chart")
        .description("Draws a bar chart as a PNG file in the sandbox, and gives its path: look at it with view_file.")
        .run(|cx: ToolContext, input: Input| async move {
            let numbers = numbers(&input.rows)?;
            let png = draw(&numbers)?;
            let kept = cx
                .artifacts()?
                .put(png, &input.file_name, Some("image/png"))
                .await?;
            Ok(Chart {
                path: kept.path,
                size_bytes: kept.file.size(),
                bars: numbers.len(),
            })
        })
}

fn numbers(rows: &str) -> Result<Vec<f64>, ToolError> {
    let number = |row: &str| {
        let number = row
            .split_whitespace()
            .nth(1)
            .and_then(|word| word.parse::<f64>().ok());
        number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| {
                ToolError::invalid_input(format!(
                    "rows: {row:?} is not a label and a number that is not negative"
                ))
            })
    };
    let numbers = rows
        .lines()
        .filter(|row| !row.trim().is_empty())
        .map(number)
        .collect::<Result<Vec<_>, _>>()?;
    match numbers.len() {
        1..=MOST => Ok(numbers),
        other => Err(ToolError::invalid_input(format!(
            "rows: there are {other}; give 1 to {MOST}"
        ))),
    }
}

fn draw(numbers: &[f64]) -> Result<Vec<u8>, ToolError> {
    let count = u32::try_from(numbers.len())?;
    let most = numbers.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut picture = RgbImage::from_pixel(count * (BAR + GAP) + GAP, HEIGHT, PAPER);
    for (at, number) in (0..).zip(numbers) {
        let height = (f64::from(HEIGHT - 2 * GAP) * number / most).round() as u32;
        let left = GAP + at * (BAR + GAP);
        for x in left..left + BAR {
            for y in HEIGHT - GAP - height..HEIGHT - GAP {
                picture.put_pixel(x, y, INK);
            }
        }
    }
    let mut png = Cursor::new(Vec::new());
    picture.write_to(&mut png, ImageFormat::Png)?;
    Ok(png.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_high_as_its_number() {
        let numbers = numbers("jan 10 ##\n\nfeb 5.0\nmar 0\n").expect("rows");
        assert_eq!(numbers, [10.0, 5.0, 0.0]);
        let png = draw(&numbers).expect("drawn");
        let picture = image::load_from_memory(&png).expect("PNG").to_rgb8();
        assert_eq!(picture.dimensions(), (160, 240));
        let height = |x: u32| {
            (0..HEIGHT)
                .filter(|y| *picture.get_pixel(x, *y) == INK)
                .count()
        };
        assert_eq!([height(30), height(80), height(130)], [220, 110, 0]);
    }

    #[test]
    fn rows_that_are_none_are_named() {
        for (rows, part) in [
            ("jan", "\"jan\""),
            ("jan -1", "\"jan -1\""),
            ("jan nan", "nan"),
            (" ", "there are 0"),
        ] {
            let error = numbers(rows).expect_err(rows).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
