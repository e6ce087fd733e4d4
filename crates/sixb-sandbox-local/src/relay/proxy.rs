//! The proxy's listener: tells HTTP from SOCKS5 by the first byte, and opens what CONNECT and SOCKS ask for.

use std::sync::Arc;

use sixb_sandbox::DenialReason;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::{
    Shared,
    authority::Authority,
    dial::Failure,
    http,
    listen::{OPENING, Stream, first_byte},
    place,
    socks::{self, Parsed, Reply},
};

/// Serves one connection to the proxy.
pub(super) async fn serve(shared: &Arc<Shared>, mut guest: BufReader<impl Stream>) {
    match first_byte(&mut guest).await {
        Some(socks::VERSION) => {
            let agreed = timeout(OPENING, agree(shared, &mut guest)).await;
            if let Ok(Some((authority, upstream))) = agreed {
                place::serve(shared, guest, authority, upstream).await;
            }
        }
        Some(_) => http::proxy(shared, guest).await,
        None => {}
    }
}

/// Opens a place for CONNECT or SOCKS. For https the connection is made now, so that its failure can be told; for http
/// each request makes its own.
pub(super) async fn open(
    shared: &Shared,
    authority: &Authority,
) -> Result<Option<TcpStream>, Failure> {
    let mut here = shared.policy.at(authority).peekable();
    if here.peek().is_none() {
        return Err(Failure::Denied(DenialReason::Origin));
    }
    match here.find(|allowed| allowed.https) {
        Some(allowed) => shared.dialer.dial(allowed).await.map(Some),
        None => Ok(None),
    }
}

/// Speaks SOCKS5 until the connection is open. `None`: it was refused, and the guest knows.
async fn agree<S: Stream>(
    shared: &Shared,
    guest: &mut BufReader<S>,
) -> Option<(Authority, Option<TcpStream>)> {
    let choice = match read(guest, socks::greeting).await? {
        true => socks::CHOOSE_NONE,
        false => socks::NO_METHOD,
    };
    guest.write_all(&choice).await.ok()?;
    if choice == socks::NO_METHOD {
        return None;
    }
    let reply = match read(guest, socks::request).await? {
        Ok(authority) => {
            let authority = shared.policy.named(authority);
            match open(shared, &authority).await {
                Ok(upstream) => {
                    guest.write_all(&Reply::Succeeded.bytes()).await.ok()?;
                    return Some((authority, upstream));
                }
                Err(Failure::Denied(reason)) => {
                    shared.audit.denied(&authority.to_string(), reason);
                    Reply::NotAllowed
                }
                Err(Failure::Failed(_)) => Reply::HostUnreachable,
            }
        }
        Err(reply) => {
            shared
                .audit
                .denied("a SOCKS request", DenialReason::Request);
            reply
        }
    };
    let _ = guest.write_all(&reply.bytes()).await;
    None
}

/// Reads one message, and not a byte more.
async fn read<S: Stream, T>(guest: &mut BufReader<S>, parse: fn(&[u8]) -> Parsed<T>) -> Option<T> {
    let mut bytes = Vec::new();
    loop {
        match parse(&bytes) {
            Parsed::Done(value, _) => return Some(value),
            Parsed::Broken => return None,
            Parsed::Need(length) => {
                let have = bytes.len();
                bytes.resize(length, 0);
                guest.read_exact(&mut bytes[have..]).await.ok()?;
            }
        }
    }
}
