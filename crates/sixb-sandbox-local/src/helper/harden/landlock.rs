//! Landlock, as far as this kernel has it: everything readable and executable, only the listed paths writable, no
//! abstract Unix sockets or signals beyond the sandbox (they cross mount namespaces).

use std::io;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

/// The newest ABI this code knows; older kernels get what they have.
const NEWEST: ABI = ABI::V6;

pub(super) fn restrict(writable: &[String]) -> io::Result<u32> {
    let abi = kernel_abi();
    let read = AccessFs::from_read(NEWEST);
    let all = AccessFs::from_all(NEWEST);
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let mut ruleset = ruleset
        .add_rule(PathBeneath::new(
            PathFd::new("/").map_err(io::Error::other)?,
            read,
        ))
        .map_err(io::Error::other)?;
    for path in writable {
        // A path that is not there cannot be written either.
        if let Ok(fd) = PathFd::new(path) {
            ruleset = ruleset
                .add_rule(PathBeneath::new(fd, all))
                .map_err(io::Error::other)?;
        }
    }
    let status = ruleset.restrict_self().map_err(io::Error::other)?;
    Ok(if status.ruleset == RulesetStatus::NotEnforced {
        0
    } else {
        abi
    })
}

/// What the kernel reports: `landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION)`.
fn kernel_abi() -> u32 {
    // SAFETY: with this flag the call only returns a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            1u32,
        )
    };
    u32::try_from(abi).unwrap_or(0)
}
