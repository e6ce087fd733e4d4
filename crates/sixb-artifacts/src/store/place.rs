//! Which store a URL names, and the feature that brings it.

use object_store::{ObjectStoreScheme, path::Path};
use url::Url;

use super::{BlobError, BlobStore};

impl BlobStore {
    /// The store at a URL: `file:///folder`, `memory:///`, `s3://bucket/prefix` (feature `aws`), `gs://bucket/prefix` (feature
    /// `gcp`), `az://container/prefix` (feature `azure`), and the https forms that `object_store` knows of the last three.
    ///
    /// `options` are those of `object_store`, by name: `region`, `endpoint`, `access_key_id`, `secret_access_key`, `allow_http`,
    /// …. Nothing is read from the environment. An option that the store does not know is an error; no error shows a value.
    ///
    /// # Errors
    /// `Place` for a URL or an option that is wrong, or a feature that this program was built without.
    ///
    /// ```
    /// use sixb_artifacts::store::BlobStore;
    /// assert!(BlobStore::open_url("memory:///", [("", ""); 0]).is_ok());
    /// let error = BlobStore::open_url("ftp://host/", [("", ""); 0]).unwrap_err();
    /// assert!(error.to_string().contains("ftp"));
    /// ```
    pub fn open_url<K, V>(
        url: &str,
        options: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, BlobError>
    where
        K: AsRef<str>,
        V: Into<String>,
    {
        let options: Vec<(String, String)> = options
            .into_iter()
            .map(|(name, value)| (name.as_ref().to_ascii_lowercase(), value.into()))
            .collect();
        let parsed =
            Url::parse(url).map_err(|error| wrong(format!("a store's URL is not one: {error}")))?;
        if !parsed.username().is_empty() || parsed.password().is_some() || parsed.query().is_some()
        {
            return Err(wrong(
                "a store's URL holds no user, password or query: give secrets as options"
                    .to_owned(),
            ));
        }
        let shown = parsed.to_string();
        let scheme = ObjectStoreScheme::parse(&parsed);
        let (scheme, path) = scheme.map_err(|_| {
            wrong(format!(
                "{shown:?} names no store: use file, memory, s3, gs or az"
            ))
        })?;
        match scheme {
            ObjectStoreScheme::Local => {
                none_of(&options)?;
                let folder = parsed
                    .to_file_path()
                    .map_err(|()| wrong(format!("{shown:?} names no folder of this machine")))?;
                Self::local(folder)
            }
            ObjectStoreScheme::Memory => {
                none_of(&options)?;
                Ok(Self::memory().below(path))
            }
            ObjectStoreScheme::AmazonS3 => s3(&shown, options, path),
            ObjectStoreScheme::GoogleCloudStorage => gcs(&shown, options, path),
            ObjectStoreScheme::MicrosoftAzure => azure(&shown, options, path),
            _ => Err(wrong(format!(
                "{shown:?} names no store for blobs: use file, memory, s3, gs or az"
            ))),
        }
    }
}

fn wrong(what: String) -> BlobError {
    BlobError::Place { what, source: None }
}

fn none_of(options: &[(String, String)]) -> Result<(), BlobError> {
    match options.first() {
        Some((name, _)) => Err(unknown(name)),
        None => Ok(()),
    }
}

fn unknown(name: &str) -> BlobError {
    wrong(format!("this store has no option {name:?}"))
}

/// Builds a store whose builder takes a URL and named options.
#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
macro_rules! build {
    ($builder:ty, $url:expr, $options:expr, $path:expr) => {{
        let mut builder = <$builder>::new().with_url($url);
        for (name, value) in $options {
            let key = name.parse().map_err(|_| unknown(&name))?;
            builder = builder.with_config(key, value);
        }
        let store = builder
            .with_retry(retry())
            .build()
            .map_err(|error| BlobError::Place {
                what: format!("the store {:?} cannot be opened with these options", $url),
                source: Some(Box::new(error)),
            })?;
        let store = std::sync::Arc::new(store);
        Ok(BlobStore::new(store.clone())
            .with_signer(store)
            .below($path))
    }};
}

/// How often a store that fails is asked again: for some seconds, not for minutes, since a tool call waits.
#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
fn retry() -> object_store::RetryConfig {
    object_store::RetryConfig {
        max_retries: 6,
        retry_timeout: std::time::Duration::from_secs(30),
        ..Default::default()
    }
}

/// The answer of a program without the feature.
#[allow(dead_code, reason = "unused where all features are on")]
fn without(url: &str, feature: &str) -> Result<BlobStore, BlobError> {
    Err(wrong(format!(
        "{url:?} needs the feature `{feature}` of sixb-artifacts, which this program was built without"
    )))
}

#[cfg(feature = "aws")]
fn s3(url: &str, options: Vec<(String, String)>, path: Path) -> Result<BlobStore, BlobError> {
    build!(object_store::aws::AmazonS3Builder, url, options, path)
}

#[cfg(not(feature = "aws"))]
fn s3(url: &str, _: Vec<(String, String)>, _: Path) -> Result<BlobStore, BlobError> {
    without(url, "aws")
}

#[cfg(feature = "gcp")]
fn gcs(url: &str, options: Vec<(String, String)>, path: Path) -> Result<BlobStore, BlobError> {
    build!(
        object_store::gcp::GoogleCloudStorageBuilder,
        url,
        options,
        path
    )
}

#[cfg(not(feature = "gcp"))]
fn gcs(url: &str, _: Vec<(String, String)>, _: Path) -> Result<BlobStore, BlobError> {
    without(url, "gcp")
}

#[cfg(feature = "azure")]
fn azure(url: &str, options: Vec<(String, String)>, path: Path) -> Result<BlobStore, BlobError> {
    build!(
        object_store::azure::MicrosoftAzureBuilder,
        url,
        options,
        path
    )
}

#[cfg(not(feature = "azure"))]
fn azure(url: &str, _: Vec<(String, String)>, _: Path) -> Result<BlobStore, BlobError> {
    without(url, "azure")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str, options: &[(&str, &str)]) -> String {
        BlobStore::open_url(url, options.iter().copied())
            .expect_err(url)
            .to_string()
    }

