//! `FileName`: one safe name, and how it is shortened where it becomes a file.

use std::{fmt, str::FromStr};

/// Longest name that Linux file systems take, in bytes.
const NAME_MAX: usize = 255;
/// Longest name that is kept as a label, in bytes.
const MAX: usize = 4 * 1024;
/// Longest extension that survives shortening, in bytes with its dot.
const MAX_EXTENSION: usize = 16;

/// The name of a file, without any folder: not blank, not `.` or `..`, no slash, backslash, control character or mark that
/// turns the direction of text (`invoice\u{202e}fdp.exe` would read `invoiceexe.pdf`).
///
/// ```
/// use sixb_artifacts::FileName;
/// let name: FileName = "größe.csv".parse()?;
/// assert_eq!(name.extension(), Some("csv"));
/// assert_eq!(name.materialised("0123456789ab-"), "0123456789ab-größe.csv");
/// assert!("../passwd".parse::<FileName>().is_err());
/// # Ok::<(), sixb_artifacts::FileNameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileName(String);

impl FileName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands behind the last dot, unless the dot begins the name.
    pub fn extension(&self) -> Option<&str> {
        match self.0.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() && !extension.is_empty() => Some(extension),
            _ => None,
        }
    }

    /// `prefix` and this name, at most 255 bytes: a longer name is shortened on a character boundary before its extension.
    ///
    /// `prefix` is ours, and short: of one over 200 bytes only the first 200 would be kept.
    pub fn materialised(&self, prefix: &str) -> String {
        let prefix = cut(prefix, 200);
        let room = NAME_MAX - prefix.len();
        if self.0.len() <= room {
            return format!("{prefix}{}", self.0);
        }
        let extension = match self.extension() {
            Some(extension) if extension.len() < MAX_EXTENSION => {
                &self.0[self.0.len() - extension.len() - 1..]
            }
            _ => "",
        };
        format!(
            "{prefix}{}{extension}",
            cut(&self.0, room - extension.len())
        )
    }
}

/// The longest start of `text` within `bytes` that splits no character.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Marks that reorder the text around them, and separators of lines.
fn is_deceptive(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

impl FromStr for FileName {
    type Err = FileNameError;

    fn from_str(name: &str) -> Result<Self, FileNameError> {
        let problem = if name.trim().is_empty() {
            "is blank"
        } else if name == "." || name == ".." {
            "names a folder"
        } else if name.contains(['/', '\\']) {
            "holds a slash or backslash: give the last part of the path only"
        } else if name
            .chars()
            .any(|character| character.is_control() || is_deceptive(character))
        {
            "holds a control character"
        } else if name.len() > MAX {
            "is over 4096 bytes"
        } else {
            return Ok(Self(name.to_owned()));
        };
        Err(FileNameError {
            name: name.chars().take(100).collect(),
            problem,
        })
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for FileName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Text that cannot name a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("file name {name:?} {problem}")]
pub struct FileNameError {
    name: String,
    problem: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_one_plain_component() {
        for (name, part) in [
            ("a.png", None),
            (" a b ", None),
            ("-rf", None),
            (".env", None),
            ("...", None),
            ("日本語.txt", None),
            ("a\u{200e}b", None),
            ("", Some("is blank")),
            (" \t", Some("is blank")),
            ("\u{3000}", Some("is blank")),
            (".", Some("names a folder")),
            ("..", Some("names a folder")),
            ("a/b", Some("slash")),
            ("a\\b", Some("backslash")),
            ("a\0", Some("control")),
            ("a\nb", Some("control")),
            ("a\u{7f}", Some("control")),
            ("a\u{85}", Some("control")),
            ("invoice\u{202e}fdp.exe", Some("control")),
        ] {
            let error = name
                .parse::<FileName>()
                .err()
                .map(|error| error.to_string());
            assert_eq!(error.is_some(), part.is_some(), "{name:?}: {error:?}");
            assert!(
                part.is_none_or(|part| error.expect("error").contains(part)),
                "{name:?}"
            );
        }
        assert!("x".repeat(4096).parse::<FileName>().is_ok());
        assert!("x".repeat(4097).parse::<FileName>().is_err());
    }

    #[test]
    fn a_long_name_is_shortened_before_its_extension() {
        let materialised = |name: &str| {
            name.parse::<FileName>()
                .expect("name")
                .materialised("0123456789ab-")
        };
        for (name, bytes, end) in [
            ("x".repeat(242), 255, "xx"),
            ("x".repeat(243), 255, "xx"),
            (format!("{}.png", "x".repeat(300)), 255, "x.png"),
            // 2-byte characters leave one byte unused.
            (format!("{}.png", "é".repeat(300)), 255, "é.png"),
            (format!("{}.jpeg", "é".repeat(300)), 254, "é.jpeg"),
            (
                format!("{}.{}", "x".repeat(300), "y".repeat(15)),
                255,
                "xyyyyyyyyyyyyyyy",
            ),
            (format!("a.{}", "y".repeat(300)), 255, "yy"),
            (format!(".{}", "y".repeat(300)), 255, "yy"),
        ] {
            let got = materialised(&name);
            assert_eq!(got.len(), bytes, "{got}");
            assert!(
                got.starts_with("0123456789ab-")
                    && got.replace('.', "").ends_with(&end.replace('.', "")),
                "{got}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_materialised_name_is_a_name_that_fits(name in "\\PC{1,400}", prefix in "[0-9a-f]{12}-") {
            if let Ok(name) = name.parse::<FileName>() {
                let file = name.materialised(&prefix);
                prop_assert!(file.len() <= 255 && file.starts_with(&prefix));
                prop_assert!(file.parse::<FileName>().is_ok());
                if name.as_str().len() + prefix.len() <= 255 {
                    prop_assert_eq!(&file[prefix.len()..], name.as_str());
                }
            }
        }
    }
}
