//! The dependency table of docs/architecture.md as data, and the check that the workspace follows it.

use crate::facts::{Crate, Facts, Use, Violation};

/// A crate of ours, and which others of ours it may use.
struct Row {
    name: &'static str,
    may_use: Reach,
}

enum Reach {
    /// Nothing of ours but these.
    Only(&'static [Edge]),
    /// Every row above.
    AllAbove,
}

#[derive(Clone, Copy)]
enum Edge {
    Plain(&'static str),
    /// Behind a feature, so that the crate stays light without it.
    Optional(&'static str),
}

use Edge::{Optional, Plain};
use Reach::{AllAbove, Only};

/// An arrow runs only to a row above. This is the one place to change when the table of the architecture changes.
const TABLE: &[Row] = &[
    Row {
        name: "sixb-sandbox",
        may_use: Only(&[]),
    },
    Row {
        name: "sixb-sandbox-local",
        may_use: Only(&[Plain("sixb-sandbox")]),
    },
    Row {
        name: "sixb-sandbox-smolvm",
        may_use: Only(&[Plain("sixb-sandbox")]),
    },
    Row {
        name: "sixb-artifacts",
        may_use: Only(&[]),
    },
    Row {
        name: "sixb-tools",
        may_use: Only(&[Plain("sixb-artifacts"), Optional("sixb-sandbox")]),
    },
    Row {
        name: "sixb-connector-exa",
        may_use: Only(&[Optional("sixb-tools")]),
    },
    Row {
        name: "sixb-skills",
        may_use: Only(&[]),
    },
    Row {
        name: "sixb-gateway",
        may_use: Only(&[]),
    },
    Row {
        name: "sixb-project",
        may_use: Only(&[Plain("sixb-artifacts"), Optional("sixb-gateway")]),
    },
    Row {
        name: "sixb-agent",
        may_use: Only(&[
            Plain("sixb-tools"),
            Plain("sixb-skills"),
            Plain("sixb-gateway"),
            Plain("sixb-artifacts"),
            Plain("sixb-sandbox"),
        ]),
    },
    Row {
        name: "sixb-langchain",
        may_use: Only(&[
            Plain("sixb-tools"),
            Plain("sixb-artifacts"),
            Plain("sixb-sandbox"),
            Plain("sixb-skills"),
        ]),
    },
    Row {
        name: "sixb-mcp",
        may_use: Only(&[Plain("sixb-tools")]),
    },
    Row {
        name: "sixb",
        may_use: AllAbove,
    },
    Row {
        name: "sixb-tests",
        may_use: AllAbove,
    },
    Row {
        name: "xtask",
        may_use: Only(&[]),
    },
];

const TABLE_FILE: &str = "xtask/src/layers.rs and docs/architecture.md";

pub(crate) fn check(facts: &Facts) -> Vec<Violation> {
    let crates = facts.crates.iter();
    crates.flat_map(|package| edges(package, facts)).collect()
}

fn edges(package: &Crate, facts: &Facts) -> Vec<Violation> {
    let place = format!("{}/Cargo.toml", package.folder);
    let Some(row) = TABLE.iter().position(|row| row.name == package.name) else {
        return vec![Violation {
            rule: format!("`{}` is not in the dependency table", package.name),
            place,
            remedy: format!("give it a row in {TABLE_FILE} that says what it may depend on"),
        }];
    };
    let is_ours = |name: &str| {
        TABLE.iter().any(|row| row.name == name)
            || facts.crates.iter().any(|package| package.name == name)
    };
    let ours = package.uses.iter().filter(|used| is_ours(&used.name));
    ours.filter_map(|used| edge(row, used, &place)).collect()
}

fn edge(row: usize, used: &Use, place: &str) -> Option<Violation> {
    let Row { name, may_use } = &TABLE[row];
    let listed = match may_use {
        AllAbove => TABLE[..row]
            .iter()
            .find(|above| above.name == used.name)
            .map(|above| Plain(above.name)),
        Only(edges) => edges
            .iter()
            .copied()
            .find(|(Plain(to) | Optional(to))| *to == used.name),
    };
    let (kind, to) = (
        if used.dev {
            "dev-dependency"
        } else {
            "dependency"
        },
        &used.name,
    );
    match listed {
        None => Some(Violation {
            rule: format!("the table has no arrow from `{name}` to `{to}` ({kind})"),
            place: place.to_owned(),
            remedy: format!(
                "move what needs it to a crate that may use `{to}` (a test that needs both goes to tests/), or change the \
                 table in {TABLE_FILE}"
            ),
        }),
        // A dev-dependency weighs on nobody who uses the crate.
        Some(Optional(_)) if !used.optional && !used.dev => Some(Violation {
            rule: format!("`{name}` may use `{to}` only behind a feature"),
            place: place.to_owned(),
            remedy: format!(
                "make the dependency `optional = true` and enable it by a feature with `dep:{to}`"
            ),
        }),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `uses`: a name, with `?` behind it if optional and `*` if a dev-dependency.
    fn rules(name: &str, uses: &[&str]) -> Vec<String> {
        let uses = uses.iter().map(|used| Use {
            name: used.trim_end_matches(['?', '*']).to_owned(),
            dev: used.ends_with('*'),
            optional: used.ends_with('?'),
        });
        let package = Crate {
            name: name.to_owned(),
            folder: format!("crates/{name}"),
            uses: uses.collect(),
            ..Crate::default()
        };
        check(&Facts {
            crates: vec![package],
            ..Facts::default()
        })
        .into_iter()
        .map(|found| found.rule)
        .collect()
    }

    #[test]
    fn every_arrow_of_the_table_points_to_a_row_above() {
        for (at, row) in TABLE.iter().enumerate() {
            let Only(edges) = row.may_use else { continue };
            for Plain(to) | Optional(to) in edges {
                assert!(
                    TABLE[..at].iter().any(|above| above.name == *to),
                    "{} -> {to}",
                    row.name
                );
            }
        }
    }

    #[test]
    fn listed_arrows_pass() {
        for (name, uses) in [
            ("sixb-sandbox", &["tokio", "tempfile*"][..]),
            (
                "sixb-sandbox-local",
                &[
                    "sixb-sandbox",
                    "sixb-sandbox*",
                    "rustix",
                    "landlock",
                    "seccompiler",
                ],
            ),
            (
                "sixb-tools",
                &["sixb-artifacts", "sixb-sandbox?", "sixb-sandbox*"],
            ),
            (
                "sixb",
                &["sixb-agent", "sixb-sandbox-local", "clap", "anyhow"],
            ),
            ("sixb-tests", &["sixb-agent*", "sixb-tools*"]),
            ("xtask", &["clap", "anyhow"]),
        ] {
            assert_eq!(rules(name, uses), [""; 0], "{name} {uses:?}");
        }
    }

    #[test]
    fn every_other_arrow_fails_with_its_kind() {
        for (name, used, rule) in [
            (
                "sixb-sandbox",
                "sixb-tools",
                "the table has no arrow from `sixb-sandbox` to `sixb-tools` (dependency)",
            ),
            (
                "sixb-sandbox",
                "sixb-agent*",
                "the table has no arrow from `sixb-sandbox` to `sixb-agent` (dev-dependency)",
            ),
            (
                "sixb-agent",
                "sixb-sandbox-local*",
                "the table has no arrow from `sixb-agent` to `sixb-sandbox-local` (dev-dependency)",
            ),
            (
                "sixb-tests",
                "xtask*",
                "the table has no arrow from `sixb-tests` to `xtask` (dev-dependency)",
            ),
            (
                "xtask",
                "sixb-tools",
                "the table has no arrow from `xtask` to `sixb-tools` (dependency)",
            ),
            (
                "sixb-tools",
                "sixb-sandbox",
                "`sixb-tools` may use `sixb-sandbox` only behind a feature",
            ),
            (
                "sixb-new",
                "serde",
                "`sixb-new` is not in the dependency table",
            ),
        ] {
            assert_eq!(rules(name, &[used]), [rule], "{name} {used}");
        }
    }
}
