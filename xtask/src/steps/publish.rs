//! The step that packs every published crate and builds it from its package, as crates.io and its users will get it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::counts::Counts;
use crate::job::Job;

pub(crate) fn run(job: &mut Job) -> Result<Counts> {
    forget_earlier_runs()?;
    // `--allow-dirty`: a change is checked before it is committed.
    let command = job.cargo(&["publish", "--workspace", "--dry-run", "--allow-dirty"]);
    Ok(Counts::check(job.run(command)?.success))
}

/// A dry run unpacks our crates from a registry that exists only for it, whose name depends on the folder alone. Cargo
/// believes what it finds unpacked: a second run from the same folder would build the crates of the first.
fn forget_earlier_runs() -> Result<()> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let Some(home) = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
    else {
        return Ok(());
    };
    for kind in ["src", "cache"] {
        let folder = home.join("registry").join(kind);
        for stale in temporary_registries(&folder)
            .with_context(|| format!("looking for earlier dry runs in {}", folder.display()))?
        {
            fs::remove_dir_all(&stale).with_context(|| format!("removing {}", stale.display()))?;
        }
    }
    Ok(())
}

/// Registries without a host: their names begin with the dash that follows it.
fn temporary_registries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"-") {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registries_without_a_host_are_temporary() {
        let folder = std::env::temp_dir().join(format!("xtask-publish-{}", std::process::id()));
        for name in ["-1ade7a66", "index.example-19"] {
            fs::create_dir_all(folder.join(name)).expect("folder");
        }
        let found = temporary_registries(&folder).expect("listed");
        fs::remove_dir_all(&folder).expect("removed");
        assert_eq!(found, [folder.join("-1ade7a66")]);
        assert!(temporary_registries(&folder).expect("none").is_empty());
    }
}
