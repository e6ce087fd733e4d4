//! Download links that the store signs itself. Opt-in: whoever has such a link reads the blob without asking anybody.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use url::Url;

use super::{BlobError, BlobStore};
use crate::{FileRef, MediaType};

/// The longest time that S3 and Google sign for: 7 days.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How a browser takes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It is saved.
    Attachment,
    /// It is shown, where that is harmless (pictures of pixels, PDF, plain text); else saved: a page or an SVG could run
    /// scripts in the store's name.
    Inline,
}

/// A link that the store signed. It is a secret until it expires: `Debug` shows no more than the host.
#[derive(Clone, PartialEq, Eq)]
pub struct Presigned {
    url: Url,
    expires: SystemTime,
}

impl Presigned {
    /// The link. Do not log it, and do not keep it in a history: keep the [`FileRef`], and sign when it is read.
    pub fn expose_url(&self) -> &Url {
        &self.url
    }

    /// When it stops working.
    pub fn expires(&self) -> SystemTime {
        self.expires
    }
}

impl fmt::Debug for Presigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presigned")
            .field("host", &self.url.host_str().unwrap_or_default())
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

impl BlobStore {
    /// Allows links that the store signs. `lifetime` is the age at which a [`sweep`](Self::sweep) may remove a blob: no link
    /// is valid for longer than its file lives.
    #[must_use]
    pub fn with_presigned_links(mut self, lifetime: Duration) -> Self {
        self.links = Some(lifetime);
        self
    }

    /// A link to a file for `valid_for`, or for as long as the file surely lives, or 7 days, whichever is shortest. The store
    /// answers it with the file's name, type and disposition: these are signed too.
    ///
    /// # Errors
    /// `Unsupported` where links were not allowed, or the store does not sign the headers of its answer (local, memory,
    /// Azure); `NotFound` for a file that is gone or may be swept at any moment: put it again; `Store`.
    pub async fn presign(
        &self,
        file: &FileRef,
        valid_for: Duration,
        disposition: Disposition,
    ) -> Result<Presigned, BlobError> {
        let Some(lifetime) = self.links else {
            return Err(BlobError::Unsupported {
                what: "links that the store signs are off: see BlobStore::with_presigned_links",
            });
        };
        if !self.signs() {
            return Err(UNSUPPORTED);
        }
        let gone = || BlobError::NotFound {
            blob_id: file.blob_id(),
        };
        let blob = self.stat(&file.digest()).await?.ok_or_else(gone)?;
        let now = SystemTime::now();
        let left = (blob.last_put + lifetime)
            .duration_since(now)
            .map_err(|_| gone())?;
        // Whole seconds, since that is what stores sign.
        let valid_for = Duration::from_secs(valid_for.min(left).min(LONGEST).as_secs());
        if valid_for.is_zero() {
            return Err(gone());
        }
        let url = self
            .sign(file, valid_for, headers(file, disposition))
            .await?;
        Ok(Presigned {
            url,
            expires: now + valid_for,
        })
    }

    #[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
    fn signs(&self) -> bool {
        self.signer.is_some()
    }

    #[cfg(not(any(feature = "aws", feature = "gcp", feature = "azure")))]
    fn signs(&self) -> bool {
        false
    }

    #[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
    async fn sign(
        &self,
        file: &FileRef,
        valid_for: Duration,
        headers: (String, String),
    ) -> Result<Url, BlobError> {
        use object_store::signer::{Method, SignedUrlOptions};
        let Some(signer) = &self.signer else {
            return Err(UNSUPPORTED);
        };
        let (media_type, disposition) = headers;
        let options = SignedUrlOptions::new().with_query([
            ("response-content-type", media_type),
            ("response-content-disposition", disposition),
        ]);
        let key = self.key(&file.digest());
        match signer
            .signed_url_opts(Method::GET, &key, valid_for, &options)
            .await
        {
            Ok(url) => Ok(url),
            Err(object_store::Error::NotSupported { .. }) => Err(UNSUPPORTED),
            Err(error) => Err(self.failed("signing a link", error)),
        }
    }

