//! What must hold on this machine before the first sandbox. Each failure says what to do.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde::Serialize;
use sixb_sandbox::{Result, SandboxError};

use crate::{
    Image,
    engine::{Smolvm, Spec},
    guest,
    image::Source,
    install::{Installation, VERSION},
    lease::PREFIX,
};

const KVM: &str = "/dev/kvm";
/// A machine's disks grow with use; less than this would fail in the middle of a run.
const LEAST_DISK: u64 = 1 << 30;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// `smolvm`, `kvm`, ….
    pub name: &'static str,
    /// Whether it holds.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do where it does not hold.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            ok: true,
            detail: detail.into(),
            remedy: None,
        }
    }

    fn miss(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            name,
            ok: false,
            detail: detail.into(),
            remedy: Some(remedy.into()),
        }
    }

    pub(crate) fn check(self) -> Result<()> {
        if self.ok {
            return Ok(());
        }
        Err(SandboxError::IsolationUnavailable {
            what: format!("{}: {}", self.name, self.detail),
            remedy: self.remedy.unwrap_or_default(),
        })
    }
}

/// Looks at everything but a boot. Blocking.
pub(crate) fn look(installation: Option<&Installation>, state: &Path) -> Vec<Finding> {
    let mut all = vec![program(installation)];
    all.extend(installation.map(libraries));
    all.push(kvm(Path::new(KVM)));
    all.extend(disk(state));
    all
}

fn program(installation: Option<&Installation>) -> Finding {
    let Some(installation) = installation else {
        return Finding::miss("smolvm", "not installed", "sixb sandbox install smolvm");
    };
    let path = installation.program.display();
    let mut command = Command::new(&installation.program);
    command.arg("--version").envs(installation.environment());
    match command.output() {
        Err(error) => Finding::miss(
            "smolvm",
            format!("{path} does not start: {error}"),
            "sixb sandbox install smolvm",
        ),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            match text.trim().strip_prefix("smolvm ") {
                Some(version) if same_series(version) => {
                    Finding::ok("smolvm", format!("{version} ({path})"))
                }
                Some(version) => Finding::miss(
                    "smolvm",
                    format!("{version} ({path}), and this version of sixb knows {VERSION}"),
                    "sixb sandbox install smolvm",
                ),
                None => Finding::miss(
                    "smolvm",
                    format!(
                        "{path} is another program: it calls itself {:?}",
                        text.trim()
                    ),
                    "sixb sandbox install smolvm (the PyPI package `smolvm` is another project)",
                ),
            }
        }
    }
}

/// Major and minor version as tested.
fn same_series(version: &str) -> bool {
    let series = |version: &str| {
        version
            .split('.')
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    series(version) == series(VERSION)
}

fn libraries(installation: &Installation) -> Finding {
    let Some(folder) = &installation.libraries else {
        return Finding::ok("smolvm files", "where smolvm looks by itself");
    };
    let missing: Vec<&str> = ["libkrun.so", "libkrunfw.so.5"]
        .into_iter()
        .filter(|name| !folder.join(name).exists())
        .collect();
    if missing.is_empty() && installation.rootfs.is_some() {
        return Finding::ok("smolvm files", folder.display().to_string());
    }
    let missing = if missing.is_empty() {
        "agent-rootfs.tar.zst".to_owned()
    } else {
        missing.join(", ")
    };
    Finding::miss(
        "smolvm files",
        format!("{missing} is not in {}", folder.display()),
        "remove that folder, then: sixb sandbox install smolvm",
    )
}

/// Existence is not enough: machines need it readable and writable.
fn kvm(path: &Path) -> Finding {
    match fs::OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => Finding::ok("kvm", path.display().to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Finding::miss(
            "kvm",
            format!("{} does not exist", path.display()),
            "load the module (sudo modprobe kvm_intel or kvm_amd) with virtualisation on in the firmware; in a virtual machine, turn nested \
             virtualisation on; in a container, pass --device /dev/kvm",
        ),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Finding::miss(
            "kvm",
            format!("{} cannot be read and written by this user", path.display()),
            "sudo usermod -aG kvm $USER, then log in again",
        ),
        Err(error) => Finding::miss(
            "kvm",
            format!("{} is there but cannot be used: {error}", path.display()),
            "the processor or the machine around this one gives no virtualisation: turn it on there, or use the local sandbox",
        ),
    }
}

/// The standard library cannot tell free space; `df` can. Where it does not run nothing is claimed.
fn disk(state: &Path) -> Option<Finding> {
    let there = state.ancestors().find(|folder| folder.is_dir())?;
    let output = Command::new("df")
        .args(["-P", "-k"])
        .arg(there)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let free: u64 = text
        .lines()
        .nth(1)?
        .split_whitespace()
        .nth(3)?
        .parse()
        .ok()?;
    let (free, shown) = (free * 1024, there.display());
    let detail = format!("{} MiB free in {shown}", free >> 20);
    Some(match free >= LEAST_DISK {
        true => Finding::ok("disk", detail),
        false => Finding::miss(
            "disk",
            detail,
            format!(
                "free at least {} MiB there, or set XDG_STATE_HOME to a larger disk",
                LEAST_DISK >> 20
            ),
        ),
    })
}

/// Whether the image is there.
pub(crate) fn image(image: &Image) -> Finding {
    match image.source() {
        Ok(Source::Own) => Finding::ok("image", "bare: smolvm's own"),
        Ok(Source::Root(folder)) => Finding::ok("image", folder.display().to_string()),
        Ok(Source::Container(source)) => Finding::ok("image", source),
        Err(SandboxError::IsolationUnavailable { what, remedy }) => {
            Finding::miss("image", what, remedy)
        }
        Err(error) => Finding::miss("image", error.to_string(), "name another image"),
    }
}

fn verdict_file(state: &Path) -> Option<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(state.join(format!("probe-{}-{VERSION}", boot.trim())))
}

