//! Traffic for one place (host and port), from a direct port or through CONNECT or SOCKS: the first bytes decide between
//! TLS and cleartext, and must fit an origin that is listed there.

use std::sync::Arc;

use sixb_sandbox::DenialReason;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional_with_sizes},
    net::TcpStream,
    time::timeout,
};

use super::{
    Shared, answer,
    authority::{Authority, Host},
    dial::Failure,
    hello::{self, Hello},
    http,
    listen::{OPENING, Stream, first_byte},
    policy::Allowed,
};

/// Bytes under way in each direction of a tunnel.
const COPY_BUFFER: usize = 32 << 10;

/// Serves a connection to `authority`; `upstream` is the connection to its https origin, if it was made already.
pub(super) async fn serve(
    shared: &Arc<Shared>,
    mut guest: BufReader<impl Stream>,
    authority: Authority,
    upstream: Option<TcpStream>,
) {
    let tls = match first_byte(&mut guest).await {
        Some(byte) => byte == hello::HANDSHAKE,
        None => return,
    };
    match (shared.policy.find(tls, &authority).cloned(), tls) {
        (Ok(allowed), false) => http::origin(shared, guest, allowed).await,
        (Ok(allowed), true) => match tunnel(shared, &mut guest, &allowed, upstream).await {
            Ok(()) => {}
            Err(Failure::Denied(reason)) => {
                shared.audit.denied(&format!("https://{authority}"), reason);
                let _ = guest.write_all(&answer::alert::DENIED).await;
            }
            Err(Failure::Failed(_)) => {
                let _ = guest.write_all(&answer::alert::FAILED).await;
            }
        },
        (Err(reason), false) => http::refuse(shared, guest, authority, reason).await,
        (Err(reason), true) => {
            shared.audit.denied(&format!("https://{authority}"), reason);
            let _ = guest.write_all(&answer::alert::DENIED).await;
        }
    }
}

/// Checks the hello, connects, and passes everything on as it is.
async fn tunnel(
    shared: &Shared,
    guest: &mut BufReader<impl Stream>,
    allowed: &Allowed,
    upstream: Option<TcpStream>,
) -> Result<(), Failure> {
    let hello = timeout(OPENING, read_hello(guest, &allowed.authority.host))
        .await
        .unwrap_or(Err(DenialReason::Request))
        .map_err(Failure::Denied)?;
    let mut upstream = match upstream {
        Some(upstream) => upstream,
        None => shared.dialer.dial(allowed).await?,
    };
    // Whoever ends first ends it for both; there is nobody to tell.
    if upstream.write_all(&hello).await.is_ok() {
        let _ = copy_bidirectional_with_sizes(guest, &mut upstream, COPY_BUFFER, COPY_BUFFER).await;
    }
    Ok(())
}

/// Reads until the hello is whole, and a little more perhaps; all of it is to be passed on.
async fn read_hello(
    guest: &mut BufReader<impl Stream>,
    host: &Host,
) -> Result<Vec<u8>, DenialReason> {
    let mut bytes = Vec::with_capacity(2048);
    loop {
        match hello::parse(&bytes) {
            Hello::Names(name) if names(name.as_deref(), host) => return Ok(bytes),
            Hello::Names(_) => return Err(DenialReason::Authority),
            Hello::Broken => return Err(DenialReason::Request),
            Hello::Incomplete => {}
        }
        let read = (&mut *guest)
            .take((hello::MAX_BYTES - bytes.len()) as u64)
            .read_buf(&mut bytes)
            .await;
        if !matches!(read, Ok(1..)) {
            return Err(DenialReason::Request);
        }
    }
}

/// Whether a hello is meant for the host. An address has no server name, though some clients send it as one.
fn names(name: Option<&str>, host: &Host) -> bool {
    match (name, host) {
        (Some(name), Host::Name(host)) => name == host,
        (None, Host::Name(_)) => false,
        (Some(name), Host::Ip(address)) => name == address.to_string(),
        (None, Host::Ip(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hello_names_the_host_and_nothing_else() {
        for (name, host, fits) in [
            (Some("a.test"), "a.test", true),
            (Some("b.test"), "a.test", false),
            (Some("a.test."), "a.test", false),
            (Some("x.a.test"), "a.test", false),
            (None, "a.test", false),
            (None, "10.0.0.1", true),
            (None, "[::1]", true),
            (Some("10.0.0.1"), "10.0.0.1", true),
            (Some("a.test"), "10.0.0.1", false),
        ] {
            let host = Host::parse(host).expect(host);
            assert_eq!(names(name, &host), fits, "{name:?} {host}");
        }
    }
}
