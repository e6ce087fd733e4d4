//! Which files of the output directory are taken, and why the others are not. Pure.

use std::collections::HashSet;

use sixb_artifacts::FileName;
use sixb_sandbox::{DirEntry, FileKind, SandboxPath};

use crate::{run::Diagnostic, workspace::ForeignOutputs};

/// Files that are saved.
const MAX_SAVED: usize = 20;
/// Entries that are looked at.
const MAX_INSPECTED: usize = 100;
/// One file, in bytes.
const MAX_FILE: u64 = 25 << 20;
/// All files together, in bytes.
const MAX_TOTAL: u64 = 100 << 20;

/// A file to save.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Take {
    /// In the sandbox.
    pub(super) source: SandboxPath,
    pub(super) relative: Relative,
    pub(super) size: u64,
    pub(super) version: u64,
}

/// A path below the output directory: components that are plain names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Relative(pub(super) Vec<Vec<u8>>);

impl Relative {
    /// For people.
    pub(super) fn shown(&self) -> String {
        shown(&self.0.join(&b'/'))
    }
}

/// The name under which a file that a tool made is saved: its own, or with a number where that is taken.
pub(super) fn free_name(name: &FileName, taken: &mut HashSet<Relative>) -> Relative {
    let name = name.materialised("");
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (name.as_str(), String::new()),
    };
    let mut free = Relative(vec![name.clone().into_bytes()]);
    let mut number = 2;
    while !taken.insert(free.clone()) {
        // Long names lose of their stem what the number needs.
        let most = stem.floor_char_boundary(stem.len().min(240 - extension.len().min(100)));
        let numbered = format!("{}-{number}{extension}", &stem[..most]);
        free = Relative(vec![numbered.into_bytes()]);
        number += 1;
    }
    free
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) take: Vec<Take>,
    pub(super) left_out: Vec<Diagnostic>,
}

/// Decides on a listing of the output directory `root`.
pub(super) fn plan(
    mut entries: Vec<DirEntry>,
    root: &SandboxPath,
    foreign: &ForeignOutputs,
) -> Plan {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let mine = |entry: &DirEntry| {
        entry.stat.kind != FileKind::Directory
            && entry.path.file_name() != Some(b".keep".as_slice())
            && foreign.get(&entry.path) != Some(&entry.stat.version)
    };
    entries.retain(mine);
    let mut plan = Plan::default();
    let mut total = 0;
    for entry in entries.iter().take(MAX_INSPECTED) {
        let relative: Vec<Vec<u8>> = entry
            .path
            .components()
            .skip(root.components().count())
            .map(<[u8]>::to_vec)
            .collect();
        let size = entry.stat.size;
        let (code, message) = match entry.stat.kind {
            FileKind::Symlink => (
                "output_symlink",
                "is a symbolic link: only regular files are saved".to_owned(),
            ),
            FileKind::File if size > MAX_FILE => (
                "output_too_large",
                format!("has {size} bytes; the limit of one file is {MAX_FILE}"),
            ),
            FileKind::File if plan.take.len() == MAX_SAVED => (
                "output_too_many",
                format!("comes after the first {MAX_SAVED} files, which is the limit of one run"),
            ),
            FileKind::File if total + size > MAX_TOTAL => (
                "output_total_too_large",
                format!("has {size} bytes, and all files together may have {MAX_TOTAL}"),
            ),
            FileKind::File => {
                total += size;
                plan.take.push(Take {
                    source: entry.path.clone(),
                    relative: Relative(relative),
                    size,
                    version: entry.stat.version,
                });
                continue;
            }
            other => (
                "output_special_file",
                format!("is a {other}: only regular files are saved"),
            ),
        };
        plan.left_out
            .push(omission(code, &shown(&relative.join(&b'/')), &message));
    }
    if let Some(rest @ 1..) = entries.len().checked_sub(MAX_INSPECTED) {
        let text = format!(
            "{rest} more entries of the output directory were not looked at: the limit is {MAX_INSPECTED}"
        );
        plan.left_out
            .push(Diagnostic::warning("output", "output_not_inspected", text));
    }
    plan
}

/// A diagnostic on a file that is not saved.
pub(super) fn omission(code: &str, path: &str, message: &str) -> Diagnostic {
    Diagnostic::warning("output", code, format!("output {path} {message}")).path(path)
}

