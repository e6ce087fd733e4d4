//! From an allowed origin to a connection: names are resolved here, checked here, and the checked address is the one that
//! is connected to. Nobody else resolves anything.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use sixb_sandbox::DenialReason;
use tokio::{net::TcpStream, sync::Semaphore, time::timeout};

use super::{address::is_public, authority::Host, policy::Allowed};

/// From the name to the connection.
const DEADLINE: Duration = Duration::from_secs(10);
/// One of several addresses.
const ONE_ADDRESS: Duration = Duration::from_secs(4);
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 6;
/// Lookups of one sandbox at the same time: each holds a thread that cannot be stopped.
const MAX_LOOKUPS: usize = 8;

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Denied(DenialReason),
    Failed(Fault),
}

/// Trouble beyond the relay, in one stable word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Resolve,
    Connect,
    Timeout,
    Response,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Response => "response",
        })
    }
}

/// Asks for the addresses of a name; may block.
pub(super) type Resolve = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;

/// Makes connections.
pub(super) struct Dialer {
    resolve: Arc<Resolve>,
    lookups: Arc<Semaphore>,
}

impl Dialer {
    /// Resolves as the host does.
    pub(super) fn host() -> Self {
        Self::new(Arc::new(|name| {
            let addresses = (name, 0).to_socket_addrs()?;
            Ok(addresses.map(|address| address.ip()).collect())
        }))
    }

    pub(super) fn new(resolve: Arc<Resolve>) -> Self {
        Self {
            resolve,
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
        }
    }

    /// Connects to an origin.
    pub(super) async fn dial(&self, allowed: &Allowed) -> Result<TcpStream, Failure> {
        timeout(DEADLINE, self.connect(allowed))
            .await
            .unwrap_or(Err(Failure::Failed(Fault::Timeout)))
    }

    async fn connect(&self, allowed: &Allowed) -> Result<TcpStream, Failure> {
        // An address that the operator wrote down is meant; one that a name leads to is checked, every time anew.
        let (addresses, checked) = match (&allowed.authority.host, allowed.address) {
            (_, Some(pinned)) => (vec![pinned], true),
            (Host::Ip(literal), None) => (
                vec![SocketAddr::new(*literal, allowed.authority.port)],
                true,
            ),
            (Host::Name(name), None) => {
                let found = self.lookup(name.clone()).await?;
                if found.is_empty() {
                    return Err(Failure::Failed(Fault::Resolve));
                }
                let public = found.into_iter().filter(|address| is_public(*address));
                let public: Vec<_> = public
                    .take(MAX_ADDRESSES)
                    .map(|address| SocketAddr::new(address, allowed.authority.port))
                    .collect();
                if public.is_empty() {
                    return Err(Failure::Denied(DenialReason::Address));
                }
                (public, false)
            }
        };
        let mut fault = Fault::Connect;
        for address in addresses {
            match timeout(ONE_ADDRESS, TcpStream::connect(address)).await {
                Ok(Ok(stream)) if !checked && is_this_host(&stream) => {
                    return Err(Failure::Denied(DenialReason::Address));
                }
                Ok(Ok(stream)) => {
                    // The relay passes on whole pieces already.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(_)) => fault = Fault::Connect,
                Err(_) => fault = Fault::Timeout,
            }
        }
        Err(Failure::Failed(fault))
    }

    async fn lookup(&self, name: String) -> Result<Vec<IpAddr>, Failure> {
        let failed = Failure::Failed(Fault::Resolve);
        let permit = self.lookups.clone().acquire_owned().await;
        let permit = permit.map_err(|_| failed)?;
        let resolve = self.resolve.clone();
        let found = tokio::task::spawn_blocking(move || {
            // Held by the thread: it may outlast whoever waits for it.
            let _permit = permit;
            resolve(&name)
        });
        found.await.ok().and_then(Result::ok).ok_or(failed)
    }
}

/// A public address can be this host's own; from here, services answer there that no stranger reaches.
fn is_this_host(stream: &TcpStream) -> bool {
    match (stream.local_addr(), stream.peer_addr()) {
        (Ok(local), Ok(peer)) => local.ip() == peer.ip(),
        _ => true,
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").finish_non_exhaustive()
    }
}
