//! `[connectors.exa]`, `[tools.web_search]` and `[tools.web_fetch]`.

use serde::{Deserialize, Deserializer, de::Error};
use sixb_connector_exa::DomainRule;

/// `[connectors]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Connectors {
    pub(crate) exa: Option<Exa>,
}

/// `[connectors.exa]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Exa {
    pub(crate) api_key: Option<FromEnv>,
    pub(crate) base_url: Option<String>,
}

/// `[tools]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Tools {
    pub(crate) web_search: WebSearch,
    pub(crate) web_fetch: WebFetch,
}

/// `[tools.web_search]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WebSearch {
    pub(crate) allowed_domains: Option<Vec<Domain>>,
    pub(crate) denied_domains: Vec<Domain>,
    pub(crate) num_results: Option<usize>,
    pub(crate) max_characters: Option<usize>,
    pub(crate) max_total_characters: Option<usize>,
    pub(crate) max_age_hours: Option<i64>,
    pub(crate) search_type: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) user_location: Option<String>,
    pub(crate) strict: bool,
    pub(crate) max_calls: Option<u32>,
    pub(crate) max_cost_dollars: Option<f64>,
}

/// `[tools.web_fetch]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WebFetch {
    pub(crate) allowed_domains: Option<Vec<Domain>>,
    pub(crate) denied_domains: Vec<Domain>,
    pub(crate) max_characters: Option<usize>,
    pub(crate) max_age_hours: Option<i64>,
    pub(crate) max_calls: Option<u32>,
    pub(crate) max_cost_dollars: Option<f64>,
}

/// `env:NAME`: where a secret is, because the file is no place for one.
#[derive(Debug, Clone)]
pub(crate) struct FromEnv(pub(crate) String);

impl<'de> Deserialize<'de> for FromEnv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Read as whatever it is, so that no error quotes it: it may be a key.
        let value = toml::Value::deserialize(deserializer)?;
        let name = value.as_str().and_then(|text| text.strip_prefix("env:"));
        let is_name = |name: &&str| {
            let mut chars = name.chars();
            chars
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
                && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        match name.filter(is_name) {
            Some(name) => Ok(Self(name.to_owned())),
            None => Err(D::Error::custom(
                "a key does not belong into this file; put it into the environment and name the variable: api_key = \
                 \"env:EXA_API_KEY\"",
            )),
        }
    }
}

/// A rule about hosts and paths.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Domain(pub(crate) DomainRule);

impl TryFrom<String> for Domain {
    type Error = sixb_connector_exa::policy::InvalidRule;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}
