//! The agent image: Debian with the programs that agents expect, and smolvm's own program, from which machines boot.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use super::{Lab, command, fetch, must};
use crate::job::Job;

const SUITE: &str = "bookworm";
const PACKAGES: &str = "bash,ca-certificates,curl,git,jq,mount,procps,python3,ripgrep";

const PROFILE: &str = r#"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH
for file in /etc/profile.d/*.sh; do
  if [ -r "$file" ]; then . "$file"; fi
done
unset file
"#;

/// Builds it into the user's cache folder, where the factory looks for it.
pub(crate) fn run() -> Result<ExitCode> {
    let root = crate::facts::root()?;
    let mut job = Job::new(&root, "agent-image")?;
    let lab = Lab::new(&job)?;
    eprintln!("downloading smolvm, unless it is there");
    let wheel = fetch::wheel(&mut job, &lab)?;
    eprintln!("building the image, unless it is there");
    let built = build(&mut job, &lab, &wheel)?;
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
        .context("HOME is not set")?;
    let target = cache.join("sixb/smolvm/agent-image");
    let draft = target.with_extension("draft");
    fs::create_dir_all(&target)?;
    let _ = fs::remove_dir_all(&draft);
    let mut copy = command("cp", &["-a", "--reflink=auto"]);
    copy.arg(&built).arg(&draft);
    must(&mut job, copy)?;
    fs::remove_dir_all(&target)?;
    fs::rename(&draft, &target)?;
    println!("{}", target.display());
    Ok(ExitCode::SUCCESS)
}

/// The image as a folder below the lab's.
pub(super) fn build(job: &mut Job, lab: &Lab, wheel: &Path) -> Result<PathBuf> {
    let done = lab.path("agent-image");
    if done.join("usr/local/bin/smolvm-agent").exists() {
        return Ok(done);
    }
    let archive = lab.path("agent-image.tar");
    must(job, bootstrap(&archive))?;
    let draft = lab.path("agent-image-draft");
    let _ = fs::remove_dir_all(&draft);
    fs::create_dir_all(&draft)?;
    let mut unpack = command("tar", &["--exclude=./dev/*", "-xf"]);
    unpack.arg(&archive).arg("-C").arg(&draft);
    must(job, unpack)?;
    // What smolvm needs of the system that it boots: its program as init, and where it mounts its disks.
    for name in ["smolvm-agent", "crane"] {
        let program = format!("usr/local/bin/{name}");
        fs::copy(
            wheel.join("agent-rootfs").join(&program),
            draft.join(&program),
        )
        .with_context(|| format!("cannot copy {program}"))?;
    }
    let init = draft.join("usr/sbin/init");
    let _ = fs::remove_file(&init);
    symlink("/usr/local/bin/smolvm-agent", init)?;
    // Every script of an agent is a login shell: Debian's profiles start programs each time.
    fs::write(draft.join("etc/profile"), PROFILE)?;
    for name in ["root/.profile", "root/.bashrc"] {
        let _ = fs::remove_file(draft.join(name));
    }
    for folder in ["storage", "workspace", "oldroot"] {
        fs::create_dir_all(draft.join(folder))?;
    }
    for entry in fs::read_dir(wheel.join("agent-rootfs/mnt"))?.flatten() {
        fs::create_dir_all(draft.join("mnt").join(entry.file_name()))?;
    }
    let _ = fs::remove_dir_all(&done);
    fs::rename(&draft, &done)?;
    fs::remove_file(archive)?;
    Ok(done)
}

/// Debian's own tool where it is there, else a container engine whose daemon answers.
fn bootstrap(archive: &Path) -> Command {
    let mut words: Vec<String> = vec![
        "--variant=essential".into(),
        format!("--include={PACKAGES}"),
        "--aptopt=Apt::Install-Recommends \"false\"".into(),
    ];
    for path in ["doc", "man", "locale", "info"] {
        words.push(format!("--dpkgopt=path-exclude=/usr/share/{path}/*"));
    }
    let engine = ["docker", "podman"].into_iter().find(|engine| {
        Command::new(engine)
            .arg("info")
            .output()
            .is_ok_and(|output| output.status.success())
    });
    match engine {
        Some(engine) if !Path::new("/usr/bin/mmdebstrap").exists() => {
            let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            let script = format!(
                "apt-get update -qq && apt-get install -qq -y mmdebstrap >&2 && mmdebstrap {} {SUITE} -",
                quoted.join(" ")
            );
            let mut command = command("sh", &["-c"]);
            command
                .arg(format!(
                    "{engine} run --rm --privileged debian:{SUITE} sh -c \"$1\" > \"$2\""
                ))
                .arg("sh")
                .arg(script)
                .arg(archive);
            command
        }
        _ => {
            let mut command = Command::new("mmdebstrap");
            command.args(words).arg(SUITE).arg(archive);
            command
        }
    }
}
