//! Whether every crate in the tree comes from crates.io under a licence that deny.toml allows. Needs no other program.

use anyhow::{Context, Result};
use cargo_metadata::Metadata;
use spdx::{Expression, Licensee, ParseMode};

use crate::facts::Violation;

/// A package of the tree: ours or another's, for any platform and feature.
pub(crate) struct Licensed {
    package: String,
    licence: Option<String>,
    source: Origin,
}

#[derive(PartialEq, Eq)]
enum Origin {
    Workspace,
    CratesIo,
    Other(String),
}

pub(crate) fn packages(metadata: &Metadata) -> Vec<Licensed> {
    let licensed = metadata.packages.iter().map(|package| Licensed {
        package: format!("{} {}", package.name, package.version),
        licence: package.license.clone(),
        source: match &package.source {
            None => Origin::Workspace,
            Some(source) if source.is_crates_io() => Origin::CratesIo,
            Some(source) => Origin::Other(source.repr.clone()),
        },
    });
    licensed.collect()
}

/// The list `licenses.allow` of deny.toml, which `cargo deny` reads too.
pub(crate) fn allowed(deny_toml: &str) -> Result<Vec<Licensee>> {
    let deny: toml::Table = deny_toml.parse().context("deny.toml is not TOML")?;
    let allow = deny
        .get("licenses")
        .and_then(|licenses| licenses.get("allow"))
        .and_then(|allow| allow.as_array());
    let names = allow.context("deny.toml has no list `allow` in [licenses]")?;
    let licensee = |name: &toml::Value| {
        let name = name
            .as_str()
            .context("deny.toml: licenses.allow holds strings")?;
        Licensee::parse(name).with_context(|| format!("deny.toml: `{name}` is not an SPDX licence"))
    };
    names.iter().map(licensee).collect()
}

pub(crate) fn check(packages: &[Licensed], allowed: &[Licensee]) -> Vec<Violation> {
    packages
        .iter()
        .filter_map(|package| judge(package, allowed))
        .collect()
}

fn judge(package: &Licensed, allowed: &[Licensee]) -> Option<Violation> {
    let violation = |rule: String, remedy: &str| {
        Some(Violation {
            rule,
            place: package.package.clone(),
            remedy: remedy.to_owned(),
        })
    };
    if let Origin::Other(source) = &package.source {
        return violation(
            format!("crates come from crates.io, not from {source}"),
            "depend on a published version",
        );
    }
    let Some(licence) = &package.licence else {
        return violation(
            "it declares no SPDX licence".to_owned(),
            "read its licence file and do without the crate, or teach this check about it",
        );
    };
    // Lax, because old crates write `MIT/Apache-2.0`.
    let Ok(expression) = Expression::parse_mode(licence, ParseMode::LAX) else {
        return violation(
            format!("`{licence}` is not an SPDX expression"),
            "do without the crate, or ask its author",
        );
    };
    if expression.evaluate(|wanted| allowed.iter().any(|licensee| licensee.satisfies(wanted))) {
        return None;
    }
    violation(
        format!("its licence `{licence}` is not allowed"),
        "do without the crate, or, if the licence suits users of MIT OR Apache-2.0, add it to licenses.allow in deny.toml",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"]
    "#;

    fn check(licence: Option<&str>, source: Origin, expect: Option<&str>) {
        let package = Licensed {
            package: "sample 1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            source,
        };
        let found = super::check(&[package], &allowed(DENY).unwrap());
        assert_eq!(
            found.first().map(|found| found.rule.as_str()),
            expect,
            "{licence:?}"
        );
    }

    #[test]
    fn one_side_of_or_and_both_of_and_must_be_allowed() {
        check(Some("MIT"), Origin::Workspace, None);
        check(Some("MIT/Apache-2.0"), Origin::CratesIo, None);
        check(Some("GPL-3.0-only OR MIT"), Origin::CratesIo, None);
        check(
            Some("(MIT OR Apache-2.0) AND Unicode-3.0"),
            Origin::CratesIo,
            None,
        );
        check(
            Some("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only"),
            Origin::CratesIo,
            None,
        );
        check(
            Some("MIT AND GPL-3.0-only"),
            Origin::CratesIo,
            Some("its licence `MIT AND GPL-3.0-only` is not allowed"),
        );
        check(
            Some("LGPL-3.0-only"),
            Origin::CratesIo,
            Some("its licence `LGPL-3.0-only` is not allowed"),
        );
    }

    #[test]
    fn what_cannot_be_judged_fails() {
        check(None, Origin::CratesIo, Some("it declares no SPDX licence"));
        check(
            Some("do what you like"),
            Origin::CratesIo,
            Some("`do what you like` is not an SPDX expression"),
        );
        let git = "git+https://example.com/sample";
        check(
            Some("MIT"),
            Origin::Other(git.to_owned()),
            Some(&format!("crates come from crates.io, not from {git}")),
        );
    }

    #[test]
    fn a_list_that_cannot_be_read_is_an_error_and_allows_nothing() {
        for (deny, error) in [
            ("licenses =", "deny.toml is not TOML"),
            ("[bans]", "deny.toml has no list `allow` in [licenses]"),
            (
                "[licenses]\nallow = [\"MTI\"]",
                "deny.toml: `MTI` is not an SPDX licence",
            ),
        ] {
            assert_eq!(allowed(deny).unwrap_err().to_string(), error);
        }
        assert!(allowed("[licenses]\nallow = []").unwrap().is_empty());
    }
}
