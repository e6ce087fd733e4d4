//! `FileRef`: how a file is named in results, transcripts and messages. Parsed strictly, since a model may write one.

use serde::{Deserialize, Serialize};

use crate::{Digest, DigestError, FileName, FileNameError, MediaType, MediaTypeError};

/// The largest integer that every JSON reader keeps: 2⁵³ − 1.
const MAX_SIZE: u64 = (1 << 53) - 1;
/// Longest logical path, in bytes.
const MAX_LOGICAL_PATH: usize = 4 * 1024;

/// A file by its content, with labels that this one reference gives it.
///
/// The content is certain: [`digest`](Self::digest) names it and the store verifies it. Name, type and logical path are
/// untrusted labels: two references to one blob may call it differently.
///
/// As JSON: `{"blobId": "blob_<hex>", "digest": "sha256:<hex>", "sizeBytes": 2, "fileName"?, "mediaType"?, "logicalPath"?}`,
/// a closed object. Reading is strict: hex digits are lower case, the blob id is the digest's, the size is an integer, labels are
/// well formed. A well-formed reference can still be a forged one: see [`RunFiles`](crate::RunFiles).
///
/// ```
/// use sixb_artifacts::{Digest, FileRef};
/// let file = FileRef::new(Digest::of(b"hi"), 2).with_file_name("hi.txt".parse()?);
/// let json = serde_json::to_value(&file)?;
/// assert_eq!(json["sizeBytes"], 2);
/// assert_eq!(serde_json::from_value::<FileRef>(json)?, file);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "Wire")]
pub struct FileRef {
    digest: Digest,
    size: u64,
    file_name: Option<FileName>,
    media_type: Option<MediaType>,
    logical_path: Option<String>,
}

impl FileRef {
    /// A reference without labels. `size` is in bytes.
    pub fn new(digest: Digest, size: u64) -> Self {
        Self {
            digest,
            size: size.min(MAX_SIZE),
            file_name: None,
            media_type: None,
            logical_path: None,
        }
    }

    /// The reference to `bytes`, without labels.
    pub fn of(bytes: &[u8]) -> Self {
        Self::new(Digest::of(bytes), bytes.len() as u64)
    }

    /// Names the file.
    #[must_use]
    pub fn with_file_name(mut self, name: FileName) -> Self {
        self.file_name = Some(name);
        self
    }

    /// Says what it is.
    #[must_use]
    pub fn with_media_type(mut self, media_type: MediaType) -> Self {
        self.media_type = Some(media_type);
        self
    }

    /// Says where it stood: `reports/2026/q3.pdf`.
    ///
    /// # Errors
    /// A path that is empty, over 4 KiB or holds control characters.
    pub fn with_logical_path(mut self, path: impl Into<String>) -> Result<Self, FileRefError> {
        self.logical_path = Some(logical_path(path.into())?);
        Ok(self)
    }

    /// The digest of its bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its blob id, derived from the digest.
    pub fn blob_id(&self) -> String {
        self.digest.blob_id()
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What this reference calls it.
    pub fn file_name(&self) -> Option<&FileName> {
        self.file_name.as_ref()
    }

    /// What this reference says it is.
    pub fn media_type(&self) -> Option<&MediaType> {
        self.media_type.as_ref()
    }

    /// Where this reference says it stood.
    pub fn logical_path(&self) -> Option<&str> {
        self.logical_path.as_deref()
    }

    /// Whether both name the same content; labels do not count.
    pub fn same_content(&self, other: &Self) -> bool {
        (self.digest, self.size) == (other.digest, other.size)
    }
}

fn logical_path(path: String) -> Result<String, FileRefError> {
    if path.is_empty() || path.len() > MAX_LOGICAL_PATH || path.chars().any(char::is_control) {
        return Err(FileRefError::LogicalPath { bytes: path.len() });
    }
    Ok(path)
}

/// The JSON form, before it is checked.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wire {
    blob_id: String,
    digest: String,
    size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    file_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    media_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    logical_path: Option<String>,
}

impl TryFrom<Wire> for FileRef {
    type Error = FileRefError;

    fn try_from(wire: Wire) -> Result<Self, FileRefError> {
        let digest: Digest = wire.digest.parse()?;
        let blob = Digest::from_blob_id(&wire.blob_id)?;
        if blob != digest {
            return Err(FileRefError::Derivation {
                blob_id: wire.blob_id,
                digest,
            });
        }
        if wire.size_bytes > MAX_SIZE {
            return Err(FileRefError::Size {
                size: wire.size_bytes,
            });
        }
        Ok(Self {
            digest,
            size: wire.size_bytes,
            file_name: wire.file_name.map(|name| name.parse()).transpose()?,
            media_type: wire
                .media_type
                .map(|media_type| media_type.parse())
                .transpose()?,
            logical_path: wire.logical_path.map(logical_path).transpose()?,
        })
    }
}

