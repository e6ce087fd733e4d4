//! The client: where Exa is, which key goes there, and its two endpoints.

use std::{fmt, sync::Arc, time::Duration};

use url::{Host, Url};

use crate::{
    ApiKey, ContentsRequest, ContentsResponse, ExaError, SearchRequest, SearchResponse, http::Http,
};

/// Exa itself.
pub const DEFAULT_BASE_URL: &str = "https://api.exa.ai";
/// How long a request may take, getting the key included: 20 s.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);
/// Most bytes of an answer that are read: 4 MiB.
pub const MAX_BODY_BYTES: usize = 4 << 20;

/// What a client needs to know.
#[derive(Clone)]
#[must_use]
pub struct ExaOptions {
    api_key: ApiKey,
    base_url: String,
    timeout: Duration,
}

impl ExaOptions {
    /// The options with which Exa itself is asked.
    pub fn new(api_key: impl Into<ApiKey>) -> Self {
        Self {
            api_key: api_key.into(),
            base_url: DEFAULT_BASE_URL.to_owned(),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Sets the address, without `/search`: https, or plain http to this machine. Default: [`DEFAULT_BASE_URL`].
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        self
    }

    /// Sets how long a request may take, getting the key included. Default: [`DEFAULT_TIMEOUT`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

impl fmt::Debug for ExaOptions {
    /// Without the address: nobody has checked yet that it holds no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExaOptions")
            .field("api_key", &self.api_key)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// A client of Exa. Cheap to clone; clones share their connections.
///
/// - **One call, one request.** Nothing is tried again: a search costs money, and the caller knows whether it wants another.
/// - **Limits.** [`DEFAULT_TIMEOUT`] for everything, the key's provider included; an answer of at most [`MAX_BODY_BYTES`].
/// - **Secrets.** The key is in the header `x-api-key` of the request and nowhere else: not in `Debug`, errors or logs;
///   where a server quotes it, it is taken out. Redirects are not followed and proxies of the environment not used, so
///   that it reaches the named server only. Plain http is for loopback.
/// - **Cancellation.** Dropping the future drops the connection at once.
///
/// ```no_run
/// use sixb_connector_exa::{Exa, ExaOptions, SearchRequest, SecretString};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let exa = Exa::new(ExaOptions::new(SecretString::from(std::env::var("EXA_API_KEY")?)))?;
/// let mut request = SearchRequest::new("who maintains tokio?");
/// request.num_results = Some(3);
/// for result in exa.search(&request).await?.results {
///     println!("{} {}", result.url, result.title.unwrap_or_default());
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Exa(Arc<Inner>);

struct Inner {
    http: Http,
    search: Url,
    contents: Url,
}

impl Exa {
    /// A client. Connects to nothing yet.
    ///
    /// # Errors
    /// [`ExaError::BaseUrl`] when the address could lead the key astray, [`ExaError::Client`] when TLS cannot be set up.
    pub fn new(options: ExaOptions) -> Result<Self, ExaError> {
        let base = base(&options.base_url)?;
        let endpoint = |name: &str| {
            let mut url = base.clone();
            url.set_path(&format!("{}/{name}", base.path().trim_end_matches('/')));
            url
        };
        Ok(Self(Arc::new(Inner {
            search: endpoint("search"),
            contents: endpoint("contents"),
            http: Http::new(options.api_key, options.timeout, base.scheme() == "http")?,
        })))
    }

    /// Whether its server is on this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.0.search)
    }

    /// Asks `POST /search`: pages that fit a query, and what of their contents the request names.
    ///
    /// # Errors
    /// [`ExaError`]. A result that makes no sense is no error: it is in [`SearchResponse::malformed`].
    pub async fn search(&self, request: &SearchRequest) -> Result<SearchResponse, ExaError> {
        request.check()?;
        let answer = self.0.http.post(&self.0.search, request).await?;
        SearchResponse::read(answer)
    }

    /// Asks `POST /contents`: the contents of pages whose URLs are known.
    ///
    /// # Errors
    /// [`ExaError`]. A page that could not be had is no error: [`ContentsResponse::statuses`] says why.
    pub async fn contents(&self, request: &ContentsRequest) -> Result<ContentsResponse, ExaError> {
        request.check()?;
        let answer = self.0.http.post(&self.0.contents, request).await?;
        let only = match &request.urls[..] {
            [only] => Some(only.as_str()),
            _ => None,
        };
        ContentsResponse::read(answer, only)
    }
}

impl fmt::Debug for Exa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exa")
            // Without the path: gateways put secrets there too.
            .field("origin", &self.0.search.origin().ascii_serialization())
            .finish_non_exhaustive()
    }
}

/// Refuses what could lead a key astray.
fn base(text: &str) -> Result<Url, ExaError> {
    let wrong = |problem: &str| ExaError::BaseUrl {
        problem: problem.to_owned(),
    };
    let url = Url::parse(text.trim()).map_err(|error| wrong(&format!("is no URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("holds a user or password: give the key as a key"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong(
            "has a query or a fragment: give the address without `/search` and what follows it",
        ));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err(wrong(
            "is plain http to another machine, where everybody on the way reads the key: use https",
        )),
        _ => Err(wrong("is neither https nor http")),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecretString;

    #[test]
    fn a_key_goes_to_https_or_to_this_machine() {
        for (text, expect) in [
            ("https://api.exa.ai", Ok("https://api.exa.ai/search")),
            ("https://a.test/v1/", Ok("https://a.test/v1/search")),
            (
                "https://a.test/sk-planted",
                Ok("https://a.test/sk-planted/search"),
            ),
            ("http://127.0.0.1:9", Ok("http://127.0.0.1:9/search")),
            ("http://[::1]:9/x", Ok("http://[::1]:9/x/search")),
            ("http://localhost:9", Ok("http://localhost:9/search")),
            ("http://10.0.0.1", Err("plain http")),
            ("http://localhost.a.test", Err("plain http")),
            ("https://u:sk-planted@a.test", Err("user or password")),
            ("https://a.test/?key=sk-planted", Err("query")),
            ("ftp://a.test", Err("neither https nor http")),
            ("api.exa.ai", Err("is no URL")),
        ] {
            let options = ExaOptions::new(SecretString::from("sk-planted")).base_url(text);
            assert!(!format!("{options:?}").contains("planted"));
            match (Exa::new(options), expect) {
                (Ok(exa), Ok(expect)) => {
                    assert_eq!(exa.0.search.as_str(), expect);
                    let here = ["127.", "[::1]", "localhost"];
                    let here = here.iter().any(|host| text.contains(host));
                    assert_eq!(exa.is_loopback(), here, "{text}");
                    let debug = format!("{exa:?}");
                    assert!(
                        !debug.contains("planted") && !debug.contains("/v1"),
                        "{debug}"
                    );
                }
                (Err(error), Err(expect)) => {
                    let text = format!("{error} {error:?}");
                    assert!(text.contains(expect) && !text.contains("planted"), "{text}");
                }
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
    }
}
