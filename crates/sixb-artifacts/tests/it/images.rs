//! Fitting images, over the corpus: what stays, what is changed and how, and what is left out with which words.

use std::time::{Duration, Instant};

use bytes::Bytes;
use image::{DynamicImage, ImageFormat, RgbImage, Rgba};
use jpeg_encoder::{ColorType, Encoder};
use sixb_artifacts::{
    MediaType,
    images::{AcceptedFormats, FittedImage, ImageLimits, LeftOut, fit_image, fit_image_blocking},
};

use super::corpus::{
    animated_webp, apng, bombs, cmyk, encode, gif, grey, half_transparent, indexed_png, jpeg,
    noise, photo, png, quarters, sixteen_bit_grey, sixteen_bits, turned_jpeg, turned_png,
};

fn fit(bytes: impl Into<Bytes>) -> Result<FittedImage, LeftOut> {
    fit_within(bytes, ImageLimits::default())
}

fn fit_within(bytes: impl Into<Bytes>, limits: ImageLimits) -> Result<FittedImage, LeftOut> {
    fit_image_blocking(bytes.into(), &limits, &AcceptedFormats::default())
}

fn decoded(fitted: &FittedImage) -> RgbImage {
    let image = image::load_from_memory(&fitted.bytes)
        .expect("what is sent can be decoded")
        .to_rgb8();
    assert_eq!(image.dimensions(), (fitted.width, fitted.height));
    image
}

/// The colours in the middle of the four quarters, as letters.
fn corners(image: &RgbImage) -> String {
    let (width, height) = image.dimensions();
    let letter = |x: u32, y: u32| match image.get_pixel(x, y).0.map(|value| value > 127) {
        [true, false, false] => 'r',
        [false, true, false] => 'g',
        [false, false, true] => 'b',
        [true, true, true] => 'w',
        _ => '?',
    };
    [(1, 1), (3, 1), (1, 3), (3, 3)]
        .map(|(x, y)| letter(width * x / 4, height * y / 4))
        .iter()
        .collect()
}

#[test]
fn what_fits_is_sent_as_it_came() {
    let picture = quarters(40, 30);
    for bytes in [
        encode(picture.clone(), ImageFormat::Png),
        jpeg(&picture, 90, false),
        jpeg(&picture, 90, true),
        encode(picture.clone(), ImageFormat::WebP),
        gif(40, 30, 1),
        encode(grey(40, 30), ImageFormat::Png),
        encode(half_transparent(40, 30), ImageFormat::Png),
        indexed_png(40, 30, 2, false, |x, y| ((x / 20) + 2 * (y / 15)) as u8),
        encode(quarters(2000, 2000), ImageFormat::Png),
    ] {
        let fitted = fit(bytes.clone()).expect("fits");
        assert_eq!(fitted.bytes, bytes, "{}", fitted.media_type);
        assert_eq!(fitted.note, None);
    }
}

#[test]
fn each_form_is_decoded_as_what_it_shows() {
    let picture = quarters(64, 48);
    let place = |x: u32, y: u32| ((x / 32) + 2 * (y / 24)) as u8;
    // A size below makes each be encoded anew, so that the pixels are what the decoder gave.
    let limits = ImageLimits::default().size(32, 32);
    for (what, bytes, media_type) in [
        (
            "png",
            encode(picture.clone(), ImageFormat::Png),
            MediaType::PNG,
        ),
        ("jpeg", jpeg(&picture, 90, false), MediaType::JPEG),
        (
            "progressive jpeg",
            jpeg(&picture, 90, true),
            MediaType::JPEG,
        ),
        ("cmyk jpeg", cmyk(&picture, false), MediaType::JPEG),
        ("ycck jpeg", cmyk(&picture, true), MediaType::JPEG),
        ("16 bits", sixteen_bits(&picture), MediaType::PNG),
        (
            "palette of 2 bits",
            indexed_png(64, 48, 2, false, place),
            MediaType::PNG,
        ),
        (
            "palette of 4 bits",
            indexed_png(64, 48, 4, false, place),
            MediaType::PNG,
        ),
        (
            "interlaced",
            indexed_png(64, 48, 8, true, place),
            MediaType::PNG,
        ),
        (
            "interlaced, 2 bits",
            indexed_png(64, 48, 2, true, place),
            MediaType::PNG,
        ),
        (
            "webp",
            encode(picture.clone(), ImageFormat::WebP),
            MediaType::PNG,
        ),
        (
            "bmp",
            encode(picture.clone(), ImageFormat::Bmp),
            MediaType::PNG,
        ),
        (
            "tiff",
            encode(picture.clone(), ImageFormat::Tiff),
            MediaType::PNG,
        ),
    ] {
        let fitted =
            fit_within(bytes, limits).unwrap_or_else(|left_out| panic!("{what}: {left_out}"));
        assert_eq!((fitted.width, fitted.height), (32, 24), "{what}");
        assert_eq!(corners(&decoded(&fitted)), "rgbw", "{what}");
        // Which of the two it is depends on the noise that JPEG left.
        assert!(
            [MediaType::PNG, media_type].contains(&fitted.media_type),
            "{what}: {}",
            fitted.media_type
        );
    }
}

