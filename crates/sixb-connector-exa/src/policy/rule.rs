//! One rule of a policy, parsed.

use std::{fmt, net::IpAddr, str::FromStr};

use url::Host as Parsed;

use super::{
    host::{Host, is_below},
    path::{self, Segments},
    url::WebUrl,
};

/// A host, or the names below one, perhaps with scheme, port and path: see the [module](super).
///
/// `Display` gives its normal form, which parses to the same rule.
///
/// ```
/// use sixb_connector_exa::DomainRule;
///
/// let rule: DomainRule = "HTTPS://*.Bücher.test:8443/neu/".parse()?;
/// assert_eq!(rule.to_string(), "https://*.xn--bcher-kva.test:8443/neu");
/// # Ok::<(), sixb_connector_exa::policy::InvalidRule>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DomainRule {
    scheme: Option<&'static str>,
    host: Pattern,
    port: Option<u16>,
    path: Segments,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Pattern {
    Exact(Host),
    /// The names below this one.
    Below(String),
}

/// A text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the domain rule {}{problem}", self.shown())]
pub struct InvalidRule {
    /// The text, unless it may hold a password.
    pub text: Option<String>,
    /// What is wrong, and how to write it.
    pub problem: &'static str,
}

impl InvalidRule {
    fn shown(&self) -> String {
        match &self.text {
            Some(text) => format!("{text:?} "),
            None => String::new(),
        }
    }
}

impl DomainRule {
    /// Parses `[scheme://]host[:port][/path]`, where `host` may begin with `*.`.
    ///
    /// # Errors
    /// What is wrong with it, and how to write it.
    pub fn parse(text: &str) -> Result<Self, InvalidRule> {
        parse(text).map_err(|problem| InvalidRule {
            text: (!text.contains('@')).then(|| text.chars().take(200).collect()),
            problem,
        })
    }

    /// Whether it allows `url`: in all readings of its path, at the port it names or the scheme's own.
    pub(super) fn allows(&self, url: &WebUrl) -> bool {
        self.covers_host(url)
            && self.scheme.is_none_or(|scheme| scheme == url.scheme())
            && match self.port {
                Some(port) => url.known_port() == Some(port),
                None => url.port().is_none(),
            }
            && url
                .readings
                .iter()
                .all(|reading| path::is_at_or_below(reading, &self.path))
    }

    /// Whether it denies `url`: in any reading of its path, at the port it names or at any.
    pub(super) fn denies(&self, url: &WebUrl) -> bool {
        self.covers_host(url)
            && self.port.is_none_or(|port| url.known_port() == Some(port))
            && url
                .readings
                .iter()
                .any(|reading| path::is_at_or_below_in_any_case(reading, &self.path))
    }

    pub(super) fn covers_host(&self, url: &WebUrl) -> bool {
        match (&self.host, &url.host) {
            (Pattern::Exact(host), found) => host == found,
            (Pattern::Below(zone), Host::Name(name)) => is_below(name, zone),
            (Pattern::Below(_), Host::Address(_)) => false,
        }
    }

    /// What a provider is told to include: nothing for places that no provider knows. Ports and schemes it cannot be told.
    pub(super) fn include_filter(&self) -> Option<String> {
        let internal = match &self.host {
            Pattern::Exact(host) => host.is_internal(),
            Pattern::Below(zone) => Host::Name(format!("a.{zone}")).is_internal(),
        };
        (!internal).then(|| self.filter())
    }

    /// What a provider is told to exclude: nothing where it would exclude more than the rule does.
    pub(super) fn exclude_filter(&self) -> Option<String> {
        self.port.is_none().then(|| self.filter())
    }

    fn filter(&self) -> String {
        format!("{}{}", self.host, path::text(&self.path))
    }
}

/// Longest rule, in bytes, also in its normal form.
const MAX_RULE: usize = 2_048;

fn parse(text: &str) -> Result<DomainRule, &'static str> {
    const TOO_LONG: &str = "is longer than 2048 bytes";
    if text.len() > MAX_RULE {
        return Err(TOO_LONG);
    }
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("is empty or holds blanks: write host, *.host or host/path");
    }
    let (scheme, rest) = match text.split_once("://") {
        None => (None, text),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Some("https"), rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Some("http"), rest),
        Some(_) => {
            return Err(
                "has another scheme than http or https: write https://host, or leave the scheme out",
            );
        }
    };
    if rest.contains(['?', '#', '\\']) {
        return Err(
            "has a query, a fragment or a backslash: only host, port and path can be compared",
        );
    }
    if text.contains(',') {
        return Err("holds a comma: write each rule as a text of its own");
    }
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    if authority.contains('@') {
        return Err("holds a user or a password: write the host only");
    }
    if path.contains('*') {
        return Err(
            "has a wildcard in its path: a path covers what is below it, so a.test/private is enough",
        );
    }
    let (host, port) = match authority.rsplit_once(':') {
        // A colon inside of brackets belongs to an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port_of(port)?)),
        _ => (authority, None),
    };
    let rule = DomainRule {
        scheme,
        host: pattern(host)?,
        port,
        path: path::plain(path)?,
    };
    if let (Pattern::Exact(Host::Address(_)), [only]) = (&rule.host, &rule.path[..])
        && only.iter().all(u8::is_ascii_digit)
    {
        return Err("looks like a range of addresses, which are not supported: name each address");
    }
    match rule.to_string().len() <= MAX_RULE {
        true => Ok(rule),
        false => Err(TOO_LONG),
    }
}

fn port_of(text: &str) -> Result<u16, &'static str> {
    const WRONG: &str = "has a port that is no number from 1 to 65535";
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits && port > 0 => Ok(port),
        _ => Err(WRONG),
    }
}

fn pattern(text: &str) -> Result<Pattern, &'static str> {
    let (below, name) = match text.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, text),
    };
    if name == "*" || text == "*" {
        return Err("allows everything: leave the list out instead");
    }
    if name.contains('*') {
        return Err("has a wildcard inside: only a whole first label can be one, *.host");
    }
    const WRONG: &str = "has a host that is not valid: write host or *.host";
    let parsed = Parsed::parse(name).map_err(|_| WRONG)?;
    let host = match &parsed {
        Parsed::Domain(name) => Host::new(Parsed::Domain(name)),
        Parsed::Ipv4(address) => Host::new(Parsed::Ipv4(*address)),
        Parsed::Ipv6(address) => Host::new(Parsed::Ipv6(*address)),
    };
    let host = host.ok_or(WRONG)?;
    // WHATWG takes more for a name, such as `!a.test`: a rule about it would cover no page.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if matches!(&host, Host::Name(name) if !name.bytes().all(is_plain)) {
        return Err(WRONG);
    }
    match (below, host) {
        (false, host) => Ok(Pattern::Exact(host)),
        (true, Host::Name(name)) => Ok(Pattern::Below(name)),
        (true, Host::Address(_)) => Err("asks for names below an IP address, which has none"),
    }
}

impl FromStr for DomainRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        Self::parse(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(Host::Name(name)) => f.write_str(name),
            Self::Exact(Host::Address(IpAddr::V4(address))) => write!(f, "{address}"),
            Self::Exact(Host::Address(IpAddr::V6(address))) => write!(f, "[{address}]"),
            Self::Below(zone) => write!(f, "*.{zone}"),
        }
    }
}

impl fmt::Display for DomainRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scheme) = self.scheme {
            write!(f, "{scheme}://")?;
        }
        write!(f, "{}", self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(&path::text(&self.path))
    }
}