    #[test]
    fn what_is_wrong_is_named_and_no_value_is_shown() {
        for (url, options, part) in [
            ("no url", &[][..], "is not one"),
            ("ftp://host/x", &[], "names no store"),
            ("file:relative", &[("a", "b")], "no option \"a\""),
            (
                "memory:///",
                &[("secret_access_key", "hunter2")],
                "no option \"secret_access_key\"",
            ),
            ("s3://user:hunter2@bucket/", &[], "give secrets as options"),
            ("s3://bucket/?key=hunter2", &[], "give secrets as options"),
            #[cfg(feature = "aws")]
            (
                "s3://bucket/",
                &[("acces_key", "hunter2")],
                "no option \"acces_key\"",
            ),
            #[cfg(not(feature = "aws"))]
            (
                "s3://bucket/",
                &[("access_key_id", "hunter2")],
                "needs the feature `aws`",
            ),
            #[cfg(not(feature = "gcp"))]
            ("gs://bucket/", &[], "needs the feature `gcp`"),
            #[cfg(not(feature = "azure"))]
            ("az://container/", &[], "needs the feature `azure`"),
        ] {
            let error = error(url, options);
            assert!(
                error.contains(part) && !error.contains("hunter2"),
                "{url}: {error}"
            );
        }
    }

    #[cfg(feature = "aws")]
    #[test]
    fn secrets_of_a_store_are_not_in_its_debug() {
        let options = [
            ("region", "x"),
            ("access_key_id", "AKID"),
            ("secret_access_key", "hunter2"),
        ];
        let blobs = BlobStore::open_url("s3://bucket/below/here", options).expect("store");
        assert_eq!(
            format!("{blobs:?}"),
            "BlobStore { store: \"AmazonS3(bucket)\", .. }"
        );
    }

    #[tokio::test]
    async fn a_local_url_is_a_folder() {
        let folder = tempfile::tempdir().expect("folder");
        let url = Url::from_directory_path(folder.path()).expect("url");
        let blobs = BlobStore::open_url(url.as_str(), [("", ""); 0]).expect("store");
        let file = blobs.put("hi").await.expect("put");
        let again = BlobStore::local(folder.path()).expect("store");
        assert_eq!(again.read(&file).await.expect("read"), "hi");
    }
}
