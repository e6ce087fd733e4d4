//! Downscaling with Lanczos3. Transparent pixels weigh by their opacity, so that no colour bleeds out of them.

use fast_image_resize::{
    FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer,
    images::{Image, ImageRef},
};
use image::DynamicImage;

use super::LeftOut;

/// The image in this size. Of 8 bits a channel, as [`pixels`](super::decode::pixels) gives them.
pub(super) fn resize(
    image: DynamicImage,
    (width, height): (u32, u32),
) -> Result<DynamicImage, LeftOut> {
    if (image.width(), image.height()) == (width, height) {
        return Ok(image);
    }
    let pixel = match &image {
        DynamicImage::ImageLuma8(_) => PixelType::U8,
        DynamicImage::ImageLumaA8(_) => PixelType::U8x2,
        DynamicImage::ImageRgb8(_) => PixelType::U8x3,
        DynamicImage::ImageRgba8(_) => PixelType::U8x4,
        _ => return Err(LeftOut::Internal),
    };
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3));
    let mut target = Image::new(width, height, pixel);
    let source = ImageRef::new(image.width(), image.height(), image.as_bytes(), pixel)
        .map_err(|_| LeftOut::Internal)?;
    Resizer::new()
        .resize(&source, &mut target, Some(&options))
        .map_err(|_| LeftOut::Internal)?;

    let pixels = target.into_vec();
    let resized = match image {
        DynamicImage::ImageLuma8(_) => {
            image::GrayImage::from_raw(width, height, pixels).map(DynamicImage::from)
        }
        DynamicImage::ImageLumaA8(_) => {
            image::GrayAlphaImage::from_raw(width, height, pixels).map(DynamicImage::from)
        }
        DynamicImage::ImageRgb8(_) => {
            image::RgbImage::from_raw(width, height, pixels).map(DynamicImage::from)
        }
        _ => image::RgbaImage::from_raw(width, height, pixels).map(DynamicImage::from),
    };
    resized.ok_or(LeftOut::Internal)
}
