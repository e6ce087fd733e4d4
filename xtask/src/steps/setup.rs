//! The step that makes a bare Debian machine ready: installs what is missing where it may, else prints the command.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::counts::Counts;
use crate::facts;
use crate::job::Job;

/// A file that must be there, and the Debian package that brings it. Programs are looked for in `/usr/bin` and not on
/// PATH, because that is what a sandbox and an unprivileged user see of them.
const NEEDED: &[(&str, &str)] = &[
    ("/usr/bin/bash", "bash"),
    ("/usr/bin/bwrap", "bubblewrap"),
    ("/usr/bin/timeout", "coreutils"),
    ("/usr/bin/curl", "curl"),
    ("/usr/bin/gcc", "gcc"),
    ("/usr/include/stdio.h", "libc6-dev"),
    ("/usr/bin/git", "git"),
    ("/usr/bin/jq", "jq"),
    ("/usr/bin/node", "nodejs"),
    ("/usr/bin/npm", "npm"),
    ("/usr/bin/openssl", "openssl"),
    ("/usr/bin/python3", "python3"),
    ("/usr/bin/pip3", "python3-pip"),
    ("/usr/bin/setpriv", "util-linux"),
];

/// What `cargo xtask smolvm-lab` needs besides.
pub(crate) const LAB_NEEDED: &[(&str, &str)] = &[
    ("/usr/bin/strip", "binutils"),
    ("/bin/busybox", "busybox-static"),
    ("/usr/bin/cpio", "cpio"),
    ("/usr/sbin/mke2fs", "e2fsprogs"),
    ("/usr/bin/mmdebstrap", "mmdebstrap"),
    ("/usr/bin/zstd", "zstd"),
];

pub(crate) fn run(job: &mut Job) -> Result<Counts> {
    install(job, NEEDED)?;
    Ok(Counts::check(true))
}

/// Installs what is missing of a list where it may, else says by which command.
pub(crate) fn install(job: &mut Job, needed: &[(&str, &'static str)]) -> Result<()> {
    let packages = missing(needed, |file| Path::new(file).exists());
    if packages.is_empty() {
        return Ok(());
    }
    if !facts::is_root() || !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "missing Debian packages; install them with:\n{}",
            by_hand(&packages)
        );
    }
    let installed = job.run(apt_get(&["update"]))?.success
        && job
            .run(apt_get(
                &[&["install", "-y", "--no-install-recommends"], &packages[..]].concat(),
            ))?
            .success;
    let still = missing(needed, |file| Path::new(file).exists());
    if !installed || !still.is_empty() {
        bail!(
            "apt-get did not install {}; try by hand:\n{}",
            packages.join(", "),
            by_hand(&packages)
        );
    }
    Ok(())
}

fn missing(needed: &[(&str, &'static str)], exists: impl Fn(&str) -> bool) -> Vec<&'static str> {
    needed
        .iter()
        .filter(|(file, _)| !exists(file))
        .map(|(_, package)| *package)
        .collect()
}

/// The one line a person pastes.
fn by_hand(packages: &[&str]) -> String {
    let packages = packages.join(" ");
    format!("sudo apt-get update && sudo apt-get install -y --no-install-recommends {packages}")
}

/// `apt-get` that asks nothing.
pub(crate) fn apt_get(args: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_asked_for() {
        assert_eq!(missing(NEEDED, |_| true), [""; 0]);
        assert_eq!(
            missing(NEEDED, |file| file != "/usr/bin/setpriv"
                && file != "/usr/bin/jq"),
            ["jq", "util-linux"]
        );
        assert_eq!(
            by_hand(&["jq", "util-linux"]),
            "sudo apt-get update && sudo apt-get install -y --no-install-recommends jq util-linux"
        );
    }
}
