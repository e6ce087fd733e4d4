//! Which crates of others may be named only by certain crates of ours, so that each stays behind one seam.

use crate::facts::{Crate, Facts, Use, Violation};

/// A crate of others, and those of ours that may use it.
const CONFINED: &[(&str, &[&str])] = &[
    ("anyhow", &["sixb", "xtask"]),
    ("clap", &["sixb", "xtask"]),
    ("landlock", &["sixb-sandbox-local"]),
    ("rmcp", &["sixb-mcp"]),
    ("rustix", &["sixb-sandbox-local"]),
    ("seccompiler", &["sixb-sandbox-local"]),
    ("sqlx", &["sixb-project"]),
];

pub(crate) fn check(facts: &Facts) -> Vec<Violation> {
    facts.crates.iter().flat_map(breaches).collect()
}

fn breaches(package: &Crate) -> Vec<Violation> {
    let breach = |used: &Use| {
        let (name, owners) = CONFINED.iter().find(|(name, _)| *name == used.name)?;
        (!owners.contains(&package.name.as_str())).then(|| Violation {
            rule: format!("`{name}` is confined to `{}`", owners.join("` and `")),
            place: format!("{}/Cargo.toml", package.folder),
            remedy: format!(
                "do without `{name}` here, or change the list in xtask/src/confined.rs and docs/architecture.md"
            ),
        })
    };
    package.uses.iter().filter_map(breach).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, used: &str, rule: Option<&str>) {
        let uses = [false, true].map(|dev| Use {
            name: used.to_owned(),
            dev,
            optional: !dev,
        });
        let package = Crate {
            name: name.to_owned(),
            uses: uses.into(),
            ..Crate::default()
        };
        let found = breaches(&package);
        let found: Vec<_> = found.iter().map(|found| found.rule.as_str()).collect();
        assert_eq!(
            found,
            [rule, rule].into_iter().flatten().collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_confined_crate_is_for_its_owners_of_any_kind_of_dependency() {
        check("sixb-sandbox-local", "rustix", None);
        check("sixb", "clap", None);
        check("xtask", "anyhow", None);
        check("sixb-tools", "serde", None);
        let confined = Some("`rmcp` is confined to `sixb-mcp`");
        check("sixb-tools", "rmcp", confined);
        let confined = Some("`rustix` is confined to `sixb-sandbox-local`");
        check("sixb-sandbox", "rustix", confined);
        let confined = Some("`sqlx` is confined to `sixb-project`");
        check("sixb-agent", "sqlx", confined);
        let confined = Some("`anyhow` is confined to `sixb` and `xtask`");
        check("sixb-agent", "anyhow", confined);
    }

    #[test]
    fn a_violation_names_place_rule_and_remedy() {
        let package = Crate {
            name: "sixb-mcp".into(),
            folder: "crates/sixb-mcp".into(),
            uses: vec![Use {
                name: "clap".into(),
                ..Use::default()
            }],
            ..Crate::default()
        };
        assert_eq!(
            breaches(&package)[0].to_string(),
            "crates/sixb-mcp/Cargo.toml: `clap` is confined to `sixb` and `xtask`\n  \
             remedy: do without `clap` here, or change the list in xtask/src/confined.rs and docs/architecture.md"
        );
    }
}
