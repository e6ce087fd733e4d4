//! What a model takes, and what an image may cost.

use std::time::Duration;

use crate::MediaType;

/// Bounds of [`fit_image`](super::fit_image).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageLimits {
    /// Widest image that is sent, in pixels. Default: 2 000.
    pub width: u32,
    /// Highest image that is sent, in pixels. Default: 2 000.
    pub height: u32,
    /// The image in Base64 must be shorter than this, in bytes. Default: 4 718 592 (4.5 MiB).
    pub base64_below: u64,
    /// Largest image that is decoded, in pixels: larger ones are left out. Default: 100 000 000.
    pub decode_pixels: u64,
    /// Memory that decoding may take, in bytes. Default: 850 MiB, which 100 million pixels of 16 bits with transparency need.
    pub decode_bytes: u64,
    /// How long fitting may take. Default: 30 s.
    pub timeout: Duration,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self {
            width: 2_000,
            height: 2_000,
            base64_below: 4_718_592,
            decode_pixels: 100_000_000,
            decode_bytes: 850 << 20,
            timeout: Duration::from_secs(30),
        }
    }
}

impl ImageLimits {
    /// Sets the largest width and height that are sent, in pixels. At least 1.
    #[must_use]
    pub fn size(mut self, width: u32, height: u32) -> Self {
        (self.width, self.height) = (width.max(1), height.max(1));
        self
    }

    /// Sets what the image in Base64 must be shorter than, in bytes.
    #[must_use]
    pub fn base64_below(mut self, bytes: u64) -> Self {
        self.base64_below = bytes;
        self
    }

    /// Sets the largest image that is decoded, in pixels and in bytes of memory.
    #[must_use]
    pub fn decode(mut self, pixels: u64, bytes: u64) -> Self {
        (self.decode_pixels, self.decode_bytes) = (pixels, bytes);
        self
    }

    /// Sets how long fitting may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(super) fn fits(&self, bytes: usize) -> bool {
        crate::projection::base64_len(bytes as u64) < self.base64_below
    }

    /// The size that an image of this one is sent in: never enlarged, its shape kept.
    pub(super) fn target(&self, width: u32, height: u32) -> (u32, u32) {
        let scale = (f64::from(self.width) / f64::from(width))
            .min(f64::from(self.height) / f64::from(height));
        if scale >= 1.0 {
            return (width, height);
        }
        let scaled =
            |side: u32, most: u32| ((f64::from(side) * scale).round() as u32).clamp(1, most);
        (scaled(width, self.width), scaled(height, self.height))
    }
}

/// The formats that a model takes, by media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedFormats(Vec<MediaType>);

impl AcceptedFormats {
    /// These formats.
    pub fn new(formats: impl IntoIterator<Item = MediaType>) -> Self {
        Self(formats.into_iter().collect())
    }

    /// Whether the model takes images of this type.
    pub fn contains(&self, format: &MediaType) -> bool {
        self.0.contains(format)
    }
}

impl Default for AcceptedFormats {
    /// PNG, JPEG, GIF and WebP: what the large providers take.
    fn default() -> Self {
        Self::new([
            MediaType::PNG,
            MediaType::JPEG,
            MediaType::GIF,
            MediaType::WEBP,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_kept_and_nothing_is_enlarged() {
        let limits = ImageLimits::default();
        for (size, expect) in [
            ((1, 1), (1, 1)),
            ((2000, 2000), (2000, 2000)),
            ((2001, 1), (2000, 1)),
            ((4000, 3000), (2000, 1500)),
            ((3000, 4000), (1500, 2000)),
            ((60_000, 2), (2000, 1)),
            ((2001, 2000), (2000, 1999)),
        ] {
            assert_eq!(limits.target(size.0, size.1), expect, "{size:?}");
        }
    }

    #[test]
    fn base64_is_what_counts() {
        let limits = ImageLimits::default();
        // 3 538 944 bytes are 4 718 592 in Base64: that is not below the limit.
        assert_eq!(
            [3_538_941, 3_538_942, 3_538_944].map(|bytes| limits.fits(bytes)),
            [true, false, false]
        );
    }
}
