//! Where smolvm is, and how it gets there: the wheel of the PyPI package `smolmachines`, unpacked into the user's data
//! folder. (The PyPI package named `smolvm` is another project.)

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};
use sixb_sandbox::{Result, SandboxError};

/// The version that this crate was tested with.
pub const VERSION: &str = "1.32.2";
const PACKAGE: &str = "smolmachines";
/// Of `smolmachines-1.32.2-cp39-abi3-manylinux_2_28_x86_64.whl`.
const SHA256_X86_64: &str = "81b104e2622aa0b187b6b7054397c391151b83db2638a16d0e54c517684f0dc2";
const PROGRAM: &str = "smolvm";
/// The name of the same program in the wheel. Under that name it prints a note with each call.
const IN_WHEEL: &str = "smol-vmm";

/// A smolvm program and the files beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Installation {
    /// The program.
    pub program: PathBuf,
    /// The folder of `libkrun.so` and `libkrunfw.so.5`; `None` = where the program looks by itself.
    pub libraries: Option<PathBuf>,
    /// The root file system of bare machines; `None` = where the program looks by itself.
    pub rootfs: Option<PathBuf>,
}

impl Installation {
    /// A program, with what lies in its folder.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        let program = program.into();
        let folder = program.parent().unwrap_or(Path::new("."));
        let beside = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
        Self {
            libraries: beside("libkrun.so").map(|_| folder.to_owned()),
            rootfs: beside("agent-rootfs").or_else(|| beside("agent-rootfs.tar.zst")),
            program,
        }
    }

    /// The one that [`install`] made, else the one on `PATH`.
    pub fn find() -> Option<Self> {
        let installed = data_folder()
            .map(|folder| folder.join(VERSION).join(PROGRAM))
            .filter(|program| program.is_file());
        installed
            .or_else(|| {
                let path = std::env::var_os("PATH")?;
                std::env::split_paths(&path)
                    .map(|folder| folder.join(PROGRAM))
                    .find(|program| program.is_file())
            })
            .map(Self::at)
    }

    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let mut all = Vec::new();
        if let Some(folder) = &self.libraries {
            all.push(("SMOLVM_LIB_DIR", folder.clone().into()));
        }
        if let Some(rootfs) = &self.rootfs {
            let name = if rootfs.is_dir() {
                "SMOLVM_AGENT_ROOTFS"
            } else {
                "SMOLVM_AGENT_ROOTFS_TAR"
            };
            all.push((name, rootfs.clone().into()));
        }
        all
    }
}

/// `${XDG_DATA_HOME:-~/.local/share}/sixb/smolvm`.
fn data_folder() -> Option<PathBuf> {
    crate::factory::user_folder("XDG_DATA_HOME", ".local/share")
        .map(|folder| folder.join("sixb/smolvm"))
}

