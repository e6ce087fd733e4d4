//! Data for whoever called: lines that are out at once.

use std::io::{self, Write};

use anyhow::Result;
use serde::Serialize;

/// Writes a line.
pub(crate) fn line(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}

/// Writes a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string(value)?)
}
