//! `MediaType`, and the one function that tells what a file is.

mod detect;
mod signature;
mod svg;
mod zip;

use std::{borrow::Cow, fmt, str::FromStr};

pub use detect::{Contradiction, detect, is_text};
pub use signature::detected;

/// Longest media type, in bytes (RFC 6838: 127 for each half).
const MAX: usize = 255;

/// A media type without parameters, in lower case: `image/png`.
///
/// ```
/// use sixb_artifacts::MediaType;
/// assert_eq!("Text/HTML; charset=utf-8".parse::<MediaType>()?.as_str(), "text/html");
/// assert_eq!("image/jpg".parse::<MediaType>()?, MediaType::JPEG);
/// assert!("png".parse::<MediaType>().is_err());
/// # Ok::<(), sixb_artifacts::MediaTypeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MediaType(Cow<'static, str>);

macro_rules! known {
    ($($name:ident = $text:literal;)*) => {
        impl MediaType {
            $(#[doc = concat!("`", $text, "`.")] pub const $name: Self = Self(Cow::Borrowed($text));)*
        }
    };
}

known! {
    AVIF = "image/avif";
    BMP = "image/bmp";
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    GIF = "image/gif";
    GZIP = "application/gzip";
    HEIC = "image/heic";
    JPEG = "image/jpeg";
    OCTET_STREAM = "application/octet-stream";
    PDF = "application/pdf";
    PNG = "image/png";
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
    SVG = "image/svg+xml";
    TEXT = "text/plain";
    TIFF = "image/tiff";
    WEBP = "image/webp";
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    ZIP = "application/zip";
}

impl MediaType {
    /// The type as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands before the slash.
    pub fn kind(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// Whether it is a picture of pixels: `image/…`, but not SVG, which is text.
    pub fn is_image(&self) -> bool {
        self.kind() == "image" && *self != Self::SVG
    }

    /// Whether files of this type are text by definition: `text/…`, JSON, XML, SVG and source code.
    pub fn is_textual(&self) -> bool {
        const TEXTUAL: &[&str] = &[
            "ecmascript",
            "graphql",
            "javascript",
            "json",
            "jsonl",
            "ld+json",
            "manifest+json",
            "ndjson",
            "node",
            "rtf",
            "sql",
            "toml",
            "typescript",
            "x-httpd-php",
            "x-javascript",
            "x-ndjson",
            "x-perl",
            "x-python",
            "x-ruby",
            "x-sh",
            "x-sql",
            "x-tex",
            "x-toml",
            "x-yaml",
            "xml",
            "yaml",
        ];
        let (kind, name) = self.0.split_once('/').unwrap_or_default();
        kind == "text"
            || name.ends_with("+json")
            || name.ends_with("+xml")
            || name.ends_with("+yaml")
            || TEXTUAL.contains(&name)
    }

    /// Of a file with this extension, by custom.
    pub(crate) fn by_extension(file_name: &str) -> Option<Self> {
        mime_guess::from_path(file_name).first_raw()?.parse().ok()
    }
}

/// Characters of a token (RFC 9110).
fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

impl FromStr for MediaType {
    type Err = MediaTypeError;

    fn from_str(text: &str) -> Result<Self, MediaTypeError> {
        let essence = text
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match essence.split_once('/') {
            Some((kind, name)) if is_token(kind) && is_token(name) && essence.len() <= MAX => {
                Ok(match essence.as_str() {
                    "image/jpg" => Self::JPEG,
                    _ => Self(Cow::Owned(essence)),
                })
            }
            _ => Err(MediaTypeError(text.chars().take(100).collect())),
        }
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for MediaType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for MediaType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Text that is no media type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no media type; one is \"image/png\" or \"text/csv\"")]
pub struct MediaTypeError(String);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parameters_and_case_do_not_count() {
        for (text, expect) in [
            ("image/png", Some("image/png")),
            (" IMAGE/PNG ", Some("image/png")),
            ("image/jpg", Some("image/jpeg")),
            ("Image/JPG;q=1", Some("image/jpeg")),
            ("text/plain; charset=\"utf-8; x\"", Some("text/plain")),
            ("application/vnd.api+json", Some("application/vnd.api+json")),
            ("", None),
            ("png", None),
            ("/png", None),
            ("image/", None),
            ("image/png/x", None),
            ("image/ png", None),
            ("image/p\u{e9}ng", None),
            ("image/png\r\nx: y", None),
            (";image/png", None),
        ] {
            let got = text.parse::<MediaType>().ok();
            assert_eq!(got.as_ref().map(MediaType::as_str), expect, "{text:?}");
        }
        assert!(
            format!("a/{}", "b".repeat(254))
                .parse::<MediaType>()
                .is_err()
        );
    }

    #[test]
    fn what_is_a_picture_and_what_is_text() {
        for (text, image, textual) in [
            ("image/png", true, false),
            ("image/svg+xml", false, true),
            ("application/json", false, true),
            ("application/vnd.api+json", false, true),
            ("text/csv", false, true),
            ("application/pdf", false, false),
            ("video/mp4", false, false),
        ] {
            let media_type: MediaType = text.parse().expect("media type");
            assert_eq!(
                (media_type.is_image(), media_type.is_textual()),
                (image, textual),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn parsing_is_idempotent(text in "\\PC{0,60}", kind in "[A-Za-z]{1,8}", name in "[A-Za-z0-9.+-]{1,20}") {
            for text in [text, format!("{kind}/{name}; a=b")] {
                if let Ok(media_type) = text.parse::<MediaType>() {
                    prop_assert_eq!(media_type.as_str().parse::<MediaType>().expect("again"), media_type.clone());
                    prop_assert_eq!(media_type.as_str().to_ascii_lowercase(), media_type.as_str());
                    prop_assert!(!media_type.as_str().contains([';', ' ']));
                }
            }
        }
    }
}
