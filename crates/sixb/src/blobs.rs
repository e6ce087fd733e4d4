//! The store of files of runs: what `--blobs` or `[blobs]` names, else a folder of this user.

use anyhow::Result;
use sixb_agent::{check_store, state_folder};
use sixb_artifacts::store::{BlobError, BlobStore};
use sixb_sandbox::{CreateOptions, Workspace};

use crate::{cli::BlobArgs, config::Config, failure::usage};

/// Before the names of variables that open a store, by the scheme of its URL. The program of a cloud's own understands them.
const VARIABLES: &[(&str, &str)] = &[
    ("s3:", "AWS_"),
    ("s3a:", "AWS_"),
    ("gs:", "GOOGLE_"),
    ("az:", "AZURE_"),
    ("azure:", "AZURE_"),
    ("abfs:", "AZURE_"),
    ("abfss:", "AZURE_"),
];
/// Variables of these programs that say nothing of a store.
const OTHERS: &[&str] = &[
    "AWS_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_PAGER",
    "AWS_EXECUTION_ENV",
];

/// Opens the store. Local folders are made when they are missing.
pub(crate) fn store(flag: &BlobArgs, config: &Config) -> Result<BlobStore> {
    let named = match (&flag.blobs, &config.blobs.url) {
        (Some(url), _) => Some(("--blobs".to_owned(), url)),
        (None, Some(url)) => Some((config.key("blobs.url"), url)),
        (None, None) => None,
    };
    let Some((name, url)) = named else {
        return own();
    };
    let options = options(
        url,
        std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    );
    // The URL is part of the error, except for what may be secret in it.
    BlobStore::open_url(url, options).map_err(|error| usage(format!("{name}: {}", whole(&error))))
}

/// An error with its cause, which says what is wrong with a folder.
fn whole(error: &BlobError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

/// Refuses a store in the hands of the sandbox. Runs do so themselves.
pub(crate) fn check(store: &BlobStore, options: &CreateOptions) -> Result<()> {
    if let (
        Some(folder),
        Some(Workspace::HostFolder {
            path,
            read_only: false,
        }),
    ) = (store.folder(), &options.workspace)
    {
        check_store(folder, path).map_err(|error| {
            usage(format!("{error}; name a store outside of it with --blobs URL, or forbid changes with --workspace DIR:ro"))
        })?;
    }
    Ok(())
}

/// Where transcripts lie too: no sandbox writes there, and every folder of the user finds the files of its conversations.
fn own() -> Result<BlobStore> {
    match state_folder() {
        Some(folder) => BlobStore::local(&folder)
            .map_err(|error| usage(format!("{}; name a store with --blobs URL", whole(&error)))),
        None => Err(usage(
            "there is no place for files: neither XDG_STATE_HOME nor HOME is set, and the temporary directory has no folder for them; name a store with --blobs URL",
        )),
    }
}

/// What the environment says of the store, by the names that it has there in lower case.
fn options(url: &str, variables: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let scheme = VARIABLES.iter().find(|(scheme, _)| url.starts_with(scheme));
    let Some((_, prefix)) = scheme else {
        return Vec::new();
    };
    variables
        .filter(|(name, _)| name.starts_with(prefix) && !OTHERS.contains(&name.as_str()))
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_gets_the_variables_of_its_own_cloud_only() {
        let set = ["AWS_REGION", "AWS_PROFILE", "GOOGLE_X", "HOME"];
        let of = |url: &str| {
            let variables = set.iter().map(|name| ((*name).to_owned(), "v".to_owned()));
            let names: Vec<_> = options(url, variables)
                .into_iter()
                .map(|(name, _)| name)
                .collect();
            names
        };
        assert_eq!(of("s3://bucket/"), ["aws_region"]);
        assert_eq!(of("gs://bucket/"), ["google_x"]);
        assert_eq!(of("file:///tmp/x"), [""; 0]);
    }
}