/// Downloads smolvm with `pip` (its settings and index are the user's own), checks it, and unpacks it into the user's data
/// folder. Done already, it only says so. Blocking, for minutes on a slow line; `progress` hears each step.
///
/// # Errors
/// `IsolationUnavailable` where there is no such program for this machine; `Provider` with what `pip` or the file system
/// says, or with both digests when the file is not the expected one. Nothing half-done is left.
pub fn install(mut progress: impl FnMut(&str)) -> Result<Installation> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(SandboxError::IsolationUnavailable {
            what: format!(
                "smolvm is pinned for Linux on x86_64, and this is {} on {}",
                std::env::consts::OS,
                std::env::consts::ARCH
            ),
            remedy:
                "Install smolvm by hand and give its path to the factory (`bin`), or put it on PATH"
                    .into(),
        });
    }
    let data = data_folder().ok_or_else(|| SandboxError::InvalidInput {
        field: "HOME",
        value: String::new(),
        reason: "is not set, so there is no data folder: set HOME or XDG_DATA_HOME".into(),
    })?;
    let target = data.join(VERSION);
    if target.join(PROGRAM).is_file() {
        progress(&format!(
            "smolvm {VERSION} is installed in {}",
            target.display()
        ));
        return Ok(Installation::at(target.join(PROGRAM)));
    }
    let failed = |error: io::Error| SandboxError::io("install smolvm", error);
    let draft = data.join(format!(".{VERSION}-{}", std::process::id()));
    let _remove = RemoveOnDrop(draft.clone());
    fs::create_dir_all(&draft).map_err(failed)?;
    progress(&format!("downloading {PACKAGE} {VERSION} with pip (44 MB)"));
    run(Command::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--disable-pip-version-check",
            "--quiet",
            "--dest",
        ])
        .arg(&draft)
        .arg(format!("{PACKAGE}=={VERSION}")))?;
    let wheel = fs::read_dir(&draft)
        .map_err(failed)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|end| end == "whl"))
        .ok_or_else(|| SandboxError::provider("install smolvm", "pip downloaded no wheel", None))?;
    progress("checking its SHA-256");
    check_digest(&wheel, SHA256_X86_64)?;
    progress("unpacking");
    run(Command::new("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(&wheel)
        .arg(&draft))?;
    fs::remove_file(&wheel).map_err(failed)?;
    let folder = draft.join("smol");
    fs::hard_link(folder.join(IN_WHEEL), folder.join(PROGRAM)).map_err(failed)?;
    let executable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(folder.join(PROGRAM), executable).map_err(failed)?;
    for name in ["overlay-template.ext4", "storage-template.ext4"] {
        // Without the templates smolvm makes file systems with mkfs.ext4, which not every machine has.
        let expanded = run(Command::new("zstd")
            .args(["-d", "-q", "--sparse", "--rm"])
            .arg(folder.join(format!("{name}.zst"))));
        if let Err(error) = expanded {
            progress(&format!(
                "{name} is left packed ({error}); `mkfs.ext4` is then needed to start machines"
            ));
        }
    }
    match fs::rename(&folder, &target) {
        Err(_) if target.join(PROGRAM).is_file() => {}
        result => result.map_err(failed)?,
    }
    progress(&format!(
        "smolvm {VERSION} is installed in {}",
        target.display()
    ));
    Ok(Installation::at(target.join(PROGRAM)))
}

struct RemoveOnDrop(PathBuf);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(command: &mut Command) -> Result<()> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| {
        SandboxError::provider(
            "install smolvm",
            format!("{shown} does not start: {error}"),
            None,
        )
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    Err(SandboxError::provider(
        "install smolvm",
        format!(
            "{shown} failed: {}",
            lines[lines.len().saturating_sub(3)..].join("; ")
        ),
        None,
    ))
}

fn check_digest(file: &Path, expect: &str) -> Result<()> {
    let failed = |error: io::Error| SandboxError::io("check the download", error);
    let mut digest = Sha256::new();
    let mut file = fs::File::open(file).map_err(failed)?;
    let mut bytes = vec![0; 1 << 20];
    loop {
        match io::Read::read(&mut file, &mut bytes).map_err(failed)? {
            0 => break,
            read => digest.update(&bytes[..read]),
        }
    }
    let found = digest
        .finalize()
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    if found != expect {
        return Err(SandboxError::provider(
            "check the download",
            format!(
                "its SHA-256 is {found}, not {expect}: the package index gave another file; nothing was installed"
            ),
            None,
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_the_program_is_used() {
        let folder = tempfile::tempdir().expect("folder");
        let program = folder.path().join(PROGRAM);
        assert_eq!(Installation::at(&program).environment(), []);
        for name in ["libkrun.so", "agent-rootfs.tar.zst"] {
            fs::write(folder.path().join(name), "").expect("file");
        }
        let names: Vec<_> = Installation::at(&program)
            .environment()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["SMOLVM_LIB_DIR", "SMOLVM_AGENT_ROOTFS_TAR"]);
    }

    #[test]
    fn another_file_than_the_pinned_one_is_refused_with_both_digests() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("wheel");
        fs::write(&file, "abc").expect("file");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        check_digest(&file, abc).expect("the same");
        let error = check_digest(&file, SHA256_X86_64)
            .expect_err("another")
            .to_string();
        assert!(
            error.contains(abc) && error.contains(SHA256_X86_64),
            "{error}"
        );
    }
}
