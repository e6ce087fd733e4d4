//! Steps that only compile: formatting, lints, every feature alone, docs.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::counts::Counts;
use crate::facts;
use crate::job::Job;

pub(crate) fn fmt(job: &mut Job) -> Result<Counts> {
    let command = job.cargo(&["fmt", "--all", "--check", "--", "--color=never"]);
    Ok(Counts::check(job.run(command)?.success))
}

// Warnings are denied by arguments to clippy and never by RUSTFLAGS: those would rebuild every dependency for this step.
pub(crate) fn clippy(job: &mut Job) -> Result<Counts> {
    let command = job.cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]);
    Ok(Counts::check(job.run(command)?.success))
}

/// Checks each crate by itself: in one build of the workspace a feature that crate A forgot is supplied by crate B.
pub(crate) fn features(job: &mut Job) -> Result<Counts> {
    let metadata = facts::metadata(&job.root)?;
    let mut broken = Vec::new();
    for package in metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| facts::is_published(package))
    {
        for set in feature_sets(&package.features) {
            let mut args = vec![
                "clippy",
                "-p",
                package.name.as_str(),
                "--no-default-features",
            ];
            args.extend(set.iter().flat_map(|feature| ["--features", feature]));
            args.extend(["--", "-D", "warnings"]);
            if !job.run(job.cargo(&args))?.success {
                broken.push(format!(
                    "{} --no-default-features {}",
                    package.name,
                    args[4..args.len() - 3].join(" ")
                ));
            }
        }
    }
    for build in &broken {
        job.note(&format!("does not build alone: {}", build.trim_end()));
    }
    Ok(Counts::check(broken.is_empty()))
}

/// No feature at all, and each feature by itself; `default` is only a set of the others.
fn feature_sets(features: &BTreeMap<String, Vec<String>>) -> Vec<Option<&str>> {
    let each = features
        .keys()
        .map(String::as_str)
        .filter(|&feature| feature != "default");
    std::iter::once(None).chain(each.map(Some)).collect()
}

pub(crate) fn docs(job: &mut Job) -> Result<Counts> {
    let mut command = job.cargo(&["doc", "--no-deps", "--workspace", "--all-features"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    Ok(Counts::check(job.run(command)?.success))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_built_alone_after_none() {
        let features = ["default", "b", "a"]
            .map(|feature| (feature.to_owned(), Vec::new()))
            .into();
        assert_eq!(feature_sets(&features), [None, Some("a"), Some("b")]);
    }
}
