//! Values that people write: sizes, durations, networks. Parsed once, the same from a flag and from `sixb.toml`.
//!
//! Each error says what is wrong and what would be right; whoever parsed adds the name of the flag or key.

use std::{fmt, str::FromStr, time::Duration};

use serde::Deserialize;
use sixb_sandbox::{AllowedOrigin, NetworkPolicy, Origin, SandboxError};

use crate::terminal;

/// A number of bytes: `512M`, `2GiB`, `67108864`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct MemorySize(pub(crate) u64);

/// Below this not even a shell starts, and the failure would look like a defect.
const LEAST_MEMORY: u64 = 16 << 20;

impl FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" => 0,
            "k" | "kib" => 10,
            "m" | "mib" => 20,
            "g" | "gib" => 30,
            "t" | "tib" => 40,
            _ => return Err("is not a size: write a whole number of bytes, or one with K, M, G or T, such as 512M".into()),
        };
        let bytes = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(1 << shift))
            .ok_or("is not a size: write a whole number of bytes, or one with K, M, G or T, such as 512M")?;
        if bytes < LEAST_MEMORY {
            return Err("is too small for a shell to start: give 16M or more".into());
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.trailing_zeros() {
            30.. => write!(f, "{}G", self.0 >> 30),
            20..30 => write!(f, "{}M", self.0 >> 20),
            _ => write!(f, "{}", self.0),
        }
    }
}

/// A length of time: `500ms`, `30s`, `2m`, `1h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Timeout(pub(crate) Duration);

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let millis =
            match unit {
                "ms" => 1,
                "s" => 1_000,
                "m" => 60_000,
                "h" => 3_600_000,
                "" if digits > 0 && number.bytes().any(|digit| digit != b'0') => {
                    return Err(format!("has no unit: write {text}s, {text}m or {text}ms"));
                }
                "" if digits > 0 => 1,
                _ => return Err(
                    "is not a length of time: write a whole number with ms, s, m or h, such as 30s"
                        .into(),
                ),
            };
        let millis = number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(millis))
            .ok_or(
                "is not a length of time: write a whole number with ms, s, m or h, such as 30s",
            )?;
        match millis {
            0 => Err("is no time at all: give at least 1ms".into()),
            // Deadlines are added to the clock: a bound keeps that sum in range.
            604_800_001.. => Err("is over a week: give 168h or less".into()),
            millis => Ok(Self(Duration::from_millis(millis))),
        }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            millis if millis % 1_000 != 0 => write!(f, "{millis}ms"),
            millis if millis % 60_000 != 0 => write!(f, "{}s", millis / 1_000),
            millis => write!(f, "{}m", millis / 60_000),
        }
    }
}

/// What a sandbox may reach: `none`, `all`, or origins with commas between.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Network(pub(crate) NetworkPolicy);

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let items: Vec<&str> = text.split(',').map(str::trim).collect();
        match items[..] {
            ["none"] => return Ok(Self(NetworkPolicy::None)),
            ["all"] => return Ok(Self(NetworkPolicy::All)),
            [""] => {
                return Err(
                    "is empty: write none, all, or origins such as https://pypi.org".into(),
                );
            }
            _ => {}
        }
        let alone = items.len() == 1;
        let origin = |item: &str| match item {
            "none" | "all" => Err(format!(
                "mixes {item} with origins: write {item} alone, or only origins"
            )),
            "" => Err("has an empty place between commas: take out the extra comma".into()),
            item => item
                .parse::<Origin>()
                .map(|origin| AllowedOrigin::new(item, origin))
                .map_err(|error| match error {
                    // Whoever parsed names the whole value: one origin of several is named here.
                    SandboxError::InvalidInput { reason, .. } if alone => {
                        format!("{reason}; or write none or all")
                    }
                    SandboxError::InvalidInput { value, reason, .. } => {
                        format!("is refused: {} {reason}", terminal::plain(&value))
                    }
                    other => other.to_string(),
                }),
        };
        let origins = items.into_iter().map(origin).collect::<Result<_, _>>()?;
        Ok(Self(NetworkPolicy::Restricted(origins)))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            NetworkPolicy::Restricted(origins) => {
                let origins: Vec<String> = origins
                    .iter()
                    .map(|allowed| allowed.origin.to_string())
                    .collect();
                f.write_str(&origins.join(","))
            }
            NetworkPolicy::All => f.write_str("all"),
            _ => f.write_str("none"),
        }
    }
}

/// The backend that makes sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Provider {
    /// Linux namespaces: built in.
    Local,
    /// A microVM for each sandbox.
    Smolvm,
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "local" => Ok(Self::Local),
            "smolvm" => Ok(Self::Smolvm),
            _ => Err("is not a sandbox provider: use local or smolvm".into()),
        }
    }
}

macro_rules! from_string {
    ($($type:ty),*) => {$(
        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse().map_err(|reason| format!("{text:?} {reason}"))
            }
        }
    )*};
}
from_string!(MemorySize, Timeout, Network, Provider);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("512M", 512 << 20),
            ("512m", 512 << 20),
            ("2GiB", 2 << 30),
            ("67108864", 64 << 20),
            ("20480K", 20 << 20),
        ] {
            assert_eq!(text.parse(), Ok(MemorySize(bytes)), "{text}");
        }
        for text in [
            "",
            "M",
            "1.5G",
            "-1",
            "512MB",
            "lots",
            "0",
            "1M",
            "99999999999T",
        ] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
    }

    #[test]
    fn times() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                text.parse(),
                Ok(Timeout(Duration::from_millis(millis))),
                "{text}"
            );
        }
        for text in [
            "",
            "s",
            "1.5s",
            "-1s",
            "0s",
            "10d",
            "169h",
            "99999999999999999999s",
        ] {
            assert!(text.parse::<Timeout>().is_err(), "{text}");
        }
        assert!(
            "30".parse::<Timeout>()
                .is_err_and(|error| error.contains("30s"))
        );
        assert!(
            "0".parse::<Timeout>()
                .is_err_and(|error| error.contains("1ms") && !error.contains("0s")),
            "no advice that is refused itself"
        );
        for text in ["500ms", "30s", "2m", "90s"] {
            assert_eq!(
                text.parse::<Timeout>()
                    .map(|time| time.to_string())
                    .as_deref(),
                Ok(text)
            );
        }
    }

    #[test]
    fn networks() {
        assert_eq!("none".parse(), Ok(Network(NetworkPolicy::None)));
        assert_eq!("all".parse(), Ok(Network(NetworkPolicy::All)));
        for text in ["none", "all", "https://pypi.org,http://a.test:8080"] {
            assert_eq!(
                text.parse::<Network>()
                    .map(|network| network.to_string())
                    .as_deref(),
                Ok(text)
            );
        }
        let Ok(Network(NetworkPolicy::Restricted(origins))) =
            "https://pypi.org, http://a.test:8080".parse()
        else {
            panic!("two origins");
        };
        assert_eq!(origins[1].origin.to_string(), "http://a.test:8080");
        for text in [
            "",
            "none,all",
            "all,https://a.test",
            "https://a.test,",
            "ftp://a.test",
            "https://*.a.test",
            "a.test/x",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_unknown_backend_names_those_there_are() {
        assert_eq!("local".parse(), Ok(Provider::Local));
        assert_eq!("smolvm".parse(), Ok(Provider::Smolvm));
        for text in ["docker", "Local", ""] {
            assert!(
                text.parse::<Provider>()
                    .is_err_and(|error| error.contains("local or smolvm")),
                "{text}"
            );
        }
    }
}
