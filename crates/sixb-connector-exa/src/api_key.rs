//! The key of the account: known from the start, or asked for at each request so that it can rotate.

use std::{error::Error, fmt, pin::Pin, sync::Arc};

use secrecy::SecretString;

type Resolving = Pin<Box<dyn Future<Output = Result<SecretString, ApiKeyError>> + Send>>;

/// A key, or a closure that gets it: from a vault, a file that is rewritten, a token endpoint.
///
/// A closure rather than a trait, so that this crate needs nothing of ours to be of use; with the feature `agent-tools`
/// a [`Credential`](https://docs.rs/sixb-tools) turns into one.
///
/// ```
/// use sixb_connector_exa::{ApiKey, SecretString};
///
/// let fixed = ApiKey::from(SecretString::from("sk-test-000"));
/// assert_eq!(format!("{fixed:?}"), "ApiKey(fixed, redacted)");
///
/// let rotating = ApiKey::provider(|| async { Ok(SecretString::from("key-of-the-hour")) });
/// assert_eq!(format!("{rotating:?}"), "ApiKey(provider)");
/// ```
#[derive(Clone)]
pub struct ApiKey(Kind);

#[derive(Clone)]
enum Kind {
    Fixed(SecretString),
    Provider(Arc<dyn Fn() -> Resolving + Send + Sync>),
}

/// There is no key to be had: the operator has to look.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
#[non_exhaustive]
pub struct ApiKeyError {
    /// What is wrong, without any secret.
    pub problem: String,
    /// The private cause.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl ApiKeyError {
    /// An error that says what is wrong, without any secret.
    pub fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            source: None,
        }
    }

    /// Adds the cause, whose text must hold no secret either.
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl ApiKey {
    /// A key that stays.
    pub fn fixed(key: SecretString) -> Self {
        Self(Kind::Fixed(key))
    }

    /// A key that is asked for once per request; caching is the closure's own affair. The time it takes counts towards
    /// the timeout of the request, and its future is dropped when the request is.
    pub fn provider<F>(resolve: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<SecretString, ApiKeyError>> + Send + 'static,
    {
        Self(Kind::Provider(Arc::new(move || Box::pin(resolve()))))
    }

    pub(crate) async fn resolve(&self) -> Result<SecretString, ApiKeyError> {
        match &self.0 {
            Kind::Fixed(key) => Ok(key.clone()),
            Kind::Provider(resolve) => resolve().await,
        }
    }
}

impl From<SecretString> for ApiKey {
    fn from(key: SecretString) -> Self {
        Self::fixed(key)
    }
}

#[cfg(feature = "agent-tools")]
impl From<sixb_tools::Credential> for ApiKey {
    fn from(credential: sixb_tools::Credential) -> Self {
        Self::provider(move || {
            let credential = credential.clone();
            async move {
                let resolved = credential.resolve().await;
                resolved.map_err(|error| ApiKeyError {
                    problem: error.problem,
                    source: error.source,
                })
            }
        })
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::Fixed(_) => "ApiKey(fixed, redacted)",
            Kind::Provider(_) => "ApiKey(provider)",
        })
    }
}
