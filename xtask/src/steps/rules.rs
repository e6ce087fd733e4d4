//! Steps that read the checkout and judge it by the pure checks: layers and licences.

use std::fs;

use anyhow::{Context, Result};

use crate::counts::Counts;
use crate::facts::{self, Facts, Violation};
use crate::job::Job;
use crate::{confined, layers, layout, licences, source};

pub(crate) fn layers(job: &mut Job) -> Result<Counts> {
    let facts = Facts::read(&job.root)?;
    let mut violations = layers::check(&facts);
    violations.extend(confined::check(&facts));
    violations.extend(layout::check(&facts));
    violations.extend(source::check(&facts));
    Ok(report(job, &violations))
}

pub(crate) fn licences(job: &mut Job) -> Result<Counts> {
    let deny = fs::read_to_string(job.root.join("deny.toml"))
        .context("deny.toml lists the allowed licences")?;
    let allowed = licences::allowed(&deny)?;
    let metadata = facts::metadata(&job.root)?;
    let mut counts = report(
        job,
        &licences::check(&licences::packages(&metadata), &allowed),
    );

    // It takes minutes to build, so it is used where it is and not installed; it adds bans and sources to our own check.
    if job.run(job.cargo(&["deny", "--version"]))?.success {
        let deny = job.run(job.cargo(&["deny", "check", "licenses", "bans", "sources"]))?;
        counts = Counts::check(counts.failed == 0 && deny.success);
    } else {
        job.note("cargo-deny is not installed: only licences and sources were checked");
    }
    Ok(counts)
}

fn report(job: &mut Job, violations: &[Violation]) -> Counts {
    for violation in violations {
        job.note(&violation.to_string());
    }
    Counts::check(violations.is_empty())
}
