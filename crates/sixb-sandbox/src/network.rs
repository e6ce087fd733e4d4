//! What a sandbox may reach: nothing, listed origins, or everything.

use std::{fmt, net::SocketAddr, str::FromStr};

use crate::SandboxError;

/// What a sandbox may reach. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkPolicy {
    /// Loopback only.
    #[default]
    None,
    /// Only these origins; scheme, host and port are all enforced. An empty list denies everything.
    Restricted(Vec<AllowedOrigin>),
    /// Whatever the host reaches.
    All,
}

/// An allowed origin and what the operator calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllowedOrigin {
    /// A name for events and messages.
    pub name: String,
    /// Where it is.
    pub origin: Origin,
    /// Where to connect instead of asking the resolver: [`AllowedOrigin::address`].
    pub address: Option<SocketAddr>,
}

impl AllowedOrigin {
    /// Allows `origin` under a name.
    pub fn new(name: impl Into<String>, origin: Origin) -> Self {
        Self {
            name: name.into(),
            origin,
            address: None,
        }
    }

    /// Connects to this address of the host's network, whatever the name resolves to, like `curl --connect-to`.
    ///
    /// It is the operator's own word and so not checked: this is how a name is let through to a service on loopback or
    /// in a private network, which a resolved name never reaches. The port may differ from the origin's.
    ///
    /// ```
    /// use sixb_sandbox::{AllowedOrigin, NetworkPolicy};
    /// let wiki = AllowedOrigin::new("wiki", "https://wiki.internal".parse()?)
    ///     .address(([10, 0, 0, 7], 8443).into());
    /// let policy = NetworkPolicy::Restricted(vec![wiki]);
    /// # Ok::<(), sixb_sandbox::SandboxError>(())
    /// ```
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }
}

/// Something that a sandbox tried to reach and may not: see [`CreateOptions::on_denied`](crate::CreateOptions::on_denied).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkDenial {
    /// What was asked for, as far as it is known: `https://host:port` or `host:port`. The guest chose it: it is cut to
    /// 300 bytes and holds neither control characters nor a path.
    pub target: String,
    /// Why not.
    pub reason: DenialReason,
    /// How many denials before this one found no place in the channel.
    pub missed: u64,
}

impl NetworkDenial {
    /// A denial; nothing was missed.
    pub fn new(target: impl Into<String>, reason: DenialReason) -> Self {
        Self {
            target: target.into(),
            reason,
            missed: 0,
        }
    }

    /// Sets how many denials were lost before this one.
    pub fn missed(mut self, count: u64) -> Self {
        self.missed = count;
        self
    }
}

/// Why a sandbox may not reach something. Shown as one stable word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DenialReason {
    /// `origin`: host and port are not listed.
    Origin,
    /// `scheme`: host and port are listed, but not for what was spoken (cleartext to https, TLS to http).
    Scheme,
    /// `address`: the name leads to an address that names may not lead to (loopback, private, metadata, …).
    Address,
    /// `authority`: the name inside the traffic (Host, TLS server name) is not the one that was asked for.
    Authority,
    /// `request`: what was sent is malformed, ambiguous or not something that is relayed.
    Request,
    /// `limit`: too many connections at once.
    Limit,
}

impl DenialReason {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::Scheme => "scheme",
            Self::Address => "address",
            Self::Authority => "authority",
            Self::Request => "request",
            Self::Limit => "limit",
        }
    }
}

impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `http` or `https`, a host and a port.
///
/// ```
/// use sixb_sandbox::Origin;
/// let origin: Origin = "https://PyPI.org".parse()?;
/// assert_eq!((origin.scheme(), origin.host(), origin.port()), ("https", "pypi.org", 443));
/// assert_eq!(origin.to_string(), "https://pypi.org");
/// assert!("https://*.pypi.org".parse::<Origin>().is_err());
/// # Ok::<(), sixb_sandbox::SandboxError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    https: bool,
    host: String,
    port: u16,
}

impl Origin {
    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.https { "https" } else { "http" }
    }

    /// Lower case, no trailing dot; an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, also when it is the scheme's own.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Origin {
    type Err = SandboxError;

    /// Parses `scheme://host[:port]`; a bare host means https. Paths, user names and wildcards are refused.
    fn from_str(text: &str) -> Result<Self, SandboxError> {
        let invalid = |reason: String| SandboxError::InvalidInput {
            field: "origin",
            value: text.to_owned(),
            reason,
        };
        let full = if text.contains("://") {
            text.to_owned()
        } else {
            format!("https://{text}")
        };
        if let Some(rest) = full.split_once("*.").map(|(_, rest)| rest) {
            return Err(invalid(format!(
                "is a wildcard: list each host, such as https://www.{}",
                rest.trim_end_matches('/')
            )));
        }
        let url = url::Url::parse(&full).map_err(|error| {
            invalid(format!(
                "is not an origin ({error}): write it as https://host[:port]"
            ))
        })?;
        let https = match url.scheme() {
            "https" => true,
            "http" => false,
            other => {
                return Err(invalid(format!(
                    "has the scheme {other}: only http and https can be enforced"
                )));
            }
        };
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        if host.is_empty() || host.contains('*') {
            return Err(invalid(
                "names no host: write it as https://host[:port]".into(),
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("holds a user name: leave it out".into()));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(invalid(format!(
                "has a path; an origin is scheme, host and port: {}://{host}",
                url.scheme()
            )));
        }
        Ok(Self {
            https,
            host: host.to_owned(),
            port: url
                .port_or_known_default()
                .unwrap_or(if https { 443 } else { 80 }),
        })
    }
}

impl fmt::Display for Origin {
    /// The canonical form: the scheme's own port is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.host)?;
        match (self.https, self.port) {
            (true, 443) | (false, 80) => Ok(()),
            (_, port) => write!(f, ":{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_parsed_once_and_canonical() {
        for (text, canonical) in [
            ("https://pypi.org", "https://pypi.org"),
            ("pypi.org", "https://pypi.org"),
            ("PYPI.org.", "https://pypi.org"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("https://[::1]:8443", "https://[::1]:8443"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
            ("http://svc.test:80", "http://svc.test"),
        ] {
            assert_eq!(
                text.parse::<Origin>().expect(text).to_string(),
                canonical,
                "{text}"
            );
        }
    }

    #[test]
    fn case_67_a_wildcard_is_refused_with_the_fixed_form() {
        let error = "https://*.svc.test"
            .parse::<Origin>()
            .expect_err("wildcard")
            .to_string();
        assert!(
            error.contains("https://*.svc.test") && error.contains("https://www.svc.test"),
            "{error}"
        );
        for bad in [
            "ftp://a.test",
            "https://u:p@a.test",
            "https://a.test/x",
            "https://",
            "https://a.test?q=1",
            "*",
        ] {
            let error = bad.parse::<Origin>().expect_err(bad).to_string();
            assert!(error.contains(bad), "the value is named: {error}");
        }
    }
}
