//! Which URLs may be read. Pure: rules are parsed once, URLs are normalised once, and the rest is comparing.
//!
//! A rule is `[scheme://]host[:port][/path]`:
//!
//! - `host` means this host only, `*.host` the names below it and not itself. Names are compared label by label, after
//!   IDNA, in lower case, without a trailing dot.
//! - Without a port, an allowed host may be read at 443 by https and at 80 by http; a denied one at no port.
//! - A path is compared segment by segment: `/docs` covers `/docs` and `/docs/x`, not `/docsx`.
//! - With a scheme, an allowed origin may be read by that scheme only; a denied one by none.
//!
//! **Denials win.** A path may be written in many ways that some server takes for the same: percent-encoded, encoded twice,
//! with an encoded slash, `?` or `#`, a backslash, doubled slashes, `;parameters`. All its readings are compared: a URL is denied when
//! *any* of them is denied, in whatever case, and allowed when *all* of them are allowed. What nobody can foresee (control
//! characters, overlong UTF-8, `%uXXXX`) is refused.
//!
//! **Internal places** are refused unless an allowed rule names them: IP addresses in any notation, names of one label, and
//! names such as `*.internal`, `*.local`, `*.localhost`, `*.svc`.
//!
//! A name that resolves to an internal address is no affair of these rules: they resolve nothing.

#[cfg(any(test, fuzzing))]
pub(crate) mod check;
mod host;
mod path;
mod rule;
mod url;

use std::{collections::HashSet, fmt};

pub use self::{
    rule::{DomainRule, InvalidRule},
    url::{InvalidUrl, MAX_URL_CHARACTERS, WebUrl},
};

/// Most rules that are passed on to a provider as its own filters. The rules themselves are checked here anyway, so where
/// there are more, none of the allowed ones is passed on: some would hide what the others allow.
const MAX_FILTERS: usize = 1_000;

/// Which URLs may be read. [`Default`] allows every public host.
///
/// ```
/// use sixb_connector_exa::policy::{DomainPolicy, WebUrl};
///
/// let policy = DomainPolicy::default()
///     .allow(["docs.test", "https://*.svc.test"])?
///     .deny(["docs.test/private"])?;
/// let may = |url: &str| WebUrl::parse(url).is_ok_and(|url| policy.check(&url).is_ok());
/// assert!(may("https://docs.test/guide") && may("https://a.svc.test/"));
/// assert!(!may("https://svc.test/") && !may("https://docs.test:9999/"));
/// assert!(!may("https://docs.test/%70rivate/x") && !may("https://docs.test/a%2F..%2FPRIVATE"));
/// # Ok::<(), sixb_connector_exa::policy::InvalidRule>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainPolicy {
    /// `None`: every public host.
    allowed: Option<Vec<DomainRule>>,
    denied: Vec<DomainRule>,
}

/// Why a URL may not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A denied rule covers it.
    Denied,
    /// No allowed rule covers it.
    NotAllowed,
    /// It is an IP address or an internal name, and no allowed rule names it.
    Internal,
    /// It has a port that no allowed rule names.
    Port,
}

impl DomainPolicy {
    /// A policy of rules that were parsed before. `allowed: None` allows every public host, an empty list none.
    pub fn new(allowed: Option<Vec<DomainRule>>, denied: Vec<DomainRule>) -> Self {
        Self { allowed, denied }
    }

    /// Allows what these rules cover, and what earlier ones covered. From the first call on nothing else is allowed, also
    /// when the list is empty.
    ///
    /// # Errors
    /// A rule that makes no sense.
    pub fn allow(
        mut self,
        rules: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, InvalidRule> {
        let more = parse(rules)?;
        self.allowed.get_or_insert_default().extend(more);
        Ok(self)
    }

    /// Denies what these rules cover, whatever else allows it.
    ///
    /// # Errors
    /// A rule that makes no sense.
    pub fn deny(
        mut self,
        rules: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, InvalidRule> {
        self.denied.extend(parse(rules)?);
        Ok(self)
    }

    /// Whether `url` may be read.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, url: &WebUrl) -> Result<(), Refusal> {
        if self.denied.iter().any(|rule| rule.denies(url)) {
            return Err(Refusal::Denied);
        }
        match &self.allowed {
            Some(rules) if rules.iter().any(|rule| rule.allows(url)) => Ok(()),
            // From here on the URL is refused; what is left is to say why.
            Some(rules)
                if rules.iter().any(|rule| rule.covers_host(url)) && url.port().is_some() =>
            {
                Err(Refusal::Port)
            }
            Some(_) => Err(Refusal::NotAllowed),
            None if url.is_internal() => Err(Refusal::Internal),
            None if url.port().is_some() => Err(Refusal::Port),
            None => Ok(()),
        }
    }

    /// What is allowed; `None`: every public host.
    pub fn allowed(&self) -> Option<&[DomainRule]> {
        self.allowed.as_deref()
    }

    /// What is denied.
    pub fn denied(&self) -> &[DomainRule] {
        &self.denied
    }

    /// The allowed rules as a provider's filter, `host`, `*.host` or `host/path`; never stricter than the rules, apart from
    /// internal places, which no provider knows. Empty where there are more than 1 000.
    pub fn include_filters(&self) -> Vec<String> {
        let filters = filters(self.allowed.iter().flatten(), DomainRule::include_filter);
        match filters.len() > MAX_FILTERS {
            true => Vec::new(),
            false => filters,
        }
    }

    /// The denied rules as a provider's filter; a rule that such a filter cannot say is left out. They are not needed beside
    /// [`include_filters`](Self::include_filters).
    pub fn exclude_filters(&self) -> Vec<String> {
        let mut filters = filters(self.denied.iter(), DomainRule::exclude_filter);
        filters.truncate(MAX_FILTERS);
        filters
    }
}

fn parse(rules: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Vec<DomainRule>, InvalidRule> {
    let rules = rules.into_iter();
    rules.map(|rule| DomainRule::parse(rule.as_ref())).collect()
}

fn filters<'a>(
    rules: impl Iterator<Item = &'a DomainRule>,
    filter: impl Fn(&DomainRule) -> Option<String>,
) -> Vec<String> {
    let mut seen = HashSet::new();
    let filters = rules.filter_map(filter);
    filters.filter(|text| seen.insert(text.clone())).collect()
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "this address is denied",
            Self::NotAllowed => "this address is not among the allowed ones",
            Self::Internal => "IP addresses and internal names are refused",
            Self::Port => "this port is not allowed",
        })
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
