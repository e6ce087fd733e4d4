//! A secret that a client sends: known from the start, or asked for at each request so that it can rotate.

use std::{error::Error, fmt, sync::Arc};

use async_trait::async_trait;
use secrecy::SecretString;

/// A secret, or where to get it.
///
/// ```
/// use sixb_tools::Credential;
/// let key = Credential::from("sk-test-000".to_owned());
/// assert!(!format!("{key:?}").contains("sk-test-000"));
/// ```
#[derive(Clone)]
pub struct Credential(Kind);

#[derive(Clone)]
enum Kind {
    Fixed(SecretString),
    Provider(Arc<dyn CredentialProvider>),
}

/// Gives a secret when it is needed: from a vault, a file that is rewritten, a token endpoint.
///
/// Asked once per request; caching is its own affair. Dropping the future ends the attempt.
#[async_trait]
pub trait CredentialProvider: Send + Sync + 'static {
    /// The secret as it is now.
    ///
    /// # Errors
    /// [`CredentialError`], whose text must hold no secret.
    async fn resolve(&self) -> Result<SecretString, CredentialError>;
}

/// There is no secret to be had: the operator has to look.
#[derive(Debug, thiserror::Error)]
#[error("the credential cannot be resolved: {problem}")]
#[non_exhaustive]
pub struct CredentialError {
    /// What is wrong, without any secret.
    pub problem: String,
    /// The private cause.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl CredentialError {
    /// An error that says what is wrong, without any secret.
    pub fn new(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            source: None,
        }
    }
}

impl Credential {
    /// A secret that stays.
    pub fn fixed(secret: SecretString) -> Self {
        Self(Kind::Fixed(secret))
    }

    /// A secret that is asked for at each request.
    pub fn provider(provider: impl CredentialProvider) -> Self {
        Self(Kind::Provider(Arc::new(provider)))
    }

    /// The secret as it is now.
    ///
    /// # Errors
    /// When its provider has none.
    pub async fn resolve(&self) -> Result<SecretString, CredentialError> {
        match &self.0 {
            Kind::Fixed(secret) => Ok(secret.clone()),
            Kind::Provider(provider) => provider.resolve().await,
        }
    }
}

impl From<SecretString> for Credential {
    fn from(secret: SecretString) -> Self {
        Self::fixed(secret)
    }
}

impl From<String> for Credential {
    fn from(secret: String) -> Self {
        Self::fixed(secret.into())
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::Fixed(_) => "Credential(fixed, redacted)",
            Kind::Provider(_) => "Credential(provider)",
        })
    }
}
