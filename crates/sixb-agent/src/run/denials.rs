//! What a run's sandbox tried to reach and may not becomes part of the run: people read it in its diagnostics.

use sixb_sandbox::{CreateOptions, NetworkDenial};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::{Diagnostic, feed::Feed};

/// A guest that knocks faster than this is counted, not listed: see [`NetworkDenial::missed`].
const WAITING: usize = 64;

/// Listens to the denials of the sandbox that `options` make, until the handle is dropped. Whoever listened before
/// still hears them.
pub(super) fn listen(
    mut options: CreateOptions,
    feed: Feed,
) -> (CreateOptions, AbortOnDropHandle<()>) {
    let (sender, mut denials) = mpsc::channel::<NetworkDenial>(WAITING);
    let other = options.on_denied.replace(sender);
    let listening = tokio::spawn(async move {
        while let Some(denial) = denials.recv().await {
            feed.diagnostic_now(diagnostic(&denial));
            if let Some(other) = &other {
                let _ = other.try_send(denial);
            }
        }
    });
    (options, AbortOnDropHandle::new(listening))
}

fn diagnostic(denial: &NetworkDenial) -> Diagnostic {
    let mut text = format!(
        "the sandbox may not reach {} ({})",
        denial.target, denial.reason
    );
    if denial.missed > 0 {
        text.push_str(&format!("; {} more before it", denial.missed));
    }
    Diagnostic::warning("network", "network_denied", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sixb_sandbox::DenialReason;

    #[test]
    fn a_denial_names_target_and_reason() {
        let denial = NetworkDenial::new("http://a.test:80", DenialReason::Origin);
        let text = diagnostic(&denial).message;
        assert_eq!(text, "the sandbox may not reach http://a.test:80 (origin)");
        let text = diagnostic(&denial.missed(7)).message;
        assert!(text.ends_with("; 7 more before it"), "{text}");
    }
}
