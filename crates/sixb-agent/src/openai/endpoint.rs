//! Where requests go, and which key goes there. A key never goes to a place that it was not given for.

use std::env;

use reqwest::Url;
use sixb_tools::{Credential, SecretString};

use super::OpenAiError;

/// The Vercel AI Gateway.
pub const AI_GATEWAY_BASE_URL: &str = "https://ai-gateway.vercel.sh/v1";
/// OpenAI itself.
pub const OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// A server of chat completions.
///
/// `Display` and `Debug` show the address and whether there is a key, never the key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Endpoint {
    /// The address without `/chat/completions`.
    pub base_url: String,
    /// What is sent as `authorization: Bearer …`. A local server may need none.
    pub key: Option<Credential>,
    /// The variable that named it, for people.
    pub source: &'static str,
}

impl Endpoint {
    /// The endpoint that the environment names, in this order:
    ///
    /// 1. `OPENAI_BASE_URL`, with `OPENAI_API_KEY` if that is set: any compatible server;
    /// 2. `AI_GATEWAY_API_KEY`: the Vercel AI Gateway;
    /// 3. `OPENAI_API_KEY`: OpenAI.
    ///
    /// Blank variables count as missing. `None` when none of them is set.
    pub fn from_env() -> Option<Self> {
        Self::of(|name| env::var(name).ok())
    }

    /// [`from_env`](Self::from_env) with variables of one's own.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name| {
            variable(name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let secret = |value: String| Credential::fixed(SecretString::from(value));
        let openai_key = set("OPENAI_API_KEY").map(secret);
        if let Some(base_url) = set("OPENAI_BASE_URL") {
            return Some(Self {
                base_url,
                key: openai_key,
                source: "OPENAI_BASE_URL",
            });
        }
        if let Some(key) = set("AI_GATEWAY_API_KEY") {
            return Some(Self {
                base_url: AI_GATEWAY_BASE_URL.into(),
                key: Some(secret(key)),
                source: "AI_GATEWAY_API_KEY",
            });
        }
        openai_key.map(|key| Self {
            base_url: OPENAI_BASE_URL.into(),
            key: Some(key),
            source: "OPENAI_API_KEY",
        })
    }

    /// The address of completions. Refuses what could lead a key astray.
    pub(super) fn completions(&self) -> Result<Url, OpenAiError> {
        // The text itself is not shown: it may hold a password.
        let wrong = |problem: &str| OpenAiError::BaseUrl {
            problem: problem.to_owned(),
        };
        let mut url = Url::parse(self.base_url.trim())
            .map_err(|error| wrong(&format!("is no URL: {error}")))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("holds a user or password: give the key as a key"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong(
                "has a query or a fragment: give the address without `/chat/completions` and what follows it",
            ));
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(&url) || self.key.is_none() => {}
            "http" => {
                return Err(wrong(
                    "is plain http to another machine, where everybody on the way reads the key: use https",
                ));
            }
            _ => return Err(wrong("is neither https nor http")),
        }
        let path = format!("{}/chat/completions", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(url)
    }

    /// What the server calls `model`: OpenAI itself does not know the vendor's name in front.
    pub(super) fn model_name<'a>(&self, url: &Url, model: &'a str) -> &'a str {
        match url.host_str() {
            Some("api.openai.com") => model.strip_prefix("openai/").unwrap_or(model),
            _ => model,
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Also here no user, password or query.
        let shown = Url::parse(&self.base_url).ok().and_then(|url| {
            let host = url.host_str()?;
            let port = url
                .port()
                .map(|port| format!(":{port}"))
                .unwrap_or_default();
            Some(format!("{}://{host}{port}{}", url.scheme(), url.path()))
        });
        f.write_str(shown.as_deref().unwrap_or("(no URL)"))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_one_endpoint() {
        for (set, expect) in [
            (&[][..], None),
            (&[("OPENAI_API_KEY", "k")], Some((OPENAI_BASE_URL, true))),
            (
                &[("AI_GATEWAY_API_KEY", "k"), ("OPENAI_API_KEY", "k")],
                Some((AI_GATEWAY_BASE_URL, true)),
            ),
            (
                &[
                    ("OPENAI_BASE_URL", "http://localhost:1/v1"),
                    ("AI_GATEWAY_API_KEY", "k"),
                ],
                Some(("http://localhost:1/v1", false)),
            ),
            (&[("OPENAI_BASE_URL", " "), ("OPENAI_API_KEY", "")], None),
        ] {
            let variable = |name: &str| {
                set.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            };
            let endpoint = Endpoint::of(variable);
            let found = endpoint
                .as_ref()
                .map(|endpoint| (endpoint.base_url.as_str(), endpoint.key.is_some()));
            assert_eq!(found, expect, "{set:?}");
        }
    }

    #[test]
    fn addresses() {
        for (base, expect) in [
            (
                "https://a.test/v1/",
                Ok("https://a.test/v1/chat/completions"),
            ),
            ("https://a.test", Ok("https://a.test/chat/completions")),
            (
                "http://127.0.0.1:9/v1",
                Ok("http://127.0.0.1:9/v1/chat/completions"),
            ),
            ("http://[::1]:9", Ok("http://[::1]:9/chat/completions")),
            ("http://10.0.0.1/v1", Err("plain http")),
            ("https://u:sk-planted@a.test", Err("user or password")),
            ("https://a.test/v1?key=sk-planted", Err("query")),
            ("ftp://a.test", Err("neither https nor http")),
            ("a.test/v1", Err("is no URL")),
        ] {
            let endpoint = Endpoint {
                base_url: base.into(),
                key: Some(Credential::from("k".to_owned())),
                source: "",
            };
            match (endpoint.completions(), expect) {
                (Ok(url), Ok(expect)) => assert_eq!(url.as_str(), expect),
                (Err(error), Err(expect)) => {
                    let text = format!("{error} {error:?} {endpoint}");
                    assert!(text.contains(expect) && !text.contains("planted"), "{text}");
                }
                (got, _) => panic!("{base}: {got:?}"),
            }
        }
    }
}