/// Whether a machine booted here since the host did.
pub(crate) fn booted_before(state: &Path) -> bool {
    verdict_file(state).is_some_and(|file| file.exists())
}

/// Boots a bare machine and removes it. The verdict is kept until the host boots anew.
pub(crate) async fn probe(engine: &dyn Smolvm, state: &Path, deadline: Duration) -> Result<()> {
    if booted_before(state) {
        return Ok(());
    }
    let name = format!(
        "{PREFIX}{}-probe-{}",
        std::process::id(),
        ulid::Ulid::new().to_string().to_lowercase()
    );
    let spec = Spec {
        name: name.clone(),
        cpus: 1,
        memory_mib: 256,
        socket: guest::SOCKET.into(),
        ..Spec::default()
    };
    let boot = async {
        engine.create(&spec).await?;
        engine.start(&name).await
    };
    let booted = tokio::time::timeout(deadline, boot)
        .await
        .unwrap_or(Err(SandboxError::Timeout {
            op: "boot a trial machine",
            after: deadline,
        }));
    let removed = engine.delete(&name).await;
    booted.map_err(|error| match error {
        error @ SandboxError::IsolationUnavailable { .. } => error,
        error => SandboxError::IsolationUnavailable {
            what: format!("a trial microVM did not boot: {error}"),
            remedy: "`sixb doctor` shows what smolvm needs; without it use the local sandbox"
                .into(),
        },
    })?;
    removed?;
    if let Some(file) = verdict_file(state) {
        // Only saves time: where it cannot be written the next process tries again.
        let _ = fs::write(file, "");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_miss_has_a_remedy() {
        let folder = tempfile::tempdir().expect("folder");
        let nowhere = folder.path().join("kvm");
        for (finding, part) in [
            (kvm(&nowhere), "does not exist"),
            (program(None), "not installed"),
            (
                program(Some(&Installation::at("/bin/true"))),
                "another program",
            ),
            (
                program(Some(&Installation::at("/nowhere/smolvm"))),
                "does not start",
            ),
        ] {
            assert!(
                !finding.ok && finding.remedy.is_some() && finding.detail.contains(part),
                "{finding:?}"
            );
            let error = finding.check().expect_err("refused").to_string();
            assert!(error.contains(part), "{error}");
        }
        fs::write(&nowhere, "").expect("file");
        assert!(kvm(&nowhere).ok, "readable and writable");
    }

    #[test]
    fn patch_versions_are_the_same_series() {
        assert!(same_series("1.32.9") && !same_series("1.33.0") && !same_series("2.32.2"));
    }
}
