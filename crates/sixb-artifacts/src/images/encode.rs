//! Pixels to a format that the model takes and a size that fits. No metadata is written.

use bytes::Bytes;
use image::{
    DynamicImage, ImageEncoder,
    codecs::png::{CompressionType, FilterType, PngEncoder},
};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use super::{AcceptedFormats, ImageLimits, LeftOut, watch::Watch};
use crate::MediaType;

/// The first of these that fits is taken.
const QUALITIES: [u8; 5] = [85, 80, 70, 55, 40];

/// PNG for flat or transparent images where it fits, else JPEG; PNG too where the model takes no JPEG.
pub(super) fn encode(
    image: &DynamicImage,
    accepted: &AcceptedFormats,
    limits: &ImageLimits,
    watch: &Watch,
) -> Result<(MediaType, Bytes), LeftOut> {
    let (takes_png, takes_jpeg) = (
        accepted.contains(&MediaType::PNG),
        accepted.contains(&MediaType::JPEG),
    );
    if takes_png && (!takes_jpeg || is_transparent(image) || is_flat(image)) {
        let bytes = png(image)?;
        if limits.fits(bytes.len()) {
            return Ok((MediaType::PNG, bytes));
        }
    }
    if takes_jpeg {
        let opaque = opaque(image);
        let image = opaque.as_ref().unwrap_or(image);
        for quality in QUALITIES {
            if watch.is_over() {
                return Err(LeftOut::TimedOut {
                    after: limits.timeout,
                });
            }
            let bytes = jpeg(image, quality)?;
            if limits.fits(bytes.len()) {
                return Ok((MediaType::JPEG, bytes));
            }
        }
    }
    Err(LeftOut::DoesNotFit {
        limit: limits.base64_below,
    })
}

fn png(image: &DynamicImage) -> Result<Bytes, LeftOut> {
    let mut bytes = Vec::new();
    PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, FilterType::Adaptive)
        .write_image(
            image.as_bytes(),
            image.width(),
            image.height(),
            image.color().into(),
        )
        .map_err(|_| LeftOut::Internal)?;
    Ok(bytes.into())
}

/// Of 4:2:0, as cameras write. Not by `image`'s own encoder: it takes five times as long.
fn jpeg(image: &DynamicImage, quality: u8) -> Result<Bytes, LeftOut> {
    let color = match image {
        DynamicImage::ImageLuma8(_) => ColorType::Luma,
        DynamicImage::ImageRgb8(_) => ColorType::Rgb,
        _ => return Err(LeftOut::Internal),
    };
    let side = |side: u32| u16::try_from(side).map_err(|_| LeftOut::Internal);
    let (width, height) = (side(image.width())?, side(image.height())?);
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, quality);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    let encoded = encoder.encode(image.as_bytes(), width, height, color);
    encoded.map_err(|_| LeftOut::Internal)?;
    Ok(bytes.into())
}

/// Over white, since JPEG has no transparency; `None` where there is none to begin with.
fn opaque(image: &DynamicImage) -> Option<DynamicImage> {
    let over_white = |color: u8, alpha: u8| {
        let (color, alpha) = (u16::from(color), u16::from(alpha));
        ((color * alpha + 255 * (255 - alpha) + 127) / 255) as u8
    };
    match image {
        DynamicImage::ImageLumaA8(image) => {
            let pixels = image
                .pixels()
                .map(|pixel| over_white(pixel[0], pixel[1]))
                .collect();
            image::GrayImage::from_raw(image.width(), image.height(), pixels)
                .map(DynamicImage::from)
        }
        DynamicImage::ImageRgba8(image) => {
            let pixels = image
                .pixels()
                .flat_map(|pixel| [0, 1, 2].map(|channel| over_white(pixel[channel], pixel[3])))
                .collect();
            image::RgbImage::from_raw(image.width(), image.height(), pixels).map(DynamicImage::from)
        }
        _ => None,
    }
}

fn is_transparent(image: &DynamicImage) -> bool {
    match image {
        DynamicImage::ImageLumaA8(image) => image.pixels().any(|pixel| pixel[1] < 255),
        DynamicImage::ImageRgba8(image) => image.pixels().any(|pixel| pixel[3] < 255),
        _ => false,
    }
}

/// Whether half of the neighbours in a row are equal: screenshots, drawings and charts are so, photos are not.
fn is_flat(image: &DynamicImage) -> bool {
    let channels = usize::from(image.color().channel_count());
    let row = image.width() as usize * channels;
    let (mut equal, mut all) = (0_usize, 0_usize);
    // Every fourth row tells as much as all.
    for row in image.as_bytes().chunks_exact(row).step_by(4) {
        let pairs = row
            .chunks_exact(channels)
            .zip(row.chunks_exact(channels).skip(1));
        all += row.len() / channels - 1;
        equal += pairs.filter(|(left, right)| left == right).count();
    }
    equal * 2 >= all
}
