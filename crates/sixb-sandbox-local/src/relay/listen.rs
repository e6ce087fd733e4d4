//! Accepts the sandbox's connections, within bounds.

use std::{io, sync::Arc, time::Duration};

use sixb_sandbox::DenialReason;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{
    Shared,
    activity::{Active, Clock},
    answer, place,
    plan::Role,
    proxy,
};

/// A connection on which nothing moves for so long is closed.
const IDLE: Duration = Duration::from_secs(300);
/// Whoever connects says what it wants within this time.
pub(super) const OPENING: Duration = Duration::from_secs(30);
/// After a failed accept (the host has no descriptors left): the next try.
const AGAIN: Duration = Duration::from_millis(50);

/// A connection from inside, or what it became.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// Serves one listener until the relay ends.
pub(super) async fn accept(shared: Arc<Shared>, listener: TcpListener, role: Role) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        match shared.connections.clone().try_acquire_owned() {
            Ok(permit) => {
                let serve = serve(shared.clone(), stream, role.clone());
                shared.spawn(async move {
                    serve.await;
                    drop(permit);
                });
            }
            Err(_) => refuse(&shared, stream, &role),
        }
    }
}

async fn serve(shared: Arc<Shared>, stream: TcpStream, role: Role) {
    let _ = stream.set_nodelay(true);
    let clock = Clock::new();
    let guest = BufReader::new(Active::new(stream, clock.clone()));
    let work = async {
        match role {
            Role::Proxy => proxy::serve(&shared, guest).await,
            Role::Direct(authority) => place::serve(&shared, guest, authority, None).await,
        }
    };
    tokio::select! {
        () = work => {}
        () = clock.silent_for(IDLE) => {}
    }
}

/// One too many: told in one write that waits for nobody.
fn refuse(shared: &Shared, stream: TcpStream, role: &Role) {
    let target = match role {
        Role::Proxy => "the proxy".to_owned(),
        Role::Direct(authority) => authority.to_string(),
    };
    shared.audit.denied(&target, DenialReason::Limit);
    let _ = stream.try_write(&answer::over_limit());
}

/// The first byte of a connection, not taken from it.
pub(super) async fn first_byte(guest: &mut BufReader<impl Stream>) -> Option<u8> {
    let byte = async { io::Result::Ok(guest.fill_buf().await?.first().copied()) };
    timeout(OPENING, byte).await.ok()?.ok()?
}
