//! The plan of a sandbox: one serialised value, computed by pure code from options and facts about the host.

mod etc;
mod facts;
mod limits;
mod mounts;

pub(crate) use facts::HostFacts;
pub(crate) use limits::Limits;
pub(crate) use mounts::{Part, Step, View, mount_steps};

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};

/// Name and ids inside the sandbox.
pub(crate) const USER: &str = "agent";
/// User and group id inside the sandbox.
pub(crate) const GUEST_ID: u32 = 1000;
/// Home inside the sandbox.
pub(crate) const HOME: &str = "/home/agent";
/// `PATH` where the options name none.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Everything the helper needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// No wall at all: commands run as this user of the host, in its file system. Only by explicit, dangerous choice.
    pub(crate) unisolated: bool,
    /// Started as root: become this host user first.
    pub(crate) drop_to: Option<HostUser>,
    /// Host folders that are cloned before anything else, while their paths can still be walked.
    pub(crate) trees: Vec<Tree>,
    /// How the file view is built, in order.
    pub(crate) steps: Vec<Step>,
    /// What stays writable under Landlock: absolute guest paths.
    pub(crate) writable: Vec<String>,
    /// Share the host's network.
    pub(crate) host_network: bool,
    /// Host name inside.
    pub(crate) hostname: String,
    /// What commands may use.
    pub(crate) limits: Limits,
    /// Listeners in the sandbox's own network, handed to the host in this order.
    pub(crate) listen: Vec<SocketAddrV4>,
    /// The working directory lives inside: hand a descriptor of this guest path to the host.
    pub(crate) hand_over: Option<String>,
}

/// A user of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostUser {
    /// User id.
    pub(crate) uid: u32,
    /// Group id.
    pub(crate) gid: u32,
}

/// A host folder that shows inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tree {
    /// Absolute host path.
    pub(crate) source: String,
    /// Nothing inside can change it.
    pub(crate) read_only: bool,
    /// On disk it belongs to this user: show it as the sandbox's own (an id-mapped mount; only as root).
    pub(crate) owned_by: Option<HostUser>,
}