#[test]
fn what_models_do_not_take_is_encoded_anew_even_if_small() {
    let picture = quarters(40, 30);
    for (what, bytes) in [
        ("bmp", encode(picture.clone(), ImageFormat::Bmp)),
        ("tiff", encode(picture.clone(), ImageFormat::Tiff)),
        ("16 bits", sixteen_bits(&picture)),
        ("cmyk", cmyk(&picture, false)),
        ("ycck", cmyk(&picture, true)),
    ] {
        let fitted = fit(bytes).unwrap_or_else(|left_out| panic!("{what}: {left_out}"));
        assert_eq!(corners(&decoded(&fitted)), "rgbw", "{what}");
        assert!(
            [MediaType::PNG, MediaType::JPEG].contains(&fitted.media_type),
            "{what}"
        );
        assert_eq!(
            image::load_from_memory(&fitted.bytes)
                .expect("image")
                .color()
                .bytes_per_pixel(),
            3,
            "{what}: 8 bits"
        );
    }
    let grey = fit(sixteen_bit_grey(64, 4)).expect("fits");
    assert_eq!(
        image::load_from_memory(&grey.bytes).expect("image").color(),
        image::ColorType::L8
    );
}

/// The model's own list decides.
#[test]
fn accepted_formats_are_the_models() {
    let picture = encode(quarters(40, 30), ImageFormat::WebP);
    for (accepted, expect) in [
        (vec![MediaType::WEBP], Ok(MediaType::WEBP)),
        (vec![MediaType::PNG], Ok(MediaType::PNG)),
        (vec![MediaType::JPEG], Ok(MediaType::JPEG)),
        (
            vec![MediaType::GIF],
            Err(LeftOut::DoesNotFit { limit: 4_718_592 }),
        ),
        (vec![], Err(LeftOut::DoesNotFit { limit: 4_718_592 })),
    ] {
        let fitted = fit_image_blocking(
            picture.clone().into(),
            &ImageLimits::default(),
            &AcceptedFormats::new(accepted),
        );
        assert_eq!(fitted.map(|fitted| fitted.media_type), expect);
    }
}

#[test]
fn exif_orientations_are_applied_and_dropped() {
    let picture = quarters(64, 48);
    for (orientation, expect, size) in [
        (1, "rgbw", (64, 48)),
        (2, "grwb", (64, 48)),
        (3, "wbgr", (64, 48)),
        (4, "bwrg", (64, 48)),
        (5, "rbgw", (48, 64)),
        (6, "brwg", (48, 64)),
        (7, "wgbr", (48, 64)),
        (8, "gwrb", (48, 64)),
    ] {
        for bytes in [
            turned_jpeg(&jpeg(&picture, 95, false), orientation),
            turned_png(&encode(picture.clone(), ImageFormat::Png), orientation),
        ] {
            let fitted = fit(bytes.clone()).expect("fits");
            assert_eq!((fitted.width, fitted.height), size, "{orientation}");
            if orientation == 1 {
                assert_eq!(fitted.bytes, bytes, "it is upright");
                continue;
            }
            assert_eq!(corners(&decoded(&fitted)), expect, "{orientation}");
            let has = |word: &[u8]| {
                fitted
                    .bytes
                    .windows(word.len())
                    .any(|window| window == word)
            };
            assert!(!has(b"Exif") && !has(b"eXIf"), "metadata is dropped");
        }
    }
    // And with downscaling: the limits are of the picture as seen.
    let limits = ImageLimits::default().size(48, 32);
    let fitted = fit_within(turned_jpeg(&jpeg(&picture, 95, false), 6), limits).expect("fits");
    assert_eq!(
        (
            fitted.width,
            fitted.height,
            corners(&decoded(&fitted)).as_str()
        ),
        (24, 32, "brwg")
    );
}

