//! The ways out of a machine without a network card: one listener in the guest for each allowed origin, and this broker.
//!
//! In the guest, `/etc/hosts` gives each allowed name a loopback address of its own, where our program listens on the
//! origin's port. It hands each connection over; here it is connected to that origin and to nothing else. The guest
//! resolves nothing and routes nothing, so names and addresses that are not listed do not exist for it.

mod check;
mod public;

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sixb_sandbox::{
    AllowedOrigin, CancellationToken, DenialReason, NetworkDenial, Origin, Result, SandboxError,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Semaphore, mpsc},
    time::timeout,
};

use self::check::Check;
use crate::{
    link::{Conversation, Link},
    wire,
};

/// The project's gateway, as the guest knows it.
pub(crate) const GATEWAY: &str = "gateway.sixb.internal";
/// Connections parked in the guest, so that a new one there finds one at once.
const PARKED: usize = 4;
/// Connections of one machine at the same time.
const MAX_CONNECTIONS: usize = 128;
const CONNECT: Duration = Duration::from_secs(15);
/// How long the guest may take to show what it wants.
const FIRST_WORDS: Duration = Duration::from_secs(30);
/// Names get 127.71.0.1 and so on.
const MAX_ORIGINS: usize = 200;

/// Where one listener of the guest leads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// With where to connect instead of asking the resolver.
    Origin(Origin, Option<SocketAddr>),
    Gateway(SocketAddr),
}

impl Target {
    fn shown(&self) -> String {
        match self {
            Self::Origin(origin, _) => {
                format!("{}://{}:{}", origin.scheme(), origin.host(), origin.port())
            }
            Self::Gateway(_) => format!("http://{GATEWAY}:80"),
        }
    }
}

/// Tells of denials; never waits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Denials {
    to: Option<mpsc::Sender<NetworkDenial>>,
    missed: Arc<AtomicU64>,
}

impl Denials {
    pub(crate) fn new(to: Option<mpsc::Sender<NetworkDenial>>) -> Self {
        Self {
            to,
            missed: Arc::default(),
        }
    }

    fn tell(&self, way: &Way, reason: DenialReason) {
        tracing::info!(way = way.name, %reason, "a connection of the guest was refused");
        let Some(to) = &self.to else { return };
        let missed = self.missed.swap(0, Ordering::Relaxed);
        if to
            .try_send(NetworkDenial::new(way.target.shown(), reason).missed(missed))
            .is_err()
        {
            self.missed.fetch_add(missed + 1, Ordering::Relaxed);
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Way {
    name: String,
    listen: SocketAddr,
    target: Target,
}

/// All ways out of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relay {
    ways: Vec<Way>,
    names: BTreeMap<String, IpAddr>,
}

impl Relay {
    pub(crate) fn new(allowed: &[AllowedOrigin], gateway: Option<SocketAddr>) -> Result<Self> {
        let mut relay = Self {
            ways: Vec::new(),
            names: BTreeMap::new(),
        };
        if let Some(gateway) = gateway {
            let listen = SocketAddr::new(relay.address_of(GATEWAY)?, 80);
            relay.ways.push(Way {
                name: GATEWAY.into(),
                listen,
                target: Target::Gateway(gateway),
            });
        }
        for allowed in allowed {
            let origin = &allowed.origin;
            if origin.host() == GATEWAY {
                if gateway.is_none() {
                    return Err(invalid(
                        origin,
                        "is the project's gateway, and this factory was given none: set `gateway`",
                    ));
                }
                continue;
            }
            let listen = SocketAddr::new(relay.address_of(origin.host())?, origin.port());
            if let Some(other) = relay.ways.iter().find(|way| way.listen == listen) {
                if other.target == Target::Origin(origin.clone(), allowed.address) {
                    continue;
                }
                return Err(invalid(
                    origin,
                    "has the host and port of another allowed origin with another scheme or address: leave one of the two out",
                ));
            }
            relay.ways.push(Way {
                name: allowed.name.clone(),
                listen,
                target: Target::Origin(origin.clone(), allowed.address),
            });
        }
        Ok(relay)
    }

    /// The loopback address under which the guest reaches a host.
    fn address_of(&mut self, host: &str) -> Result<IpAddr> {
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = literal.parse::<IpAddr>() {
            if address.is_loopback() {
                return Ok(address);
            }
            return Err(SandboxError::InvalidInput {
                field: "network",
                value: host.into(),
                reason: "is an address that a machine without a network card cannot have a way to: list the host by its name".into(),
            });
        }
        if host == "localhost" {
            return Ok(IpAddr::from([127, 0, 0, 1]));
        }
        let next = self.names.len() + 1;
        if next > MAX_ORIGINS {
            return Err(SandboxError::LimitExceeded {
                what: "hosts of a restricted network".into(),
                limit: MAX_ORIGINS as u64,
                actual: None,
            });
        }
        let address = IpAddr::from([127, 71, 0, next as u8]);
        Ok(*self.names.entry(host.to_owned()).or_insert(address))
    }

    /// Where the guest listens, in the order by which it names them.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> + '_ {
        self.ways.iter().map(|way| way.listen.to_string())
    }

    /// Lines for the guest's `/etc/hosts`.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = String> + '_ {
        self.names
            .iter()
            .map(|(name, address)| format!("{address} {name}"))
    }
}

