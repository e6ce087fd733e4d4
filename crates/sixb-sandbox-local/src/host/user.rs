//! Under which user of the host a sandbox runs.

use std::fs;

use rustix::thread::CapabilitySet;
use sixb_sandbox::{Result, SandboxError};

use crate::plan::HostUser;

/// The user that a root host becomes: `nobody`, whose id nearly every Linux agrees on.
const UNPRIVILEGED: HostUser = HostUser {
    uid: 65534,
    gid: 65534,
};

/// Whom to become before anything else: `None` = stay who this is, an ordinary user.
pub(super) fn drop_to() -> Result<Option<HostUser>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let effective =
        rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let needed = CapabilitySet::SETUID
        | CapabilitySet::SETGID
        | CapabilitySet::CHOWN
        | CapabilitySet::SYS_ADMIN;
    let map = |file: &str| fs::read_to_string(file).unwrap_or_default();
    decide(
        &map("/proc/self/uid_map"),
        &map("/proc/self/gid_map"),
        effective.contains(needed),
    )
}

/// What root is here: the host's own, the root of a container, or root in name only.
fn decide(uid_map: &str, gid_map: &str, capable: bool) -> Result<Option<HostUser>> {
    let nobody = outside(uid_map, UNPRIVILEGED.uid).is_some()
        && outside(gid_map, UNPRIVILEGED.gid).is_some();
    match outside(uid_map, 0) {
        _ if nobody && capable => Ok(Some(UNPRIVILEGED)),
        // Root of a user namespace, an ordinary user outside of it: there is nothing to drop.
        Some(uid) if uid != 0 => Ok(None),
        _ => Err(SandboxError::IsolationUnavailable {
            what: "this root may not become an ordinary user: it lacks CAP_SETUID, CAP_SETGID, CAP_CHOWN or CAP_SYS_ADMIN, or \
                   user 65534 is not mapped"
                .into(),
            remedy: "Run as an ordinary user (`setpriv --reuid 1000 --regid 1000 --clear-groups`, `docker run --user`), or give \
                     root these capabilities back"
                .into(),
        }),
    }
}

/// Which id outside an id inside stands for.
fn outside(map: &str, id: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u32>);
        let (inside, outside, count) = (
            numbers.next()?.ok()?,
            numbers.next()?.ok()?,
            numbers.next()?.ok()?,
        );
        let offset = id.checked_sub(inside)?;
        (offset < count).then(|| outside.saturating_add(offset))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_drops_where_it_can_and_stays_where_it_is_none() {
        let host = "         0          0 4294967295\n";
        let rootless = "0 1000 1\n";
        let subuids = "0 1000 1\n1 100000 65536\n";
        for (uids, gids, capable, expect) in [
            (host, host, true, Some(Some(UNPRIVILEGED))),
            (host, host, false, None),
            (rootless, rootless, true, Some(None)),
            (rootless, rootless, false, Some(None)),
            (subuids, subuids, true, Some(Some(UNPRIVILEGED))),
            (subuids, rootless, true, Some(None)),
            ("0 0 1\n", "0 0 1\n", true, None),
            ("", "", true, None),
        ] {
            let decided = decide(uids, gids, capable);
            assert_eq!(
                decided.as_ref().ok(),
                expect.as_ref(),
                "{uids:?} {gids:?} {capable}: {decided:?}"
            );
        }
    }
}
