//! The lines that `cargo xtask escape` collects and prints: one for each row, tabs between the fields.

use std::{fs::OpenOptions, io::Write};

use crate::row::Row;

/// Names the file that gets the lines. Nobody sets it for an ordinary test run.
const FILE: &str = "SIXB_ESCAPE_REPORT";

/// Whether somebody collects.
pub(crate) fn wanted() -> bool {
    std::env::var_os(FILE).is_some()
}

/// Appends the line of one row.
pub(crate) fn write(row: &Row, seen: &str, oracle: Option<&str>) {
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let held = if row.expect.contains(&seen) {
        "held"
    } else {
        "BROKEN"
    };
    let fields = [
        row.name,
        row.tries,
        &row.expect.join(" or "),
        seen,
        held,
        oracle.unwrap_or("-"),
    ];
    let line = fields
        .map(|field| field.replace(['\t', '\n'], " "))
        .join("\t")
        + "\n";
    // One write: tests append at the same time.
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("a line of the report");
}