fn invalid(origin: &Origin, reason: &str) -> SandboxError {
    SandboxError::InvalidInput {
        field: "network",
        value: origin.to_string(),
        reason: reason.to_owned(),
    }
}

/// Parks connections in the guest and serves those it takes, until `end` fires.
pub(crate) fn serve(relay: Arc<Relay>, link: Link, denials: Denials, end: CancellationToken) {
    if relay.ways.is_empty() {
        return;
    }
    let open = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    for _ in 0..PARKED {
        let open = open.clone();
        let (relay, link, denials, end) =
            (relay.clone(), link.clone(), denials.clone(), end.clone());
        tokio::spawn(async move {
            loop {
                let taken = tokio::select! {
                    taken = park(&link) => taken,
                    () = end.cancelled() => return,
                };
                match taken {
                    Ok((index, talk)) => {
                        let Some(way) = relay.ways.get(index).cloned() else {
                            continue;
                        };
                        let Ok(permit) = open.clone().try_acquire_owned() else {
                            denials.tell(&way, DenialReason::Limit);
                            continue;
                        };
                        let (denials, end) = (denials.clone(), end.clone());
                        tokio::spawn(async move {
                            let _permit = permit;
                            tokio::select! {
                                passed = pass(&way, talk, &denials) => if let Err(error) = passed {
                                    tracing::debug!(way = way.name, %error, "a connection of the guest ended early");
                                },
                                () = end.cancelled() => {}
                            }
                        });
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(300)).await,
                }
            }
        });
    }
}

async fn park(link: &Link) -> io::Result<(usize, Conversation)> {
    let mut talk = link.ask::<&[u8]>(wire::RELAY, &[]).await?;
    let (wire::CONNECT, payload) = talk.from.receive().await? else {
        return Err(wire::broken());
    };
    let fields = wire::unpack(&payload)?;
    let index = wire::number(fields.first().ok_or_else(wire::broken)?)?;
    Ok((usize::try_from(index).unwrap_or(usize::MAX), talk))
}

