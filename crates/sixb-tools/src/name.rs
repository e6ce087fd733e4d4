//! The name of a tool: parsed once, never checked again.

use std::{fmt, str::FromStr};

/// Names that only the tools of this crate may carry.
pub const RESERVED_NAMES: [&str; 3] = ["bash", "read", "view_file"];

/// Longest name, in bytes: what every model provider takes.
const MAX_LEN: usize = 64;

/// A tool's name: a letter or `_`, then up to 63 of `A–Z a–z 0–9 _ -`.
///
/// ```
/// use sixb_tools::ToolName;
/// assert_eq!("search_web".parse::<ToolName>()?.as_str(), "search_web");
/// assert!("7zip".parse::<ToolName>().is_err());
/// # Ok::<(), sixb_tools::InvalidToolName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(String);

impl ToolName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is one of [`RESERVED_NAMES`].
    pub fn is_reserved(&self) -> bool {
        RESERVED_NAMES.contains(&self.as_str())
    }
}

/// A text that is no tool name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "tool name {name:?} {reason}: use a letter or `_`, then up to 63 letters, digits, `_` or `-`"
)]
pub struct InvalidToolName {
    name: String,
    reason: &'static str,
}

impl FromStr for ToolName {
    type Err = InvalidToolName;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let first = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        let rest = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let reason = match name.as_bytes() {
            [] => "is empty",
            bytes if bytes.len() > MAX_LEN => "is longer than 64 characters",
            [start, ..] if !first(start) => "starts with a wrong character",
            bytes if !bytes.iter().all(rest) => "has a wrong character",
            _ => return Ok(Self(name.to_owned())),
        };
        Err(InvalidToolName {
            name: name.chars().take(80).collect(),
            reason,
        })
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_one_pattern() {
        let longest = "a".repeat(64);
        for good in ["a", "_", "A-b_9", longest.as_str()] {
            assert!(good.parse::<ToolName>().is_ok(), "{good:?}");
        }
        let too_long = "a".repeat(65);
        for bad in ["", "9a", "-a", "a b", "a.b", "é", "a\n", too_long.as_str()] {
            assert!(bad.parse::<ToolName>().is_err(), "{bad:?}");
        }
    }
}
