//! Ways out under a restricted network: the machine has no network card, so a connection to a listed origin is taken
//! here, on loopback, and handed to the host over a connection that the host parked beforehand. The host decides.

use std::{
    io::{self, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::{Guest, wire};

/// How long a connection waits for the host to park one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections that the host opened and that wait for use.
#[derive(Default)]
pub(crate) struct Parked {
    streams: Mutex<Vec<UnixStream>>,
    more: Condvar,
}

impl Parked {
    pub(crate) fn park(&self, stream: UnixStream) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.push(stream);
        self.more.notify_one();
    }

    fn take(&self) -> Option<UnixStream> {
        let until = Instant::now() + PATIENCE;
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(stream) = streams.pop() {
                return Some(stream);
            }
            let left = until.checked_duration_since(Instant::now())?;
            let waited = self.more.wait_timeout(streams, left);
            streams = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Listens on each address; its place in the list is what the host is told.
pub(crate) fn listen(guest: &Arc<Guest>, addresses: &[String]) -> io::Result<()> {
    for (index, address) in addresses.iter().enumerate() {
        let listener = TcpListener::bind(address.as_str()).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
        })?;
        let guest = guest.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let guest = guest.clone();
                thread::spawn(move || pass(&guest, index, stream));
            }
        });
    }
    Ok(())
}

fn pass(guest: &Guest, index: usize, inner: TcpStream) {
    let Some(mut outer) = guest.parked.take() else {
        return;
    };
    if outer
        .write_all(&wire::frame(
            wire::CONNECT,
            &wire::pack(&[index.to_string()]),
        ))
        .is_err()
    {
        return;
    }
    let (Ok(mut from), Ok(mut to)) = (inner.try_clone(), outer.try_clone()) else {
        return;
    };
    let upward = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut inner = inner;
    let _ = io::copy(&mut outer, &mut inner);
    let _ = inner.shutdown(Shutdown::Both);
    let _ = upward.join();
}