#[test]
fn case_51_the_first_frame_is_sent_and_the_count_is_said() {
    let still = encode(quarters(8, 8), ImageFormat::Png);
    let red = image::RgbaImage::from_pixel(9, 7, Rgba([255, 0, 0, 255]));
    for (bytes, size, note) in [
        (gif(1, 1, 2), (1, 1), "This is the first frame of 2."),
        (gif(5, 4, 30), (5, 4), "This is the first frame of 30."),
        (apng(&still, 3), (8, 8), "This is the first frame of 3."),
        (
            animated_webp(&red, 4),
            (9, 7),
            "This is the first frame of 4.",
        ),
    ] {
        let fitted = fit(bytes).expect("fits");
        assert_eq!((fitted.width, fitted.height), size);
        assert_eq!(fitted.note.as_deref(), Some(note));
        assert_eq!(fitted.media_type, MediaType::PNG);
        // A GIF's palette is not exact.
        let [red, green, blue] = decoded(&fitted).get_pixel(0, 0).0;
        assert!(red > 250 && green < 5 && blue < 5);
    }
}

#[test]
fn large_images_are_made_smaller_and_the_note_says_so() {
    let fitted = fit(jpeg(&photo(4000, 3000), 90, false)).expect("fits");
    assert_eq!(
        (fitted.width, fitted.height, &fitted.media_type),
        (2000, 1500, &MediaType::JPEG)
    );
    assert_eq!(
        fitted.note.as_deref(),
        Some("It was made smaller, from 4000x3000 to 2000x1500 pixels.")
    );
    for (width, height, expect) in [
        (5000, 1, (2000, 1)),
        (1, 5000, (1, 2000)),
        (2001, 1999, (2000, 1998)),
        (1, 1, (1, 1)),
        (3, 7, (3, 7)),
    ] {
        let fitted = fit(encode(quarters(width, height), ImageFormat::Png)).expect("fits");
        assert_eq!((fitted.width, fitted.height), expect);
        decoded(&fitted);
    }
}

/// 100 megapixels are a large photo, not a bomb. Grey, and with time: resizing is slow without optimisation.
#[test]
fn a_photo_of_100_megapixels_is_made_smaller() {
    let limits = ImageLimits::default().timeout(Duration::from_secs(600));
    let mut photo = Vec::new();
    let pixels = vec![90; 10_000 * 10_000];
    Encoder::new(&mut photo, 50)
        .encode(&pixels, 10_000, 10_000, ColorType::Luma)
        .expect("encoded");
    let fitted = fit_within(photo, limits).expect("fits");
    assert_eq!((fitted.width, fitted.height), (2000, 2000));
    // One row more is too much.
    let left_out = fit(png(10_000, 10_001, 8, 0, false, &[], &[])).expect_err("too large");
    assert_eq!(
        left_out,
        LeftOut::TooLarge {
            width: 10_000,
            height: 10_001,
            limit: 100_000_000
        }
    );
}

#[test]
fn png_for_flat_or_transparent_pictures_else_jpeg() {
    let limits = ImageLimits::default().size(100, 100);
    for (what, image, expect) in [
        (
            "flat",
            DynamicImage::from(quarters(200, 200)),
            MediaType::PNG,
        ),
        (
            "transparent",
            half_transparent(200, 200).into(),
            MediaType::PNG,
        ),
        ("photo", photo(200, 200).into(), MediaType::JPEG),
        (
            "opaque with an alpha channel",
            DynamicImage::from(photo(200, 200)).to_rgba8().into(),
            MediaType::JPEG,
        ),
        (
            "grey photo",
            DynamicImage::from(photo(200, 200)).to_luma8().into(),
            MediaType::JPEG,
        ),
    ] {
        let fitted = fit_within(encode(image, ImageFormat::Png), limits).expect("fits");
        assert_eq!(fitted.media_type, expect, "{what}");
    }
}

