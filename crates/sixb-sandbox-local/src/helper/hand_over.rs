//! What only the inside can open and the host needs: listeners in the sandbox's network, and a working directory that
//! lives inside.

use std::{net::TcpListener, os::fd::OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::{Failure, Stage, harden};
use crate::plan::Plan;

/// Opens what the plan promises the host, in the order that the protocol says.
pub(super) fn open(plan: &Plan) -> Result<Vec<OwnedFd>, Failure> {
    if !plan.host_network {
        harden::loopback_up().stage(|| "bring loopback up".into())?;
    }
    let mut handed = Vec::new();
    for address in &plan.listen {
        let listener = TcpListener::bind(address).stage(|| format!("listen on {address}"))?;
        handed.push(listener.into());
    }
    if let Some(path) = &plan.hand_over {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path.as_str(), flags, Mode::empty());
        handed.push(folder.stage(|| format!("open {path}"))?);
    }
    Ok(handed)
}
