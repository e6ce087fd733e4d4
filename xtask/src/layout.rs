//! Where things lie: folder names, the papers of each crate, and a top level that holds nothing unexpected.

use std::collections::BTreeSet;

use crate::facts::{Facts, Violation};

/// What the top level holds. Besides these, only text for people (`*.md`) may lie there.
const TOP_LEVEL: &[&str] = &[
    ".cargo",
    ".ci",
    ".gitignore",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "clippy.toml",
    "crates",
    "deny.toml",
    "docs",
    "rust-toolchain.toml",
    "tests",
    "xtask",
];

pub(crate) fn check(facts: &Facts) -> Vec<Violation> {
    [top_level(facts), folders(facts), papers(facts)].concat()
}

fn top_level(facts: &Facts) -> Vec<Violation> {
    let entries: BTreeSet<&str> = facts
        .files
        .iter()
        .map(|file| file.split('/').next().unwrap_or(file))
        .collect();
    let strange = entries
        .into_iter()
        .filter(|entry| !TOP_LEVEL.contains(entry) && !entry.ends_with(".md"));
    strange
        .map(|entry| Violation {
            rule: "the top level holds only the entries the architecture lists".to_owned(),
            place: entry.to_owned(),
            remedy: "move it into its crate, tests/, docs/ or xtask/, or name it in .gitignore"
                .to_owned(),
        })
        .collect()
}

fn folders(facts: &Facts) -> Vec<Violation> {
    let in_crates = facts
        .crates
        .iter()
        .filter_map(|package| Some((package, package.folder.strip_prefix("crates/")?)));
    in_crates
        .filter(|(package, folder)| package.name != *folder)
        .map(|(package, _)| Violation {
            rule: format!("a folder has the name of its crate, `{}`", package.name),
            place: package.folder.clone(),
            remedy: format!("rename the folder to crates/{}", package.name),
        })
        .collect()
}

fn papers(facts: &Facts) -> Vec<Violation> {
    let wanted = facts
        .crates
        .iter()
        .filter(|package| package.folder.starts_with("crates/"))
        .flat_map(|package| {
            ["README.md", "CHANGELOG.md"]
                .map(|paper| (package, format!("{}/{paper}", package.folder)))
        });
    wanted
        .filter(|(_, path)| !facts.files.contains(path))
        .map(|(package, path)| Violation {
            rule: format!(
                "`{}` has a README.md and a CHANGELOG.md of its own",
                package.name
            ),
            place: path,
            remedy: "write it: the crate is published and read alone".to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Crate;

    fn check(crates: &[(&str, &str)], files: &[&str], expect: &[(&str, &str)]) {
        let crates = crates.iter().map(|(name, folder)| Crate {
            name: (*name).to_owned(),
            folder: (*folder).to_owned(),
            ..Crate::default()
        });
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        let found = super::check(&Facts {
            crates: crates.collect(),
            files,
            ..Facts::default()
        });
        let found: Vec<_> = found
            .iter()
            .map(|found| (found.place.as_str(), found.rule.as_str()))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn the_top_level_is_closed() {
        let rule = "the top level holds only the entries the architecture lists";
        check(
            &[],
            &[
                "Cargo.toml",
                ".ci/run",
                "README.md",
                "docs/architecture.md",
                "xtask/src/main.rs",
            ],
            &[],
        );
        check(
            &[],
            &["scripts/a.sh", "scripts/b.sh", "build.py", "Cargo.toml"],
            &[("build.py", rule), ("scripts", rule)],
        );
    }

    #[test]
    fn a_crate_lies_in_its_folder_with_its_papers() {
        let papers = [
            "crates/sixb-tools/README.md",
            "crates/sixb-tools/CHANGELOG.md",
        ];
        check(
            &[
                ("sixb-tools", "crates/sixb-tools"),
                ("sixb-tests", "tests"),
                ("xtask", "xtask"),
            ],
            &papers,
            &[],
        );
        check(
            &[("sixb-tools", "crates/sixb-tools")],
            &papers[..1],
            &[(
                papers[1],
                "`sixb-tools` has a README.md and a CHANGELOG.md of its own",
            )],
        );
        check(
            &[("sixb-tool", "crates/sixb-tools")],
            &papers,
            &[(
                "crates/sixb-tools",
                "a folder has the name of its crate, `sixb-tool`",
            )],
        );
    }
}