#[test]
fn transparent_colours_do_not_bleed_and_jpeg_has_them_over_white() {
    let limits = ImageLimits::default().size(50, 50);
    let bytes = encode(half_transparent(200, 200), ImageFormat::Png);
    let fitted = fit_within(bytes.clone(), limits).expect("fits");
    let image = image::load_from_memory(&fitted.bytes)
        .expect("image")
        .to_rgba8();
    for pixel in image.pixels().filter(|pixel| pixel[3] > 0) {
        assert!(
            pixel[0] > 190,
            "black came from transparent pixels: {pixel:?}"
        );
    }
    let fitted = fit_image_blocking(
        bytes.into(),
        &limits,
        &AcceptedFormats::new([MediaType::JPEG]),
    )
    .expect("fits");
    let image = decoded(&fitted);
    assert!(
        image.get_pixel(45, 25).0.iter().all(|value| *value > 245),
        "{:?}",
        image.get_pixel(45, 25)
    );
}

/// The first quality that fits: smaller limits take lower ones, until none is left.
#[test]
fn quality_goes_down_until_it_fits() {
    let bytes = encode(noise(300, 300), ImageFormat::Png);
    let size = |below: u64| {
        fit_within(bytes.clone(), ImageLimits::default().base64_below(below))
            .map(|fitted| fitted.bytes.len() as u64)
    };
    let mut last = u64::MAX;
    let mut sizes = Vec::new();
    // Each limit is that of the size before: the next quality must be smaller.
    let mut below = bytes.len() as u64;
    while let Ok(bytes) = size(below) {
        assert!(bytes < last && bytes.div_ceil(3) * 4 < below);
        sizes.push(bytes);
        (last, below) = (bytes, bytes.div_ceil(3) * 4);
    }
    assert_eq!(sizes.len(), 5, "85, 80, 70, 55, 40: {sizes:?}");
    assert_eq!(size(below), Err(LeftOut::DoesNotFit { limit: below }));
}

#[test]
fn case_48_nothing_is_an_empty_file() {
    assert_eq!(fit(Bytes::new()), Err(LeftOut::Empty));
}

#[test]
fn case_46_magic_bytes_decide_and_text_is_no_image() {
    let found = |text: &str| LeftOut::NotAnImage {
        found: text.parse().expect("media type"),
    };
    for (bytes, expect) in [
        (&b"just text"[..], found("text/plain")),
        (b"%PDF-1.7\n", found("application/pdf")),
        (b"PK\x03\x04", found("application/zip")),
        (b"\0\x01\x02", found("application/octet-stream")),
        (
            b"\0\0\0\x10ftypavif\0\0\0\0",
            LeftOut::Undecodable {
                format: MediaType::AVIF,
            },
        ),
        (
            b"\0\0\0\x10ftypheic\0\0\0\0",
            LeftOut::Undecodable {
                format: MediaType::HEIC,
            },
        ),
    ] {
        assert_eq!(fit(bytes.to_vec()), Err(expect));
    }
}

