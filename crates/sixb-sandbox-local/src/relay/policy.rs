//! What one sandbox may reach, as a pure question with a yes or a reason.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use sixb_sandbox::DenialReason;

use super::authority::{Authority, Host};

/// One allowed origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) https: bool,
    pub(crate) authority: Authority,
    /// The operator's word on where it is; not checked.
    pub(crate) address: Option<SocketAddr>,
}

/// The list.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    pub(super) allowed: Vec<Arc<Allowed>>,
    /// The loopback addresses inside that stand for names.
    pub(super) names: HashMap<Ipv4Addr, Host>,
}

impl Policy {
    /// The origin of this scheme at this place.
    pub(super) fn find(
        &self,
        https: bool,
        authority: &Authority,
    ) -> Result<&Arc<Allowed>, DenialReason> {
        let mut here = self.at(authority).peekable();
        if here.peek().is_none() {
            return Err(DenialReason::Origin);
        }
        here.find(|allowed| allowed.https == https)
            .ok_or(DenialReason::Scheme)
    }

    /// The origins at this place: one, or one for each scheme.
    pub(super) fn at(&self, authority: &Authority) -> impl Iterator<Item = &Arc<Allowed>> {
        self.allowed
            .iter()
            .filter(move |allowed| allowed.authority == *authority)
    }

    /// A client that resolved a name by itself asks for the address that stands for it inside: the name is meant.
    pub(super) fn named(&self, mut authority: Authority) -> Authority {
        if let Host::Ip(IpAddr::V4(address)) = authority.host
            && let Some(name) = self.names.get(&address)
        {
            authority.host = name.clone();
        }
        authority
    }
}
