//! Host and port as a guest writes them: one canonical form, so that a name is compared and never interpreted.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

/// The longest name of the DNS.
const MAX_NAME: usize = 253;

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Host {
    /// Lower case, no trailing dot.
    Name(String),
    /// An address.
    Ip(IpAddr),
}

impl Host {
    /// Parses a name, an IPv4 address in four plain decimals, or an IPv6 address in brackets.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(address) = text.strip_prefix('[') {
            let address: Ipv6Addr = address.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Ip(address.into()));
        }
        if let Ok(address) = text.parse() {
            return Some(Self::Ip(IpAddr::V4(address)));
        }
        Self::name(text)
    }

    /// A name, and nothing that a resolver could take for an address.
    pub(crate) fn name(text: &str) -> Option<Self> {
        let name = text.strip_suffix('.').unwrap_or(text);
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        // Resolvers read `127.1`, `0x7f.1` and `2130706433` as addresses: no top-level name begins with a digit.
        let last = name.rsplit('.').next()?;
        let valid = name.len() <= MAX_NAME
            && name.split('.').all(label)
            && !last.starts_with(|first: char| first.is_ascii_digit());
        valid.then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Authority {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Authority {
    /// Parses `host[:port]`. User names, spaces and anything else are refused.
    pub(crate) fn parse(text: &str, default_port: Option<u16>) -> Option<Self> {
        let end = match text.strip_prefix('[') {
            Some(rest) => rest.find(']')? + 2,
            None => text.find(':').unwrap_or(text.len()),
        };
        let (host, port) = text.split_at_checked(end)?;
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => default_port?,
            None => return None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|port| *port != 0)?
            }
            Some(_) => return None,
        };
        Some(Self {
            host: Host::parse(host)?,
            port,
        })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_have_one_form() {
        for (text, expect) in [
            ("a.test:80", Some("a.test:80")),
            ("A.Test.:80", Some("a.test:80")),
            ("a.test", Some("a.test:443")),
            ("127.0.0.1:1", Some("127.0.0.1:1")),
            ("[::1]:8080", Some("[::1]:8080")),
            ("[0:0::1]", Some("[::1]:443")),
            ("a_b-c.test:65535", Some("a_b-c.test:65535")),
            ("", None),
            (":80", None),
            ("a.test:", None),
            ("a.test:0", None),
            ("a.test:65536", None),
            ("a.test:+80", None),
            ("a.test:80:80", None),
            ("a.test..:80", None),
            ("user@a.test:80", None),
            ("a.test/x:80", None),
            ("a test:80", None),
            ("a.test\r\n:80", None),
            ("::1:80", None),
            ("[::1", None),
            ("[::1]x:80", None),
            ("[a.test]:80", None),
            ("127.1:80", None),
            ("0x7f.0x1:80", None),
            ("2130706433:80", None),
            ("0127.0.0.1:80", None),
            ("1.1.1.1.1:80", None),
            ("é.test:80", None),
        ] {
            let parsed = Authority::parse(text, Some(443)).map(|authority| authority.to_string());
            assert_eq!(parsed.as_deref(), expect, "{text:?}");
        }
        assert_eq!(Authority::parse("a.test", None), None, "no default");
        assert_eq!(Host::name(&"a.".repeat(140)), None, "too long");
    }
}
