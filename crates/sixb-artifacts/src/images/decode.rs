//! Bytes to pixels of 8 bits, within limits.

use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, metadata::Orientation,
};

use super::{
    ImageLimits, LeftOut,
    structure::{self, Outline},
    watch::{Watch, Watched},
};
use crate::{MediaType, detect, detected};

/// A format that is decoded.
#[derive(Clone, Copy)]
struct Format {
    media_type: &'static MediaType,
    image: ImageFormat,
    outline: fn(&[u8]) -> Outline,
}

const FORMATS: &[Format] = &[
    Format {
        media_type: &MediaType::PNG,
        image: ImageFormat::Png,
        outline: structure::png,
    },
    Format {
        media_type: &MediaType::JPEG,
        image: ImageFormat::Jpeg,
        outline: structure::jpeg,
    },
    Format {
        media_type: &MediaType::GIF,
        image: ImageFormat::Gif,
        outline: structure::gif,
    },
    Format {
        media_type: &MediaType::WEBP,
        image: ImageFormat::WebP,
        outline: structure::webp,
    },
    Format {
        media_type: &MediaType::BMP,
        image: ImageFormat::Bmp,
        outline: structure::bmp,
    },
    Format {
        media_type: &MediaType::TIFF,
        image: ImageFormat::Tiff,
        outline: structure::tiff,
    },
];

/// An image file whose header was read.
pub(super) struct Header {
    format: Format,
    pub(super) outline: Outline,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) orientation: Orientation,
    /// Bytes of the decoded pixels.
    decoded_bytes: u64,
    /// More than 8 bits a channel.
    pub(super) deep: bool,
}

impl Header {
    pub(super) fn media_type(&self) -> &'static MediaType {
        self.format.media_type
    }

    /// What decoding takes at most, in bytes: the pixels as decoded, as 8 bits, and what the decoder holds meanwhile.
    pub(super) fn memory(&self) -> u64 {
        self.decoded_bytes.saturating_mul(2)
    }
}

/// Reads the header, after checks that need no decoder.
pub(super) fn header(bytes: &[u8], limits: &ImageLimits, watch: &Watch) -> Result<Header, LeftOut> {
    if bytes.is_empty() {
        return Err(LeftOut::Empty);
    }
    let format = format(bytes)?;
    let truncated = || LeftOut::Truncated {
        format: format.media_type.clone(),
    };
    let outline = (format.outline)(bytes);
    if !outline.whole {
        return Err(truncated());
    }
    let mut decoder = decoder(bytes, format, limits, watch)
        .map_err(|error| left_out(error, format, (0, 0), limits))?;
    let (width, height) = decoder.dimensions();
    let decoded_bytes = decoder.total_bytes();
    if width == 0 || height == 0 {
        return Err(LeftOut::Corrupt {
            format: format.media_type.clone(),
            detail: "it has no pixels".to_owned(),
        });
    }
    if u64::from(width) * u64::from(height) > limits.decode_pixels
        || decoded_bytes > limits.decode_bytes
    {
        return Err(LeftOut::TooLarge {
            width,
            height,
            limit: limits.decode_pixels,
        });
    }
    Ok(Header {
        format,
        outline,
        width,
        height,
        // A damaged EXIF block does not damage the picture.
        orientation: decoder.orientation().unwrap_or(Orientation::NoTransforms),
        decoded_bytes,
        deep: decoder.color_type().bytes_per_pixel() > decoder.color_type().channel_count(),
    })
}

/// Decodes the first frame, fully.
pub(super) fn pixels(
    bytes: &[u8],
    header: &Header,
    limits: &ImageLimits,
    watch: &Watch,
) -> Result<DynamicImage, LeftOut> {
    let size = (header.width, header.height);
    let decoded = decoder(bytes, header.format, limits, watch).and_then(DynamicImage::from_decoder);
    if watch.is_over() {
        return Err(LeftOut::TimedOut {
            after: limits.timeout,
        });
    }
    Ok(eight_bits(decoded.map_err(|error| {
        left_out(error, header.format, size, limits)
    })?))
}

fn decoder<'a>(
    bytes: &'a [u8],
    format: Format,
    limits: &ImageLimits,
    watch: &Watch,
) -> Result<impl ImageDecoder + 'a, ImageError> {
    let mut reader = ImageReader::with_format(Watched::new(bytes, watch.clone()), format.image);
    let mut bounds = Limits::no_limits();
    bounds.max_alloc = Some(limits.decode_bytes);
    reader.limits(bounds);
    reader.into_decoder()
}

/// By signature, whatever name or type the file came with.
fn format(bytes: &[u8]) -> Result<Format, LeftOut> {
    let Some(found) = detected(bytes) else {
        return Err(match detect(bytes, None, None) {
            Ok(found) if found == MediaType::SVG => LeftOut::Svg,
            Ok(found) => LeftOut::NotAnImage { found },
            Err(_) => LeftOut::Internal,
        });
    };
    match FORMATS.iter().find(|format| *format.media_type == found) {
        Some(format) => Ok(*format),
        None if found.is_image() => Err(LeftOut::Undecodable { format: found }),
        None => Err(LeftOut::NotAnImage { found }),
    }
}

fn eight_bits(image: DynamicImage) -> DynamicImage {
    match image {
        DynamicImage::ImageLuma8(_)
        | DynamicImage::ImageLumaA8(_)
        | DynamicImage::ImageRgb8(_)
        | DynamicImage::ImageRgba8(_) => image,
        DynamicImage::ImageLuma16(_) => image.into_luma8().into(),
        DynamicImage::ImageLumaA16(_) => image.into_luma_alpha8().into(),
        image if image.color().has_alpha() => image.into_rgba8().into(),
        image => image.into_rgb8().into(),
    }
}

fn left_out(
    error: ImageError,
    format: Format,
    (width, height): (u32, u32),
    limits: &ImageLimits,
) -> LeftOut {
    let media_type = format.media_type.clone();
    match error {
        ImageError::Limits(_) => LeftOut::TooLarge {
            width,
            height,
            limit: limits.decode_pixels,
        },
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            LeftOut::TimedOut {
                after: limits.timeout,
            }
        }
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            LeftOut::Truncated { format: media_type }
        }
        ImageError::Unsupported(_) => LeftOut::Undecodable { format: media_type },
        // A decoder's text is about bytes, not from them; bounded all the same.
        error => LeftOut::Corrupt {
            format: media_type,
            detail: error.to_string().chars().take(120).collect(),
        },
    }
}
