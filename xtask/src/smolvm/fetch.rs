//! Downloads, each once: smolvm's wheel by `pip`, the outer machine's kernel by `apt-get`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::{Lab, command, must};
use crate::job::Job;

/// As `sixb sandbox install smolvm` pins it.
const VERSION: &str = "1.32.2";
const SHA256: &str = "81b104e2622aa0b187b6b7054397c391151b83db2638a16d0e54c517684f0dc2";

/// The wheel's folder with `smolvm`, its libraries and root file system.
pub(super) fn wheel(job: &mut Job, lab: &Lab) -> Result<PathBuf> {
    let done = lab.path(&format!("smolvm-{VERSION}"));
    if done.join("smolvm").exists() {
        return Ok(done);
    }
    let draft = lab.path("wheel");
    let _ = fs::remove_dir_all(&draft);
    fs::create_dir_all(&draft)?;
    let mut pip = command(
        "python3",
        &[
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--disable-pip-version-check",
            "--quiet",
            "--dest",
        ],
    );
    pip.arg(&draft).arg(format!("smolmachines=={VERSION}"));
    must(job, pip)?;
    let wheel = fs::read_dir(&draft)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "whl"))
        .context("pip downloaded no wheel")?;
    let sum = job.stdout({
        let mut sum = command("sha256sum", &[]);
        sum.arg(&wheel);
        sum
    })?;
    if !sum.starts_with(SHA256.as_bytes()) {
        bail!(
            "the wheel is not the pinned one: {}",
            String::from_utf8_lossy(&sum)
        );
    }
    let mut unzip = command("python3", &["-m", "zipfile", "-e"]);
    unzip.arg(&wheel).arg(&draft);
    must(job, unzip)?;
    let folder = draft.join("smol");
    fs::rename(folder.join("smol-vmm"), folder.join("smolvm"))?;
    let executable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(folder.join("smolvm"), executable)?;
    for template in ["overlay-template.ext4.zst", "storage-template.ext4.zst"] {
        let mut expand = command("zstd", &["-d", "-q", "--sparse", "--rm"]);
        expand.arg(folder.join(template));
        must(job, expand)?;
    }
    let rootfs = folder.join("agent-rootfs");
    fs::create_dir(&rootfs)?;
    let mut unpack = command("tar", &["--zstd", "--no-same-owner", "-xf"]);
    unpack
        .arg(folder.join("agent-rootfs.tar.zst"))
        .arg("-C")
        .arg(&rootfs);
    must(job, unpack)?;
    fs::rename(&folder, &done)?;
    fs::remove_dir_all(&draft)?;
    Ok(done)
}

/// The folder of Debian's kernel, unpacked and not installed.
pub(super) fn kernel(job: &mut Job, lab: &Lab) -> Result<PathBuf> {
    let done = lab.path("kernel");
    if done.join("boot").exists() {
        return Ok(done);
    }
    let draft = lab.path("kernel-draft");
    let _ = fs::remove_dir_all(&draft);
    fs::create_dir_all(&draft)?;
    let depends = job.stdout(command("apt-cache", &["depends", "linux-image-amd64"]))?;
    let depends = String::from_utf8_lossy(&depends);
    let package = depends
        .split_whitespace()
        .find(|word| word.starts_with("linux-image-") && *word != "linux-image-amd64")
        .context(
            "apt-cache knows no package that linux-image-amd64 depends on; run apt-get update",
        )?
        .to_owned();
    let mut download = command("apt-get", &["download", &package]);
    download.current_dir(&draft);
    must(job, download)?;
    let file = fs::read_dir(&draft)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "deb"))
        .context("apt-get downloaded no package")?;
    let mut unpack = command("dpkg-deb", &["-x"]);
    unpack.arg(&file).arg(&draft);
    must(job, unpack)?;
    fs::remove_file(file)?;
    fs::rename(&draft, &done)?;
    Ok(done)
}
