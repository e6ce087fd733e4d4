//! Why an image is not shown, in words that keep a model from describing what it did not see.

use std::time::Duration;

use crate::MediaType;

/// An image that cannot be shown to a model. [`note`](Self::note) is the text that stands in its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeftOut {
    /// There are no bytes.
    #[error("the file is empty (0 bytes)")]
    Empty,
    /// The bytes are no image, whatever the name or the declaration says.
    #[error("the bytes are no image but {found}")]
    NotAnImage {
        /// What they are.
        found: MediaType,
    },
    /// SVG is text.
    #[error("SVG is text, not pixels: read it as text, or render it to PNG first")]
    Svg,
    /// An image in a format that cannot be decoded here.
    #[error("{format} images cannot be decoded here: convert it to PNG or JPEG first")]
    Undecodable {
        /// The format.
        format: MediaType,
    },
    /// The file ends before the image does.
    #[error("the {format} file is truncated")]
    Truncated {
        /// The format.
        format: MediaType,
    },
    /// The file is damaged.
    #[error("the {format} file is corrupt ({detail})")]
    Corrupt {
        /// The format.
        format: MediaType,
        /// What the decoder says.
        detail: String,
    },
    /// Decoding would take too much.
    #[error(
        "the image is too large to decode ({width}x{height} pixels; at most {limit} pixels and their memory are allowed)"
    )]
    TooLarge {
        /// In pixels.
        width: u32,
        /// In pixels.
        height: u32,
        /// In pixels.
        limit: u64,
    },
    /// It did not become small enough in any format that the model takes.
    #[error(
        "the image does not fit in {limit} bytes of Base64 in any format that this model takes"
    )]
    DoesNotFit {
        /// In bytes.
        limit: u64,
    },
    /// It took too long.
    #[error("the image was not decoded within {} ms", .after.as_millis())]
    TimedOut {
        /// The time it had.
        after: Duration,
    },
    /// A decoder or encoder failed in a way that says nothing of the file.
    #[error("the image could not be processed")]
    Internal,
}

impl LeftOut {
    /// What a model reads instead of the image.
    ///
    /// ```
    /// use sixb_artifacts::images::LeftOut;
    /// assert_eq!(
    ///     LeftOut::Empty.note(),
    ///     "The image was left out: the file is empty (0 bytes). You have not seen it: do not guess or describe what it shows."
    /// );
    /// ```
    pub fn note(&self) -> String {
        format!(
            "The image was left out: {self}. You have not seen it: do not guess or describe what it shows."
        )
    }
}
