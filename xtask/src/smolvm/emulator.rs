//! The emulator of the outer machine: QEMU 10 or later. Version 7, which Debian 12 has, now and then stops a machine that
//! runs machines; Debian's backports have the newer one.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{Lab, command, must};
use crate::facts;
use crate::job::Job;
use crate::steps::setup::apt_get;

pub(super) const PROGRAM: &str = "/usr/bin/qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";
const LEAST: u32 = 10;
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Sees to it that it is installed.
pub(super) fn ensure(job: &mut Job, lab: &Lab) -> Result<()> {
    let installed = installed(job);
    if installed.is_some_and(|version| version >= LEAST) {
        return Ok(());
    }
    let targets = job.stdout(command(
        "apt-get",
        &[
            "indextargets",
            "--format",
            "$(REPO_URI) $(RELEASE) $(COMPONENT)",
            "Created-By: Packages",
        ],
    ))?;
    let Some((mirror, release)) = debian(&String::from_utf8_lossy(&targets)) else {
        bail!("no QEMU {LEAST} or later, and no mirror of Debian is known to apt: install it");
    };
    let backports = format!("{release}-backports");
    let install = [
        "install",
        "-y",
        "--no-install-recommends",
        "-t",
        &backports,
        PACKAGE,
    ];
    if !facts::is_root() {
        bail!(
            "no QEMU {LEAST} or later; install it with:\nsudo apt-get {}\n\
             (`deb {mirror} {backports} main` belongs into a file in /etc/apt/sources.list.d)",
            install.join(" ")
        );
    }
    // With sources of its own: those of the machine stay as they are.
    let (list, lists) = (lab.path("backports.list"), lab.path("apt-lists"));
    fs::create_dir_all(lists.join("partial"))?;
    let source = format!("deb [signed-by={KEYS}] {mirror}");
    let sources = format!("{source} {release} main\n{source} {backports} main\n");
    fs::write(&list, sources).with_context(|| format!("cannot write {}", list.display()))?;
    let own = [
        ("Dir::Etc::sourcelist", list.as_path()),
        ("Dir::Etc::sourceparts", Path::new("/dev/null")),
        ("Dir::State::lists", lists.as_path()),
    ]
    .map(|(option, path)| format!("-o{option}={}", path.display()));
    let own = own.each_ref().map(String::as_str);
    must(job, apt_get(&[&own[..], &["update"]].concat()))?;
    must(job, apt_get(&[&own[..], &install].concat()))
}

fn installed(job: &mut Job) -> Option<u32> {
    if !Path::new(PROGRAM).exists() {
        return None;
    }
    let told = job.stdout(command(PROGRAM, &["--version"])).ok()?;
    major(&String::from_utf8_lossy(&told))
}

/// `QEMU emulator version 10.0.2 (Debian …)`.
fn major(told: &str) -> Option<u32> {
    let (_, version) = told.split_once("version ")?;
    version.split('.').next()?.parse().ok()
}

/// The mirror and the release of Debian itself, from apt's list of what it reads.
fn debian(targets: &str) -> Option<(String, String)> {
    targets.lines().find_map(|line| {
        let [uri, release, "main"] = line.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let plain = uri.trim_end_matches('/').ends_with("/debian") && !release.contains('-');
        plain.then(|| (uri.to_owned(), release.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_and_a_mirror_are_read() {
        assert_eq!(
            major("QEMU emulator version 10.0.2 (Debian 1:10.0.2)"),
            Some(10)
        );
        assert_eq!(major("no such thing"), None);
        let targets = "https://a.test/apt cloud main\nhttp://b.test/debian-security/ bookworm-security main\n\
                       http://b.test/debian/ bookworm-updates main\nhttp://b.test/debian/ bookworm main\n";
        assert_eq!(
            debian(targets),
            Some(("http://b.test/debian/".into(), "bookworm".into()))
        );
        assert_eq!(debian("https://a.test/ubuntu noble main\n"), None);
    }
}
