//! What source files may say: where unsafe code and access to the host are allowed.

use crate::facts::{Facts, Source, Violation};

/// The one crate that talks to the kernel by itself.
const MAY_BE_UNSAFE: &str = "sixb-sandbox-local";
const FORBID_UNSAFE: &str = "#![forbid(unsafe_code)]";

/// Where files of the host and processes may be reached: a folder, or a module (`m` stands for `m.rs` and `m/`).
const HOST_ACCESS: &[&str] = &[
    "crates/sixb",
    "crates/sixb-agent/src/outputs",
    "crates/sixb-agent/src/transcript",
    "crates/sixb-artifacts",
    "crates/sixb-project",
    "crates/sixb-sandbox-local",
    "crates/sixb-sandbox-smolvm",
    "crates/sixb-sandbox/src/conformance",
    "crates/sixb-sandbox/src/spool",
    "crates/sixb-skills",
    "tests",
    "xtask",
];

/// Lints whose names in an attribute switch the ban of clippy.toml off; the last two are groups that contain it.
const BAN: &[&str] = &["clippy::disallowed_methods", "clippy::style", "clippy::all"];

pub(crate) fn check(facts: &Facts) -> Vec<Violation> {
    [forbid_unsafe(facts), host_access(facts)].concat()
}

fn forbid_unsafe(facts: &Facts) -> Vec<Violation> {
    let forbids = |root: &str| {
        let source = facts.sources.iter().find(|source| source.path == root);
        source.is_some_and(|source| source.text.lines().any(|line| line.trim() == FORBID_UNSAFE))
    };
    let safe = facts
        .crates
        .iter()
        .filter(|package| package.name != MAY_BE_UNSAFE);
    safe.flat_map(|package| &package.roots)
        .filter(|root| !forbids(root))
        .map(|root| Violation {
            rule: format!(
                "unsafe code is for `{MAY_BE_UNSAFE}` only, and every other crate says so"
            ),
            place: root.clone(),
            remedy: format!("add the line {FORBID_UNSAFE}"),
        })
        .collect()
}

fn host_access(facts: &Facts) -> Vec<Violation> {
    let closed = facts
        .sources
        .iter()
        .filter(|source| !may_reach_host(&source.path));
    closed.flat_map(lifted_bans).collect()
}

fn may_reach_host(path: &str) -> bool {
    let within = |place: &&str| {
        path.strip_prefix(*place)
            .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    HOST_ACCESS.iter().any(within) || path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn lifted_bans(source: &Source) -> Vec<Violation> {
    let lines = source.text.lines().enumerate();
    let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.filter(|(_, line)| BAN.iter().any(|lint| mentions(line, lint)))
        .map(|(number, _)| Violation {
            rule: "files of the host and processes are reached only where the architecture lists it".to_owned(),
            place: format!("{}:{}", source.path, number + 1),
            remedy: "go through `dyn Sandbox`, or move the access to a listed module; a test that needs files goes to a file \
                     tests.rs or a folder tests/; the list is in xtask/src/source.rs"
                .to_owned(),
        })
        .collect()
}

/// Whether `lint` stands in `line` as a whole path, unlike `clippy::all` in `clippy::allow_attributes`.
fn mentions(line: &str, lint: &str) -> bool {
    let mut rest = line;
    while let Some(at) = rest.find(lint) {
        rest = &rest[at + lint.len()..];
        if !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_') {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Crate;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn roots_forbid_unsafe_code() {
        let check = |name: &str, text: &str, expect: &[&str]| {
            let root = format!("crates/{name}/src/lib.rs");
            let facts = Facts {
                crates: vec![Crate {
                    name: name.to_owned(),
                    roots: vec![root.clone()],
                    ..Crate::default()
                }],
                sources: vec![source(&root, text)],
                ..Facts::default()
            };
            let places: Vec<String> = forbid_unsafe(&facts)
                .into_iter()
                .map(|found| found.place)
                .collect();
            assert_eq!(places, expect, "{name}: {text}");
        };
        check("sixb-tools", "//! Tools.\n\n#![forbid(unsafe_code)]\n", &[]);
        check(
            "sixb-tools",
            "//! Tools.\n",
            &["crates/sixb-tools/src/lib.rs"],
        );
        check(
            "sixb-tools",
            "// #![forbid(unsafe_code)]\n",
            &["crates/sixb-tools/src/lib.rs"],
        );
        check(
            "sixb-tools",
            "#![deny(unsafe_code)]\n",
            &["crates/sixb-tools/src/lib.rs"],
        );
        check("sixb-sandbox-local", "//! Talks to the kernel.\n", &[]);
    }

    #[test]
    fn the_ban_is_lifted_only_in_listed_places() {
        for (path, allowed) in [
            ("crates/sixb/src/main.rs", true),
            ("crates/sixb-sandbox/src/spool.rs", true),
            ("crates/sixb-sandbox/src/spool/file.rs", true),
            ("crates/sixb-sandbox/src/spooling.rs", false),
            ("crates/sixb-sandbox/src/lib.rs", false),
            ("crates/sixb-sandbox/src/conformance/files.rs", true),
            ("crates/sixb-agent/src/transcript.rs", true),
            ("crates/sixb-agent/src/run.rs", false),
            ("crates/sixb-agent/src/run/tests.rs", true),
            ("crates/sixb-tools/src/read.rs", false),
            ("crates/sixb-tools/tests/it/main.rs", true),
            ("crates/sixb-mcp/src/lib.rs", false),
            ("tests/it/main.rs", true),
        ] {
            assert_eq!(may_reach_host(path), allowed, "{path}");
        }
    }

    #[test]
    fn a_lifted_ban_is_found_on_its_line() {
        for (text, lines) in [
            (
                "#[expect(clippy::disallowed_methods, reason = \"\")]\nfn f() {}\n",
                &[1][..],
            ),
            (
                "#[expect(\n    clippy::disallowed_methods,\n    reason = \"\"\n)]\n",
                &[2],
            ),
            (
                "#![allow(clippy::all)]\n#![allow(clippy::style)]\n",
                &[1, 2],
            ),
            (
                "#![warn(clippy::allow_attributes)]\n// #[expect(clippy::disallowed_methods)]\nfn all() {}\n",
                &[],
            ),
        ] {
            let found = lifted_bans(&source("a.rs", text))
                .into_iter()
                .map(|found| found.place);
            let expect = lines.iter().map(|line| format!("a.rs:{line}"));
            assert!(found.eq(expect), "{text}");
        }
    }
}