/// A guest's path as people may see it: replaced where it is no text, control characters escaped, so that a name cannot
/// drive a terminal.
pub(super) fn shown(path: &[u8]) -> String {
    let text = String::from_utf8_lossy(path);
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control()
            || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sixb_sandbox::FileStat;

    use super::*;

    fn root() -> SandboxPath {
        SandboxPath::parse("out").expect("path")
    }

    fn entry(name: impl AsRef<[u8]>, kind: FileKind, size: u64) -> DirEntry {
        let path = root().join(name).expect("path");
        DirEntry::new(path, FileStat::new(kind, size, 0o644, Duration::ZERO, 7))
    }

    /// Paths that are taken, and code and path of each diagnostic.
    fn check(entries: Vec<DirEntry>) -> (Vec<String>, Vec<(String, Option<String>)>) {
        let plan = plan(entries, &root(), &ForeignOutputs::new());
        let codes = plan
            .left_out
            .into_iter()
            .map(|diagnostic| (diagnostic.code, diagnostic.path))
            .collect();
        (
            plan.take.iter().map(|take| take.relative.shown()).collect(),
            codes,
        )
    }

    #[test]
    fn regular_files_are_taken_in_order_of_their_path() {
        let (taken, left_out) = check(vec![
            entry("b.txt", FileKind::File, 1),
            entry("a", FileKind::Directory, 0),
            entry("a/deep/c.txt", FileKind::File, 0),
            entry(".keep", FileKind::File, 0),
            entry("a/.keep", FileKind::File, 9),
            entry("link", FileKind::Symlink, 1),
            entry("pipe", FileKind::Fifo, 0),
        ]);
        assert_eq!(taken, ["a/deep/c.txt", "b.txt"]);
        let path = |name: &str| Some(name.to_owned());
        assert_eq!(
            left_out,
            [
                ("output_symlink".into(), path("link")),
                ("output_special_file".into(), path("pipe"))
            ]
        );
    }

    #[test]
    fn limits_of_size_and_number() {
        let (taken, left_out) = check(vec![
            entry("a", FileKind::File, MAX_FILE),
            entry("b", FileKind::File, MAX_FILE + 1),
        ]);
        assert_eq!(taken, ["a"]);
        assert_eq!(left_out[0].0, "output_too_large");

        let (taken, left_out) = check(
            (0..6)
                .map(|n| entry(format!("f{n}"), FileKind::File, 20 << 20))
                .collect(),
        );
        assert_eq!(
            (taken.len(), left_out.len(), left_out[0].0.as_str()),
            (5, 1, "output_total_too_large")
        );

        let (taken, left_out) = check(
            (0..150)
                .map(|n| entry(format!("f{n:03}"), FileKind::File, 1))
                .collect(),
        );
        assert_eq!((taken.len(), taken[19].as_str()), (20, "f019"));
        assert_eq!(
            (left_out.len(), left_out[80].0.as_str()),
            (81, "output_not_inspected")
        );
    }

    #[test]
    fn what_was_there_before_and_is_unchanged_is_somebody_elses() {
        let old = entry("old", FileKind::File, 1);
        let foreign = ForeignOutputs::from([
            (old.path.clone(), 7),
            (root().join("edited").expect("path"), 6),
        ]);
        let plan = plan(
            vec![old, entry("edited", FileKind::File, 1)],
            &root(),
            &foreign,
        );
        assert_eq!(
            plan.take
                .iter()
                .map(|take| take.relative.shown())
                .collect::<Vec<_>>(),
            ["edited"]
        );
    }

    #[test]
    fn names_that_are_taken_get_a_number() {
        let mut taken = HashSet::from([Relative(vec![b"a.png".to_vec()])]);
        let mut free = |name: &str| free_name(&name.parse().expect("name"), &mut taken).shown();
        for (name, expect) in [
            ("a.png", "a-2.png"),
            ("a.png", "a-3.png"),
            ("b.png", "b.png"),
            ("a-2.png", "a-2-2.png"),
            (".env", ".env"),
            (".env", ".env-2"),
        ] {
            assert_eq!(free(name), expect);
        }
        let long = "é".repeat(127);
        assert_eq!(free(&long).len(), 254);
        assert!(free(&long).len() <= 255);
    }

    #[test]
    fn odd_names_are_shown_harmlessly() {
        assert_eq!(shown(b"a\x1b[31m\n.txt"), "a\\u{1b}[31m\\n.txt");
        assert_eq!(shown("é \u{202e}txt".as_bytes()), "é \\u{202e}txt");
        assert_eq!(shown(b"\xff"), "\u{fffd}");
    }
}
