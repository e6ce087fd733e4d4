//! When a request is made again, and how long to wait before it. Pure but for the clock and the dice.

use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, SystemTime},
};

use super::failure::Failure;

/// The wait before the second attempt; it doubles with each one.
const FIRST: Duration = Duration::from_millis(500);
/// The longest wait of our own.
const LONGEST: Duration = Duration::from_secs(8);
/// The longest wait that a provider may ask for: one that asks for more is unavailable.
const LONGEST_ASKED: Duration = Duration::from_secs(60);

/// How long to wait before attempt `next` (from 2), or `None` when it is not made.
pub(super) fn wait(failure: &Failure, next: u32, most: u32) -> Option<Duration> {
    if !failure.again || next > most {
        return None;
    }
    match failure.after {
        Some(asked) if asked > LONGEST_ASKED => None,
        Some(asked) => Some(asked),
        None => Some(backoff(next, dice())),
    }
}

/// Between half and all of the doubled wait, so that many runs do not come back at once.
fn backoff(next: u32, dice: f64) -> Duration {
    let doubled = FIRST.saturating_mul(1 << (next - 2).min(10)).min(LONGEST);
    doubled.mul_f64(0.5 + dice / 2.0)
}

/// From 0 to 1. The keys of a hasher are random enough to spread requests.
fn dice() -> f64 {
    RandomState::new().hash_one(0) as f64 / u64::MAX as f64
}

/// What `retry-after-ms` (milliseconds) or `retry-after` (seconds, or a date) ask for.
pub(super) fn asked(
    millis: Option<&str>,
    after: Option<&str>,
    now: SystemTime,
) -> Option<Duration> {
    let number = |text: Option<&str>| {
        text?
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|n| n.is_finite() && *n >= 0.0)
    };
    if let Some(millis) = number(millis) {
        return Duration::try_from_secs_f64(millis / 1_000.0).ok();
    }
    if let Some(seconds) = number(after) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(after?.trim()).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        for (next, dice, expect) in [
            (2, 0.0, 250),
            (2, 1.0, 500),
            (3, 1.0, 1_000),
            (4, 1.0, 2_000),
            (9, 1.0, 8_000),
            (60, 1.0, 8_000),
        ] {
            assert_eq!(
                backoff(next, dice),
                Duration::from_millis(expect),
                "{next} {dice}"
            );
        }
        assert!((0.0..=1.0).contains(&dice()));
    }

    #[test]
    fn what_a_provider_asks_for_holds_if_it_is_not_too_long() {
        let busy =
            |after: Option<u64>| Failure::unavailable("busy").after(after.map(Duration::from_secs));
        assert_eq!(wait(&busy(Some(3)), 2, 4), Some(Duration::from_secs(3)));
        assert_eq!(wait(&busy(Some(61)), 2, 4), None);
        assert_eq!(wait(&busy(Some(3)), 5, 4), None, "attempts are bounded");
        assert!(wait(&busy(None), 2, 4).is_some());
        assert_eq!(wait(&Failure::refused("no"), 2, 4), None);
    }

    #[test]
    fn headers_are_read() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for (millis, after, expect) in [
            (None, None, None),
            (None, Some("2"), Some(2_000)),
            (None, Some("0.25"), Some(250)),
            (Some("40"), Some("2"), Some(40)),
            (None, Some("-1"), None),
            (None, Some("NaN"), None),
            (None, Some("1e300"), None),
            (None, Some("soon"), None),
            (None, Some("Tue, 14 Nov 2023 22:13:25 GMT"), Some(5_000)),
            (None, Some("Tue, 14 Nov 2023 22:13:15 GMT"), Some(0)),
        ] {
            assert_eq!(
                asked(millis, after, now),
                expect.map(Duration::from_millis),
                "{millis:?} {after:?}"
            );
        }
    }
}