impl Serialize for FileRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            blob_id: self.blob_id(),
            digest: self.digest.to_string(),
            size_bytes: self.size,
            file_name: self.file_name.as_ref().map(ToString::to_string),
            media_type: self.media_type.as_ref().map(ToString::to_string),
            logical_path: self.logical_path.clone(),
        };
        wire.serialize(serializer)
    }
}

/// Why something is no [`FileRef`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileRefError {
    /// The blob id or the digest is malformed.
    #[error(transparent)]
    Digest(#[from] DigestError),
    /// The blob id is well formed, but not this digest's.
    #[error("blobId {blob_id:?} is not derived from digest \"{digest}\"; it would be {:?}", .digest.blob_id())]
    Derivation {
        /// The blob id as given.
        blob_id: String,
        /// The digest as given.
        digest: Digest,
    },
    /// The size cannot be one.
    #[error("sizeBytes {size} is over {MAX_SIZE}")]
    Size {
        /// The size as given, in bytes.
        size: u64,
    },
    /// The label `fileName` is no safe name.
    #[error(transparent)]
    FileName(#[from] FileNameError),
    /// The label `mediaType` is no media type.
    #[error(transparent)]
    MediaType(#[from] MediaTypeError),
    /// The label `logicalPath` is no path.
    #[error(
        "logicalPath of {bytes} bytes: it must hold 1 to {MAX_LOGICAL_PATH} bytes and no control characters"
    )]
    LogicalPath {
        /// Its length, in bytes.
        bytes: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn valid() -> Value {
        let file = FileRef::of(b"hi")
            .with_file_name("hi.txt".parse().expect("name"))
            .with_media_type(MediaType::TEXT);
        serde_json::to_value(file.with_logical_path("notes/hi.txt").expect("path")).expect("json")
    }

    #[test]
    fn the_wire_form_is_exact() {
        let hex = Digest::of(b"hi").hex();
        assert_eq!(
            valid(),
            json!({
                "blobId": format!("blob_{hex}"), "digest": format!("sha256:{hex}"), "sizeBytes": 2,
                "fileName": "hi.txt", "mediaType": "text/plain", "logicalPath": "notes/hi.txt",
            })
        );
        let bare = serde_json::to_value(FileRef::of(b"hi")).expect("json");
        assert_eq!(
            bare.as_object().expect("object").len(),
            3,
            "absent labels are left out"
        );
    }

    #[test]
    fn one_wrong_field_is_enough() {
        let other = Digest::of(b"other").blob_id();
        for (field, value, part) in [
            ("blobId", json!(other), "is not derived from"),
            ("blobId", json!("blob_1"), "is no digest"),
            ("digest", json!("sha256:1"), "is no digest"),
            // What else serde says of a number depends on whether somebody else in the program keeps all its digits.
            ("sizeBytes", json!(-1), "invalid"),
            ("sizeBytes", json!(1.5), "invalid"),
            ("sizeBytes", json!("2"), "invalid type"),
            ("sizeBytes", json!(1_u64 << 53), "is over 9007199254740991"),
            ("fileName", json!("../hi"), "file name"),
            ("mediaType", json!("text"), "media type"),
            ("logicalPath", json!(""), "logicalPath of 0 bytes"),
            ("logicalPath", json!("a\nb"), "control"),
            ("url", json!("https://example.test"), "unknown field"),
        ] {
            let mut wire = valid();
            wire[field] = value.clone();
            let error = serde_json::from_value::<FileRef>(wire)
                .expect_err("refused")
                .to_string();
            assert!(error.contains(part), "{field} = {value}: {error}");
        }
        for field in ["blobId", "digest", "sizeBytes"] {
            let mut wire = valid();
            wire.as_object_mut().expect("object").remove(field);
            assert!(
                serde_json::from_value::<FileRef>(wire).is_err(),
                "without {field}"
            );
        }
    }

    proptest! {
        /// The same property that the fuzz target `file_ref` looks for.
        #[test]
        fn whatever_is_read_is_written_back(text in "\\PC{0,300}", size in any::<u64>(), name in "\\PC{0,40}") {
            let _ = serde_json::from_str::<FileRef>(&text);
            let mut wire = valid();
            wire["sizeBytes"] = json!(size);
            wire["fileName"] = json!(name);
            if let Ok(file) = serde_json::from_value::<FileRef>(wire) {
                let again = serde_json::to_value(&file).expect("json");
                prop_assert_eq!(serde_json::from_value::<FileRef>(again).expect("reads"), file);
            }
        }
    }
}
