//! Hosts, in the one form that they are compared in.

use std::net::IpAddr;

use url::Host as Parsed;

/// The last labels of names that lead to no public host.
const INTERNAL: &[&str] = &[
    "consul",
    "corp",
    "home",
    "home.arpa",
    "in-addr.arpa",
    "internal",
    "intra",
    "intranet",
    "ip6.arpa",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "svc",
];

/// A host after IDNA, in lower case, without a trailing dot; an address in whatever notation as a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    /// `None` when a name is no name: `a..b`, `.`, `a*b`.
    pub(super) fn new(host: Parsed<&str>) -> Option<Self> {
        match host {
            Parsed::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                // WHATWG takes `*` for a letter, also as `%2a` or `＊`: a rule would not be what it looks like.
                let is_name = name.len() <= 253
                    && !name.contains('*')
                    && name.split('.').all(|label| (1..=63).contains(&label.len()));
                is_name.then(|| Self::Name(name.to_ascii_lowercase()))
            }
            // `::ffff:127.0.0.1` is 127.0.0.1, and a rule about one holds for the other.
            Parsed::Ipv4(address) => Some(Self::Address(address.into())),
            Parsed::Ipv6(address) => Some(Self::Address(IpAddr::V6(address).to_canonical())),
        }
    }

    pub(super) fn is_internal(&self) -> bool {
        match self {
            Self::Address(_) => true,
            Self::Name(name) => {
                !name.contains('.')
                    || INTERNAL
                        .iter()
                        .any(|zone| name == zone || is_below(name, zone))
            }
        }
    }
}

/// Whether `name` is a name below `zone`: label by label, and not `zone` itself.
pub(super) fn is_below(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone)
        .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_is_by_labels() {
        for (name, zone, expect) in [
            ("a.b.test", "b.test", true),
            ("x.a.b.test", "b.test", true),
            ("b.test", "b.test", false),
            ("ab.test", "b.test", false),
            (".b.test", "b.test", false),
            ("b.test.evil", "b.test", false),
        ] {
            assert_eq!(is_below(name, zone), expect, "{name} {zone}");
        }
    }

    #[test]
    fn internal_places() {
        for (host, expect) in [
            ("localhost", true),
            ("intranet", true),
            ("a.localhost", true),
            ("metadata.google.internal", true),
            ("printer.local", true),
            ("nas.home.arpa", true),
            ("home.arpa", true),
            ("kubernetes.default.svc", true),
            ("db.service.consul", true),
            ("x.onion", true),
            ("wiki.intra", true),
            ("1.0.0.127.in-addr.arpa", true),
            ("1.ip6.arpa", true),
            ("8.8.8.8", true),
            ("0x7f.1", true),
            ("2130706433", true),
            ("[::1]", true),
            ("[::ffff:127.0.0.1]", true),
            ("svc.test", false),
            ("local.test", false),
            ("notlocal", true),
            ("a.notlocal", false),
        ] {
            let parsed = Parsed::parse(host).expect(host);
            let parsed = match &parsed {
                Parsed::Domain(name) => Parsed::Domain(name.as_str()),
                Parsed::Ipv4(address) => Parsed::Ipv4(*address),
                Parsed::Ipv6(address) => Parsed::Ipv6(*address),
            };
            let host_ = Host::new(parsed).expect(host);
            assert_eq!(host_.is_internal(), expect, "{host}");
        }
    }
}
