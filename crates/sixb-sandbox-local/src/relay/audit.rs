//! Who hears of denials. The guest makes as many as it likes, so nothing here waits, grows or repeats what it sent.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use sixb_sandbox::{DenialReason, NetworkDenial};
use tokio::sync::mpsc;

/// Denials of one sandbox that are also logged.
const MAX_LOGGED: u32 = 100;
/// Longest target that is passed on, in bytes.
const MAX_TARGET: usize = 300;

/// The denials of one sandbox.
#[derive(Debug, Default)]
pub(super) struct Audit {
    sandbox: String,
    sender: Option<mpsc::Sender<NetworkDenial>>,
    missed: AtomicU64,
    logged: AtomicU32,
}

impl Audit {
    pub(super) fn new(sandbox: &str, sender: Option<mpsc::Sender<NetworkDenial>>) -> Self {
        Self {
            sandbox: sandbox.to_owned(),
            sender,
            ..Self::default()
        }
    }

    /// `target` is a host and a port at most: paths and queries may hold secrets.
    pub(super) fn denied(&self, target: &str, reason: DenialReason) {
        let target = shown(target);
        let logged = self
            .logged
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count < MAX_LOGGED).then_some(count + 1)
            });
        if logged.is_ok() {
            tracing::info!(sandbox = %self.sandbox, %target, %reason, "the sandbox may not reach this");
        }
        if let Some(sender) = &self.sender {
            let missed = self.missed.swap(0, Ordering::Relaxed);
            let denial = NetworkDenial::new(target, reason).missed(missed);
            if sender.try_send(denial).is_err() {
                self.missed.fetch_add(missed + 1, Ordering::Relaxed);
            }
        }
    }
}

fn shown(target: &str) -> String {
    target
        .chars()
        .filter(|character| character.is_ascii_graphic() || *character == ' ')
        .take(MAX_TARGET)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_cleaned_and_those_that_find_no_place_are_counted() {
        let (sender, mut denials) = mpsc::channel(1);
        let audit = Audit::new("s", Some(sender));
        for _ in 0..3 {
            audit.denied("a\r\n\u{1b}[31m.test:80", DenialReason::Origin);
        }
        let first = denials.try_recv().expect("the first has a place");
        assert_eq!((first.target.as_str(), first.missed), ("a[31m.test:80", 0));
        audit.denied(&"x".repeat(1000), DenialReason::Limit);
        let next = denials.try_recv().expect("a place again");
        assert_eq!((next.target.len(), next.missed), (300, 2));
    }
}
