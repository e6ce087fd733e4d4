//! A URL of the web, normalised.

use std::{fmt, net::IpAddr};

use url::Url;

use super::{
    host::Host,
    path::{self, PathProblem, Segments},
};

/// Longest URL, in characters, after normalisation.
pub const MAX_URL_CHARACTERS: usize = 2_048;
/// Longest text that is looked at: normalising makes it shorter or longer.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// An http or https URL in one form: as WHATWG says, with its host after IDNA and without a trailing dot, without fragment,
/// user and password.
///
/// ```
/// use sixb_connector_exa::WebUrl;
///
/// let url = WebUrl::parse("HTTPS://Docs.TEST.:443/a/../b c#top")?;
/// assert_eq!(url.as_str(), "https://docs.test/b%20c");
/// assert!(WebUrl::parse("https://user@docs.test/").is_err());
/// # Ok::<(), sixb_connector_exa::policy::InvalidUrl>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl {
    url: Url,
    pub(super) host: Host,
    pub(super) readings: Vec<Segments>,
}

/// A text is no URL that could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUrl {
    /// It is no absolute URL.
    #[error("it is no absolute URL: write https://host/path")]
    NoUrl,
    /// It is neither http nor https.
    #[error("only http and https URLs can be read")]
    Scheme,
    /// It holds a user or a password.
    #[error("a URL with a user or a password is refused")]
    UserInfo,
    /// Its host is no host.
    #[error("its host is not valid")]
    Host,
    /// Its path is encoded many times over, or holds control characters, malformed UTF-8 or `%uXXXX`.
    #[error("its path holds control characters, is not UTF-8, or is encoded many times over")]
    Path,
    /// It is longer than [`MAX_URL_CHARACTERS`].
    #[error("it is longer than {MAX_URL_CHARACTERS} characters")]
    TooLong,
}

impl WebUrl {
    /// Parses and normalises a text.
    ///
    /// # Errors
    /// [`InvalidUrl`].
    pub fn parse(text: &str) -> Result<Self, InvalidUrl> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(InvalidUrl::TooLong);
        }
        let mut url = Url::parse(text).map_err(|_| InvalidUrl::NoUrl)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidUrl::Scheme);
        }
        if !url.username().is_empty() || url.password().is_some() || has_at_sign(text) {
            return Err(InvalidUrl::UserInfo);
        }
        url.set_fragment(None);
        let host = url.host().and_then(Host::new).ok_or(InvalidUrl::Host)?;
        let written = match &host {
            Host::Name(name) => name.clone(),
            Host::Address(IpAddr::V4(address)) => address.to_string(),
            Host::Address(IpAddr::V6(address)) => format!("[{address}]"),
        };
        if url.host_str() != Some(&written) {
            url.set_host(Some(&written)).map_err(|_| InvalidUrl::Host)?;
        }
        if url.as_str().len() > MAX_URL_CHARACTERS {
            return Err(InvalidUrl::TooLong);
        }
        let readings = path::readings(url.path()).map_err(|problem| match problem {
            PathProblem::TooDeep | PathProblem::Unsafe => InvalidUrl::Path,
        })?;
        Ok(Self {
            url,
            host,
            readings,
        })
    }

    /// The normalised text.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// The host: a name, or an address in its usual notation.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub(super) fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// The port, unless it is the scheme's own.
    pub(super) fn port(&self) -> Option<u16> {
        self.url.port()
    }

    pub(super) fn known_port(&self) -> Option<u16> {
        self.url.port_or_known_default()
    }

    pub(super) fn is_internal(&self) -> bool {
        self.host.is_internal()
    }
}

/// Whether there is an `@` before the host, also one with nothing before it, which the parser forgets.
fn has_at_sign(text: &str) -> bool {
    let text = text.replace(['\t', '\n', '\r'], "");
    let rest = text.split_once(':').map_or("", |(_, rest)| rest);
    let authority = rest.trim_start_matches(['/', '\\']);
    let end = authority.find(['/', '\\', '?', '#']);
    authority[..end.unwrap_or(authority.len())].contains('@')
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
