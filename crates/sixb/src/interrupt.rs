//! Ctrl-C once cancels, twice ends the process at once.

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{failure::Exit, terminal};

/// A token that fires with the first SIGINT, SIGTERM or SIGHUP. With the second one the process ends: the sandbox loses its
/// owner and is killed, and the next sweep removes its files.
pub(crate) fn watch() -> Result<CancellationToken> {
    let token = CancellationToken::new();
    let (mut int, mut term, mut hup) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    );
    tokio::spawn({
        let token = token.clone();
        async move {
            for count in 1.. {
                tokio::select! {
                    _ = int.recv() => {}
                    _ = term.recv() => {}
                    _ = hup.recv() => {}
                }
                if count == 2 {
                    std::process::exit(Exit::CANCELLED.0.into());
                }
                token.cancel();
                if terminal::is_live() {
                    terminal::note("cancelling; Ctrl-C once more ends it at once");
                }
            }
        }
    });
    Ok(token)
}
