//! The step that packs every published crate and builds it from its package, as crates.io and its users will get it.

use anyhow::Result;

use crate::counts::Counts;
use crate::job::Job;

pub(crate) fn run(job: &mut Job) -> Result<Counts> {
    // `--allow-dirty`: a change is checked before it is committed.
    let command = job.cargo(&["publish", "--workspace", "--dry-run", "--allow-dirty"]);
    Ok(Counts::check(job.run(command)?.success))
}
