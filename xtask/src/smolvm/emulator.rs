//! The emulator of the outer machine: QEMU 10 or later. Version 7, which Debian 12 has, now and then stops a machine that
//! runs machines; Debian's backports have the newer one.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{Lab, command, must};
use crate::facts;
use crate::job::Job;

pub(super) const PROGRAM: &str = "/usr/bin/qemu-system-x86_64";
const PACKAGE: &str = "qemu-system-x86";
const LEAST: u32 = 10;

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
    if !facts::is_root() {
        bail!(
            "no QEMU {LEAST} or later; install it with:\nsudo apt-get install -y --no-install-recommends -t {release}-backports {PACKAGE}\n\
             (`deb {mirror} {release}-backports main` belongs into a file in /etc/apt/sources.list.d)"
        );
    }
    // With sources of its own: those of the machine stay as they are.
    let (list, lists) = (lab.path("backports.list"), lab.path("apt-lists"));
    fs::create_dir_all(lists.join("partial"))?;
    let line = |suite: &str| {
        format!(
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} {suite} main\n"
        )
    };
    fs::write(
        &list,
        line(&release) + &line(&format!("{release}-backports")),
    )
    .with_context(|| format!("cannot write {}", list.display()))?;
    let suite = format!("{release}-backports");
    for arguments in [
        &["update"][..],
        &[
            "install",
            "-y",
            "--no-install-recommends",
            "-t",
            &suite,
            PACKAGE,
        ],
    ] {
        let mut apt = command("apt-get", &[]);
        for (option, path) in [
            ("Dir::Etc::sourcelist", list.as_path()),
            ("Dir::Etc::sourceparts", Path::new("/dev/null")),
            ("Dir::State::lists", lists.as_path()),
        ] {
            apt.arg("-o").arg(format!("{option}={}", path.display()));
        }
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        must(job, apt)?;
    }
    Ok(())
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
