//! `SandboxPath`: the one way to name a file. Parse → normalise → confine.

use std::fmt;

use crate::{Result, SandboxError};

/// Longest path, in bytes (Linux `PATH_MAX`, less the working directory).
const MAX_PATH: usize = 3 * 1024;
/// Longest component, in bytes (Linux `NAME_MAX`).
const MAX_NAME: usize = 255;

/// A path below the working directory: relative, normalised, never leaving it lexically.
///
/// Names are bytes, as on Linux. Backends confine it once more against symbolic links when they open it, also between
/// check and use. The empty path is the working directory itself.
///
/// ```
/// use sixb_sandbox::SandboxPath;
/// assert_eq!(SandboxPath::parse("./a//b/../c")?.to_string(), "a/c");
/// assert!(SandboxPath::parse("a/../../etc").is_err());
/// assert!(SandboxPath::parse("/etc/passwd").is_err());
/// assert_eq!(SandboxPath::parse_guest("/workspace/a", "/workspace")?.to_string(), "a");
/// # Ok::<(), sixb_sandbox::SandboxError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SandboxPath(Vec<u8>);

impl SandboxPath {
    /// The working directory itself.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Parses a path relative to the working directory. `.` and double slashes are folded, `..` is resolved lexically.
    ///
    /// # Errors
    /// `PathEscape` for absolute paths and for `..` that leaves; `InvalidInput` for an empty path or a NUL byte;
    /// `LimitExceeded` for a path over 3 KiB or a name over 255 bytes.
    pub fn parse(path: impl AsRef<[u8]>) -> Result<Self> {
        let raw = path.as_ref();
        let shown = || String::from_utf8_lossy(raw).into_owned();
        if raw.is_empty() || raw.contains(&0) {
            return Err(SandboxError::InvalidInput {
                field: "path",
                value: shown(),
                reason: if raw.is_empty() {
                    "is empty"
                } else {
                    "holds a NUL byte"
                }
                .into(),
            });
        }
        if raw[0] == b'/' {
            return Err(SandboxError::PathEscape {
                path: shown(),
                reason: "is absolute".into(),
            });
        }
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in raw.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => {
                    if parts.pop().is_none() {
                        return Err(SandboxError::PathEscape {
                            path: shown(),
                            reason: "leaves the working directory".into(),
                        });
                    }
                }
                name if name.len() > MAX_NAME => {
                    return Err(SandboxError::LimitExceeded {
                        what: format!("file name {:?} (bytes)", String::from_utf8_lossy(name)),
                        limit: MAX_NAME as u64,
                        actual: Some(name.len() as u64),
                    });
                }
                name => parts.push(name),
            }
        }
        let joined = parts.join(&b'/');
        if joined.len() > MAX_PATH {
            return Err(SandboxError::LimitExceeded {
                what: "path length (bytes)".into(),
                limit: MAX_PATH as u64,
                actual: Some(joined.len() as u64),
            });
        }
        Ok(Self(joined))
    }

    /// Parses a relative path, or an absolute guest path inside `working_directory`.
    pub fn parse_guest(path: impl AsRef<[u8]>, working_directory: &str) -> Result<Self> {
        let raw = path.as_ref();
        let inside = raw.strip_prefix(working_directory.trim_end_matches('/').as_bytes());
        match inside {
            Some([]) => Ok(Self::root()),
            Some([b'/', rest @ ..]) => match rest.iter().position(|byte| *byte != b'/') {
                Some(start) => Self::parse(&rest[start..]),
                None => Ok(Self::root()),
            },
            _ => Self::parse(raw),
        }
    }

    /// The path as bytes, without a leading slash; empty for the working directory.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as text, where it is UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Whether this is the working directory itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The components, first to last.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty())
    }

    /// The directory it lies in; `None` for the working directory.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let end = self.0.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        Some(Self(self.0[..end].to_vec()))
    }

    /// The last component; `None` for the working directory.
    pub fn file_name(&self) -> Option<&[u8]> {
        self.components().next_back()
    }

    /// This path with `rest` below it; `rest` is parsed and confined as a whole.
    pub fn join(&self, rest: impl AsRef<[u8]>) -> Result<Self> {
        if self.is_root() {
            return Self::parse(rest);
        }
        let below = Self::parse(rest)?;
        Self::parse([&self.0[..], &below.0].join(&b'/'))
    }

    /// Whether it is `other` or lies below it.
    pub fn starts_with(&self, other: &Self) -> bool {
        other.is_root()
            || (self.0.starts_with(&other.0)
                && matches!(self.0.get(other.0.len()), None | Some(b'/')))
    }
}

impl fmt::Display for SandboxPath {
    /// The path as text; `.` for the working directory; bytes that are not UTF-8 are replaced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_str(".");
        }
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for SandboxPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(input: &str, expect: Option<&str>) {
        let got = SandboxPath::parse(input).ok().map(|path| path.to_string());
        assert_eq!(got.as_deref(), expect, "{input:?}");
    }

    #[test]
    fn case_44_dots_are_components_not_text() {
        for (input, expect) in [
            ("a", Some("a")),
            ("./a/./b/", Some("a/b")),
            ("a/../b", Some("b")),
            (".", Some(".")),
            ("a/..", Some(".")),
            ("..a/b..", Some("..a/b..")),
            ("-rf", Some("-rf")),
            ("é/\n", Some("é/\n")),
            ("..", None),
            ("a/..//../b", None),
            ("../etc/passwd", None),
            ("/etc/passwd", None),
            ("", None),
            ("a\0b", None),
        ] {
            check(input, expect);
        }
    }

    #[test]
    fn names_and_paths_are_bounded() {
        assert!(SandboxPath::parse("x".repeat(255)).is_ok());
        assert!(SandboxPath::parse("x".repeat(256)).is_err());
        assert!(SandboxPath::parse("a/".repeat(2000)).is_err());
    }

    #[test]
    fn guest_paths_match_whole_components() {
        let parse = |path: &str| {
            SandboxPath::parse_guest(path, "/workspace")
                .ok()
                .map(|path| path.to_string())
        };
        assert_eq!(parse("/workspace/a/b").as_deref(), Some("a/b"));
        assert_eq!(parse("/workspace").as_deref(), Some("."));
        assert_eq!(parse("/workspace//a").as_deref(), Some("a"));
        assert_eq!(parse("/workspace-evil/a"), None);
        assert_eq!(parse("/workspace/../etc"), None);
        assert_eq!(parse("a").as_deref(), Some("a"));
    }

    proptest! {
        #[test]
        fn parsing_is_idempotent_and_confined(input in "[a./ -]{1,40}") {
            if let Ok(path) = SandboxPath::parse(&input) {
                prop_assert!(path.components().all(|part| part != b".." && part != b"."));
                if !path.is_root() {
                    prop_assert_eq!(SandboxPath::parse(path.as_bytes()).expect("again"), path);
                }
            }
        }
    }
}