#[test]
fn case_50_svg_is_text() {
    let left_out = fit(&br#"<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>"#[..])
        .expect_err("text");
    assert_eq!(left_out, LeftOut::Svg);
    assert!(left_out.note().contains("SVG is text"));
}

#[test]
fn case_59_what_is_left_out_must_not_be_guessed() {
    let mut corrupt = encode(quarters(40, 30), ImageFormat::Png);
    let middle = corrupt.len() / 2;
    corrupt[middle..middle + 8].fill(0xaa);
    let left_out = fit(corrupt).expect_err("corrupt");
    assert!(matches!(left_out, LeftOut::Corrupt { .. }), "{left_out:?}");
    for left_out in [left_out, LeftOut::Empty, LeftOut::Svg, LeftOut::Internal] {
        let note = left_out.note();
        assert!(
            note.starts_with("The image was left out: ")
                && note.ends_with("do not guess or describe what it shows."),
            "{note}"
        );
    }
}

/// Cut at every byte, so at every chunk too.
#[test]
fn truncated_files_are_left_out_wherever_they_end() {
    let picture = quarters(24, 18);
    let red = image::RgbaImage::from_pixel(9, 7, Rgba([255, 0, 0, 255]));
    for (what, bytes, slack) in [
        ("png", encode(picture.clone(), ImageFormat::Png), 0),
        (
            "interlaced png",
            indexed_png(24, 18, 8, true, |x, _| (x % 4) as u8),
            0,
        ),
        ("jpeg", jpeg(&picture, 90, false), 0),
        ("progressive jpeg", jpeg(&picture, 90, true), 0),
        ("turned jpeg", turned_jpeg(&jpeg(&picture, 90, false), 6), 0),
        ("cmyk jpeg", cmyk(&picture, false), 0),
        ("gif", gif(24, 18, 1), 0),
        ("animated gif", gif(8, 8, 3), 0),
        ("webp", encode(picture.clone(), ImageFormat::WebP), 0),
        ("animated webp", animated_webp(&red, 2), 0),
        ("bmp", encode(picture.clone(), ImageFormat::Bmp), 0),
        // The last bytes of a directory say that there is no next page.
        ("tiff", encode(picture.clone(), ImageFormat::Tiff), 16),
    ] {
        fit(bytes.clone()).unwrap_or_else(|left_out| panic!("{what}, whole: {left_out}"));
        for end in 0..bytes.len() - slack {
            let result = fit(bytes[..end].to_vec());
            assert!(
                result.is_err(),
                "{what}, {end} of {} bytes: {result:?}",
                bytes.len()
            );
            assert_ne!(result, Err(LeftOut::Internal), "{what}, {end} bytes");
        }
    }
}

#[test]
fn bombs_are_left_out_at_once() {
    for (what, bytes) in bombs() {
        let begin = Instant::now();
        let left_out = fit(bytes).expect_err(what);
        assert!(
            matches!(left_out, LeftOut::TooLarge { .. }),
            "{what}: {left_out:?}"
        );
        assert!(begin.elapsed() < Duration::from_secs(5), "{what}");
    }
}

#[test]
fn memory_bounds_what_is_decoded() {
    let bytes = encode(quarters(1000, 1000), ImageFormat::Png);
    let left_out = fit_within(
        bytes.clone(),
        ImageLimits::default().decode(100_000_000, 1_000_000),
    )
    .expect_err("3 MB of pixels");
    assert!(
        matches!(
            left_out,
            LeftOut::TooLarge {
                width: 1000,
                height: 1000,
                ..
            }
        ),
        "{left_out:?}"
    );
    assert!(
        fit_within(
            bytes,
            ImageLimits::default().decode(100_000_000, 10_000_000)
        )
        .is_ok()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn time_bounds_it_and_parallel_calls_all_end() {
    let photo: Bytes = jpeg(&photo(3000, 2000), 90, false).into();
    let limits = ImageLimits::default().timeout(Duration::from_secs(600));
    let accepted = AcceptedFormats::default();
    let left_out = fit_image(photo.clone(), &limits.timeout(Duration::ZERO), &accepted)
        .await
        .expect_err("no time");
    assert!(matches!(left_out, LeftOut::TimedOut { .. }), "{left_out:?}");
    let fits = (0..8).map(|_| fit_image(photo.clone(), &limits, &accepted));
    for fitted in futures::future::join_all(fits).await {
        assert_eq!(fitted.expect("fits").width, 2000);
    }
}

mod hostile {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// The same property that the fuzz target `fit_image` looks for: damaged files end in an image within limits or in a
        /// reason, and never in a panic of a decoder.
        #[test]
        fn damage_anywhere_ends_well(kind in 0_usize..8, noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
            let picture = quarters(20, 14);
            let mut bytes = match kind {
                0 => encode(picture, ImageFormat::Png),
                1 => jpeg(&picture, 80, false),
                2 => jpeg(&picture, 80, true),
                3 => gif(20, 14, 2),
                4 => encode(picture, ImageFormat::WebP),
                5 => encode(picture, ImageFormat::Bmp),
                6 => encode(picture, ImageFormat::Tiff),
                _ => turned_png(&indexed_png(20, 14, 4, true, |x, _| (x % 4) as u8), 5),
            };
            for (at, byte) in noise {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let limits = ImageLimits::default().size(16, 16).decode(1_000_000, 16 << 20);
            match fit_within(bytes, limits) {
                Ok(fitted) => {
                    prop_assert!(fitted.width <= 16 && fitted.height <= 16);
                    prop_assert!(AcceptedFormats::default().contains(&fitted.media_type));
                }
                Err(left_out) => prop_assert_ne!(left_out, LeftOut::Internal),
            }
        }
    }
}