    #[cfg(not(any(feature = "aws", feature = "gcp", feature = "azure")))]
    async fn sign(&self, _: &FileRef, _: Duration, _: (String, String)) -> Result<Url, BlobError> {
        Err(UNSUPPORTED)
    }
}

const UNSUPPORTED: BlobError = BlobError::Unsupported {
    what: "this store does not sign the name and type of a download: serve it yourself",
};

/// `Content-Type` and `Content-Disposition` of the answer.
fn headers(file: &FileRef, disposition: Disposition) -> (String, String) {
    let media_type = file.media_type().unwrap_or(&MediaType::OCTET_STREAM);
    let harmless = media_type.is_image() || [MediaType::PDF, MediaType::TEXT].contains(media_type);
    let word = match disposition {
        Disposition::Inline if harmless => "inline",
        _ => "attachment",
    };
    let media_type = match media_type.kind() {
        "text" => format!("{media_type}; charset=utf-8"),
        _ => media_type.to_string(),
    };
    let Some(name) = file.file_name() else {
        return (media_type, word.to_owned());
    };
    // RFC 6266: a plain name for old readers, and the exact one in UTF-8.
    let plain: String = name
        .as_str()
        .chars()
        .map(|character| match character {
            '"' | '\\' | '%' => '_',
            ' '..='~' => character,
            _ => '_',
        })
        .collect();
    let exact: String = name
        .as_str()
        .bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect();
    (
        media_type,
        format!("{word}; filename=\"{plain}\"; filename*=UTF-8''{exact}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_types_are_shown() {
        let file = |media_type: &str, name: &str| {
            FileRef::of(b"x")
                .with_media_type(media_type.parse().expect("type"))
                .with_file_name(name.parse().expect("name"))
        };
        for (media_type, name, asked, expect) in [
            (
                "image/png",
                "a.png",
                Disposition::Inline,
                "inline; filename=\"a.png\"; filename*=UTF-8''a.png",
            ),
            (
                "image/png",
                "a.png",
                Disposition::Attachment,
                "attachment; filename=\"a.png\"; filename*=UTF-8''a.png",
            ),
            (
                "image/svg+xml",
                "a",
                Disposition::Inline,
                "attachment; filename=\"a\"; filename*=UTF-8''a",
            ),
            (
                "text/html",
                "a",
                Disposition::Inline,
                "attachment; filename=\"a\"; filename*=UTF-8''a",
            ),
            (
                "text/plain",
                "é\"%.txt",
                Disposition::Inline,
                "inline; filename=\"___.txt\"; filename*=UTF-8''%C3%A9%22%25.txt",
            ),
        ] {
            assert_eq!(headers(&file(media_type, name), asked).1, expect);
        }
        assert_eq!(
            headers(&file("text/plain", "a"), Disposition::Inline).0,
            "text/plain; charset=utf-8"
        );
        assert_eq!(
            headers(&FileRef::of(b"x"), Disposition::Inline),
            (
                "application/octet-stream".to_owned(),
                "attachment".to_owned()
            )
        );
    }

    #[tokio::test]
    async fn links_are_off_and_a_store_that_cannot_sign_says_so() {
        let blobs = BlobStore::memory();
        let file = blobs.put("hi").await.expect("put");
        let day = Duration::from_secs(86_400);
        for (blobs, part) in [
            (blobs.clone(), "are off"),
            (blobs.with_presigned_links(day), "does not sign"),
        ] {
            let error = blobs
                .presign(&file, day, Disposition::Attachment)
                .await
                .expect_err("refused")
                .to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_link_is_not_shown() {
        let url = "https://bucket.example.test/blobs?X-Amz-Signature=hunter2"
            .parse()
            .expect("url");
        let link = Presigned {
            url,
            expires: SystemTime::UNIX_EPOCH,
        };
        assert!(!format!("{link:?}").contains("hunter2"));
    }
}
