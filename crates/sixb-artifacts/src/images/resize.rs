//! Downscaling with Lanczos3. Transparent pixels weigh by their opacity, so that no colour bleeds out of them.

use fast_image_resize::{
    FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer,
    images::{TypedImage, TypedImageRef},
    pixels::{U8, U8x2, U8x3, U8x4},
};
use image::{DynamicImage, GrayAlphaImage, GrayImage, RgbImage, RgbaImage};

use super::LeftOut;

/// The image in this size. Of 8 bits a channel, as [`pixels`](super::decode::pixels) gives them.
pub(super) fn resize(image: DynamicImage, size: (u32, u32)) -> Result<DynamicImage, LeftOut> {
    if (image.width(), image.height()) == size {
        return Ok(image);
    }
    let (width, height) = size;
    let resized = match image {
        DynamicImage::ImageLuma8(_) => {
            GrayImage::from_raw(width, height, pixels::<U8>(&image, size)?).map(DynamicImage::from)
        }
        DynamicImage::ImageLumaA8(_) => {
            GrayAlphaImage::from_raw(width, height, pixels::<U8x2>(&image, size)?)
                .map(DynamicImage::from)
        }
        DynamicImage::ImageRgb8(_) => {
            RgbImage::from_raw(width, height, pixels::<U8x3>(&image, size)?).map(DynamicImage::from)
        }
        DynamicImage::ImageRgba8(_) => {
            RgbaImage::from_raw(width, height, pixels::<U8x4>(&image, size)?)
                .map(DynamicImage::from)
        }
        _ => None,
    };
    resized.ok_or(LeftOut::Internal)
}

/// By pixel type: chosen at run time, all fifteen of the library would be compiled.
fn pixels<P: PixelTrait>(
    image: &DynamicImage,
    (width, height): (u32, u32),
) -> Result<Vec<u8>, LeftOut> {
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3));
    let mut pixels = vec![0; width as usize * height as usize * size_of::<P>()];
    let mut target =
        TypedImage::<P>::from_buffer(width, height, &mut pixels).map_err(|_| LeftOut::Internal)?;
    let source = TypedImageRef::<P>::from_buffer(image.width(), image.height(), image.as_bytes());
    let source = source.map_err(|_| LeftOut::Internal)?;
    let resized = Resizer::new().resize_typed(&source, &mut target, &options);
    resized.map_err(|_| LeftOut::Internal)?;
    drop(target);
    Ok(pixels)
}
