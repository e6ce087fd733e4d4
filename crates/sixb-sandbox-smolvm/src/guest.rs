//! The guest's program, carried by this crate and laid out where smolvm can show it to machines.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};
use sixb_sandbox::{Result, SandboxError};

static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sixb-guest"));

/// Where the folder shows in the guest.
pub(crate) const FOLDER: &str = "/opt/sixb";
pub(crate) const FILE: &str = "sixb-guest";
/// Where the program listens in the guest: the one folder that an image's container and the machine around it share.
pub(crate) const SOCKET: &str = "/storage/sixb-guest.sock";

/// Lays the program out below `state`, once for each build of it. Blocking.
pub(crate) fn lay_out(state: &Path) -> Result<PathBuf> {
    if PROGRAM.is_empty() {
        return Err(SandboxError::IsolationUnavailable {
            what: "this build has no program for inside microVMs, since no static libc was there when it was compiled".into(),
            remedy: "Install it (Debian: libc6-dev; Fedora: glibc-static; or `rustup target add x86_64-unknown-linux-musl`) and build again".into(),
        });
    }
    let digest = Sha256::digest(PROGRAM);
    let name = digest[..6]
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let folder = state.join("guest").join(name);
    let lay_out = || -> io::Result<()> {
        let program = folder.join(FILE);
        if fs::metadata(&program).is_ok_and(|found| found.len() == PROGRAM.len() as u64) {
            return Ok(());
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        // Beside it and renamed: another process may lay it out at the same time.
        let draft = folder.join(format!(".{FILE}-{}", std::process::id()));
        fs::write(&draft, PROGRAM)?;
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o755))?;
        fs::rename(&draft, &program)
    };
    lay_out().map_err(|error| SandboxError::io("lay out the guest's program", error))?;
    Ok(folder)
}
