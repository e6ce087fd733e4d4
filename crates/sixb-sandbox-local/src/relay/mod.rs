//! Network policy `restricted`: the one way out of a sandbox's empty network, and who guards it.
//!
//! The sandbox's own network holds nothing but loopback. The init process bound listeners there and handed them to the
//! host, so nothing of the relay runs inside: the host accepts, finds out what is asked for, compares it with the list,
//! resolves, checks the address, and connects. Cleartext HTTP is parsed, checked request by request and framed anew; TLS
//! is passed on unaltered once its hello names the listed host.
//!
//! - pure: `plan` (what a sandbox needs), `policy` (yes or why not), `authority`, `socks`, `hello`, `address`
//! - I/O: `listen` (accepts), `proxy` (what a client wants), `place` (traffic for one place), `http`, `dial`
//! - `answer` and `audit`: how a refusal shows inside and outside

mod activity;
mod address;
mod answer;
mod audit;
mod authority;
#[cfg(any(test, fuzzing))]
pub(crate) mod check;
mod dial;
mod hello;
mod http;
mod listen;
mod place;
mod plan;
mod policy;
mod proxy;
mod socks;
#[cfg(test)]
mod tests;

pub(crate) use plan::{RelayPlan, fill, plan};

use std::{io, net::TcpListener, os::fd::OwnedFd, sync::Arc};

use sixb_sandbox::NetworkDenial;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use audit::Audit;
use dial::Dialer;
use plan::Role;
use policy::Policy;

/// Connections of one sandbox at the same time.
const MAX_CONNECTIONS: usize = 256;

/// The relay of one sandbox. Ends with it, and when dropped.
#[derive(Debug)]
pub(crate) struct Relay {
    end: CancellationToken,
    tasks: TaskTracker,
}

impl Relay {
    /// Serves `listeners`, which are those of the plan and in its order, until `end`.
    pub(crate) fn start(
        sandbox: &str,
        plan: RelayPlan,
        listeners: Vec<OwnedFd>,
        denials: Option<mpsc::Sender<NetworkDenial>>,
        end: CancellationToken,
    ) -> io::Result<Self> {
        if listeners.len() != plan.listen.len() {
            return Err(io::Error::other("not all listeners were handed over"));
        }
        let roles = plan.listen.into_iter().map(|(_, role)| role);
        let listeners = listeners.into_iter().zip(roles).collect();
        let audit = Audit::new(sandbox, denials);
        Self::with(plan.policy, listeners, audit, Dialer::host(), end)
    }

    fn with(
        policy: Policy,
        listeners: Vec<(OwnedFd, Role)>,
        audit: Audit,
        dialer: Dialer,
        end: CancellationToken,
    ) -> io::Result<Self> {
        let tasks = TaskTracker::new();
        let shared = Arc::new(Shared {
            policy,
            audit,
            dialer,
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            end: end.clone(),
            tasks: tasks.clone(),
        });
        // From here on, whatever fails ends what was begun.
        let relay = Self { end, tasks };
        for (listener, role) in listeners {
            let listener = TcpListener::from(listener);
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            shared.spawn(listen::accept(shared.clone(), listener, role));
        }
        Ok(relay)
    }

    /// Ends all connections, and waits until they are gone.
    pub(crate) async fn stop(&self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// What all connections of a relay share.
#[derive(Debug)]
struct Shared {
    policy: Policy,
    audit: Audit,
    dialer: Dialer,
    connections: Arc<Semaphore>,
    end: CancellationToken,
    tasks: TaskTracker,
}

impl Shared {
    /// Runs `work` until it is done or the relay ends.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let end = self.end.clone();
        self.tasks.spawn(async move {
            end.run_until_cancelled_owned(work).await;
        });
    }
}