/// One connection: nothing reaches the origin before the guest's own words fit it.
async fn pass(way: &Way, talk: Conversation, denials: &Denials) -> io::Result<()> {
    let (mut from, mut to) = (talk.from.0, talk.to.0);
    let mut check = match &way.target {
        Target::Origin(origin, _) => Check::of(origin),
        Target::Gateway(_) => Check::http(&[GATEWAY.to_owned(), format!("{GATEWAY}:80")]),
    };
    let mut bytes = vec![0; 64 << 10];
    let mut out = Vec::new();
    let until = tokio::time::Instant::now() + FIRST_WORDS;
    while out.is_empty() {
        let read = tokio::time::timeout_at(until, from.read(&mut bytes))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        if read == 0 {
            return Ok(());
        }
        if let Err(denied) = check.take(&bytes[..read], &mut out) {
            denials.tell(way, denied);
            return refuse(&mut to, &check, denied).await;
        }
    }
    let outer = match connect(&way.target).await {
        Ok(outer) => outer,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            denials.tell(way, DenialReason::Address);
            return refuse(&mut to, &check, DenialReason::Address).await;
        }
        Err(error) => {
            if check.is_http() {
                let body = format!("{}: {error}\n", way.name);
                let head = format!(
                    "HTTP/1.1 502 Bad Gateway\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = to.write_all(head.as_bytes()).await;
            }
            return Err(error);
        }
    };
    let (mut outer_from, mut outer_to) = outer.into_split();
    outer_to.write_all(&out).await?;
    let upward = async {
        loop {
            let read = from.read(&mut bytes).await?;
            if read == 0 {
                outer_to.shutdown().await?;
                return Ok::<_, io::Error>(());
            }
            out.clear();
            if let Err(denied) = check.take(&bytes[..read], &mut out) {
                denials.tell(way, denied);
                outer_to.shutdown().await?;
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            outer_to.write_all(&out).await?;
        }
    };
    let downward = async {
        tokio::io::copy(&mut outer_from, &mut to).await?;
        to.shutdown().await
    };
    tokio::try_join!(upward, downward).map(drop)
}

async fn refuse(
    to: &mut (impl AsyncWriteExt + Unpin),
    check: &Check,
    reason: DenialReason,
) -> io::Result<()> {
    // A client that speaks TLS would take an answer in clear text for a broken server.
    if check.is_http() && reason != DenialReason::Scheme {
        let head = format!(
            "HTTP/1.1 403 Forbidden\r\nx-sixb-denied: {reason}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        to.write_all(head.as_bytes()).await?;
    }
    to.shutdown().await
}

/// Connects to the very address that was checked.
async fn connect(target: &Target) -> io::Result<TcpStream> {
    let origin = match target {
        Target::Gateway(address) | Target::Origin(_, Some(address)) => {
            return timed(TcpStream::connect(*address)).await;
        }
        Target::Origin(origin, None) => origin,
    };
    let host = origin.host().trim_start_matches('[').trim_end_matches(']');
    // A literal that was listed is meant, wherever it is.
    if let Ok(address) = host.parse::<IpAddr>() {
        return timed(TcpStream::connect((address, origin.port()))).await;
    }
    let found: Vec<SocketAddr> = timed(tokio::net::lookup_host((host, origin.port())))
        .await?
        .collect();
    let allowed: Vec<SocketAddr> = found
        .into_iter()
        .filter(|address| {
            public::is_public(address.ip()) || (host == "localhost" && address.ip().is_loopback())
        })
        .collect();
    if allowed.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{host} has no public address"),
        ));
    }
    timed(TcpStream::connect(&allowed[..])).await
}

async fn timed<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(CONNECT, work)
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(origins: &[&str]) -> Vec<AllowedOrigin> {
        origins
            .iter()
            .map(|origin| AllowedOrigin::new(*origin, origin.parse().expect("origin")))
            .collect()
    }

    #[test]
    fn each_name_has_an_address_and_each_origin_a_listener() {
        let relay = Relay::new(
            &allowed(&[
                "https://pypi.org",
                "http://pypi.org",
                "http://127.0.0.1:8080",
                "https://pypi.org",
            ]),
            Some(([127, 0, 0, 1], 4000).into()),
        )
        .expect("relay");
        assert_eq!(
            relay.addresses().collect::<Vec<_>>(),
            [
                "127.71.0.1:80",
                "127.71.0.2:443",
                "127.71.0.2:80",
                "127.0.0.1:8080"
            ]
        );
        assert_eq!(
            relay.hosts().collect::<Vec<_>>(),
            ["127.71.0.1 gateway.sixb.internal", "127.71.0.2 pypi.org"]
        );
        assert_eq!(
            Relay::new(&[], None).expect("relay").addresses().count(),
            0,
            "an empty list leads nowhere"
        );
    }

    #[test]
    fn what_cannot_be_enforced_is_refused_by_name() {
        for (origins, part) in [
            (&["https://192.0.2.1"][..], "by its name"),
            (&["http://gateway.sixb.internal"][..], "given none"),
            (&["http://a.test:443", "https://a.test"][..], "leave one"),
        ] {
            let error = Relay::new(&allowed(origins), None)
                .expect_err("refused")
                .to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
