//! Image files made here, so that each is known to the pixel: every form that fitting has to deal with.

use std::io::Cursor;

use image::{
    Delay, DynamicImage, Frame, GrayImage, ImageBuffer, ImageFormat, Luma, Rgb, RgbImage, Rgba,
    RgbaImage,
    codecs::{gif::GifEncoder, webp::WebPEncoder},
};
use jpeg_encoder::{ColorType, Encoder};

/// Four quarters: red and green above, blue and white below. Where each lies tells how the picture was turned.
pub(crate) fn quarters(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| {
        match (x < width / 2, y < height / 2) {
            (true, true) => Rgb([255, 0, 0]),
            (false, true) => Rgb([0, 255, 0]),
            (true, false) => Rgb([0, 0, 255]),
            (false, false) => Rgb([255, 255, 255]),
        }
    })
}

/// Noise on a slope, like a photo: no neighbours are equal.
pub(crate) fn photo(width: u32, height: u32) -> RgbImage {
    let mut seed = 1_u32;
    RgbImage::from_fn(width, height, |x, y| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = (seed >> 27) as u8;
        Rgb([
            (x % 200) as u8 + noise,
            (y % 200) as u8 + noise,
            ((x + y) % 200) as u8 + noise,
        ])
    })
}

/// Noise alone: it does not compress.
pub(crate) fn noise(width: u32, height: u32) -> RgbImage {
    let mut seed = 1_u64;
    RgbImage::from_fn(width, height, |_, _| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        Rgb([(seed >> 40) as u8, (seed >> 48) as u8, (seed >> 56) as u8])
    })
}

pub(crate) fn encode(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.into().write_to(&mut bytes, format).expect("encoded");
    bytes.into_inner()
}

pub(crate) fn jpeg(image: &RgbImage, quality: u8, progressive: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, quality);
    encoder.set_progressive(progressive);
    encoder
        .encode(
            image,
            image.width() as u16,
            image.height() as u16,
            ColorType::Rgb,
        )
        .expect("encoded");
    bytes
}

/// A JPEG of four components. `ycck`: as Adobe's programs write it.
pub(crate) fn cmyk(image: &RgbImage, ycck: bool) -> Vec<u8> {
    let pixels: Vec<u8> = image
        .pixels()
        .flat_map(|pixel| [255 - pixel[0], 255 - pixel[1], 255 - pixel[2], 0])
        .collect();
    let color = if ycck {
        ColorType::CmykAsYcck
    } else {
        ColorType::Cmyk
    };
    let mut bytes = Vec::new();
    Encoder::new(&mut bytes, 95)
        .encode(&pixels, image.width() as u16, image.height() as u16, color)
        .expect("encoded");
    bytes
}

/// A TIFF block with one entry: the orientation, 1 to 8.
fn exif(orientation: u8) -> Vec<u8> {
    [
        b"MM\0*\0\0\0\x08\0\x01".as_slice(),
        &[0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0],
        &[0; 4],
    ]
    .concat()
}

/// The JPEG with an EXIF segment behind its start marker.
pub(crate) fn turned_jpeg(jpeg: &[u8], orientation: u8) -> Vec<u8> {
    let block = [b"Exif\0\0".as_slice(), &exif(orientation)].concat();
    let length = (block.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], &[0xff, 0xe1], &length, &block, &jpeg[2..]].concat()
}

/// The PNG with an `eXIf` chunk behind its header.
pub(crate) fn turned_png(png: &[u8], orientation: u8) -> Vec<u8> {
    [&png[..33], &chunk(b"eXIf", &exif(orientation)), &png[33..]].concat()
}

pub(crate) fn sixteen_bits(image: &RgbImage) -> Vec<u8> {
    let deep: ImageBuffer<Rgb<u16>, Vec<u16>> =
        ImageBuffer::from_fn(image.width(), image.height(), |x, y| {
            Rgb(image.get_pixel(x, y).0.map(|value| u16::from(value) * 257))
        });
    encode(DynamicImage::ImageRgb16(deep), ImageFormat::Png)
}

pub(crate) fn sixteen_bit_grey(width: u32, height: u32) -> Vec<u8> {
    let deep: ImageBuffer<Luma<u16>, Vec<u16>> = ImageBuffer::from_fn(width, height, |x, _| {
        Luma([(x * 65_535 / width.max(2)) as u16])
    });
    encode(DynamicImage::ImageLuma16(deep), ImageFormat::Png)
}

pub(crate) fn grey(width: u32, height: u32) -> GrayImage {
    GrayImage::from_fn(width, height, |x, y| Luma([((x * 7 + y * 13) % 256) as u8]))
}

/// Opaque on the left, transparent on the right.
pub(crate) fn half_transparent(width: u32, height: u32) -> RgbaImage {
    RgbaImage::from_fn(width, height, |x, _| {
        if x < width / 2 {
            Rgba([200, 10, 10, 255])
        } else {
            Rgba([0, 0, 0, 0])
        }
    })
}

/// An animation; `frames` of one colour each.
pub(crate) fn gif(width: u32, height: u32, frames: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    {
        let mut encoder = GifEncoder::new(&mut bytes);
        for frame in 0..frames {
            let picture = RgbaImage::from_pixel(
                width,
                height,
                Rgba([if frame == 0 { 255 } else { 0 }, frame, 0, 255]),
            );
            encoder
                .encode_frame(Frame::from_parts(
                    picture,
                    0,
                    0,
                    Delay::from_numer_denom_ms(100, 1),
                ))
                .expect("frame");
        }
    }
    bytes
}

/// An animated PNG: `frames` are announced; the default picture is the first.
pub(crate) fn apng(png: &[u8], frames: u32) -> Vec<u8> {
    let control = chunk(
        b"acTL",
        &[frames.to_be_bytes(), 0_u32.to_be_bytes()].concat(),
    );
    [&png[..33], &control, &png[33..]].concat()
}

/// An animated WebP of lossless frames.
pub(crate) fn animated_webp(picture: &RgbaImage, frames: usize) -> Vec<u8> {
    let mut still = Vec::new();
    WebPEncoder::new_lossless(&mut still)
        .encode(
            picture,
            picture.width(),
            picture.height(),
            image::ExtendedColorType::Rgba8,
        )
        .expect("encoded");
    let bitstream = &still[12..];
    let size = |side: u32| (side - 1).to_le_bytes()[..3].to_vec();
    let riff = |name: &[u8], body: &[u8]| {
        [
            name,
            &(body.len() as u32).to_le_bytes(),
            body,
            &vec![0; body.len() % 2],
        ]
        .concat()
    };
    let header = [
        &[0x12, 0, 0, 0],
        &size(picture.width())[..],
        &size(picture.height()),
    ]
    .concat();
    let frame = [
        &[0; 6],
        &size(picture.width())[..],
        &size(picture.height()),
        &[100, 0, 0, 0],
        bitstream,
    ]
    .concat();
    let mut body = [
        b"WEBP".to_vec(),
        riff(b"VP8X", &header),
        riff(b"ANIM", &[0; 6]),
    ]
    .concat();
    for _ in 0..frames {
        body.extend(riff(b"ANMF", &frame));
    }
    riff(b"RIFF", &body)
}

/// A PNG written by hand: any bit depth, palette, interlaced or not. `pixel` gives the sample of a place.
pub(crate) fn indexed_png(
    width: u32,
    height: u32,
    depth: u8,
    interlaced: bool,
    pixel: impl Fn(u32, u32) -> u8,
) -> Vec<u8> {
    /// Adam7: first column and row, and the steps.
    const PASSES: [(u32, u32, u32, u32); 7] = [
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    ];
    let whole = [(0, 0, 1, 1)];
    let mut lines = Vec::new();
    for &(left, top, across, down) in if interlaced { &PASSES[..] } else { &whole } {
        for y in (top..height).step_by(down as usize) {
            let samples: Vec<u8> = (left..width)
                .step_by(across as usize)
                .map(|x| pixel(x, y))
                .collect();
            if samples.is_empty() {
                continue;
            }
            lines.push(0); // no filter
            for group in samples.chunks(8 / usize::from(depth)) {
                let packed = group
                    .iter()
                    .fold(0_u16, |byte, sample| byte << depth | u16::from(*sample));
                lines.push((packed << (8 - usize::from(depth) * group.len())) as u8);
            }
        }
    }
    let palette = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]].concat();
    png(
        width,
        height,
        depth,
        3,
        interlaced,
        &[(b"PLTE", palette)],
        &lines,
    )
}

/// A PNG of these lines, stored without compression.
pub(crate) fn png(
    width: u32,
    height: u32,
    depth: u8,
    color: u8,
    interlaced: bool,
    before: &[(&[u8; 4], Vec<u8>)],
    lines: &[u8],
) -> Vec<u8> {
    let header = [
        &width.to_be_bytes()[..],
        &height.to_be_bytes(),
        &[depth, color, 0, 0, u8::from(interlaced)],
    ]
    .concat();
    let mut data = vec![0x78, 0x01];
    let mut blocks = lines.chunks(65_535).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        data.push(u8::from(blocks.peek().is_none()));
        data.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
        data.extend(block);
    }
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in lines {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    data.extend((b << 16 | a).to_be_bytes());
    let mut bytes = [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header)].concat();
    for (name, body) in before {
        bytes.extend(chunk(name, body));
    }
    [bytes, chunk(b"IDAT", &data), chunk(b"IEND", &[])].concat()
}

fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let checked = [&name[..], body].concat();
    let mut crc = u32::MAX;
    for byte in &checked {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
    }
    [
        &(body.len() as u32).to_be_bytes()[..],
        &checked,
        &(!crc).to_be_bytes(),
    ]
    .concat()
}

/// Files that claim to be huge, with hardly a byte behind it.
pub(crate) fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let small = quarters(16, 16);
    let png_bomb = png(60_000, 60_000, 8, 2, false, &[], &[0; 100]);
    let mut jpeg_bomb = jpeg(&small, 80, false);
    let frame = jpeg_bomb
        .windows(2)
        .position(|two| two == [0xff, 0xc0])
        .expect("a frame header");
    jpeg_bomb[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xdc, 0xff, 0xdc]);
    let mut gif_bomb = gif(16, 16, 1);
    gif_bomb[6..10].copy_from_slice(&[0xff; 4]);
    let mut bmp_bomb = encode(small.clone(), ImageFormat::Bmp);
    bmp_bomb[18..22].copy_from_slice(&60_000_u32.to_le_bytes());
    bmp_bomb[22..26].copy_from_slice(&60_000_u32.to_le_bytes());
    let mut webp_bomb = encode(small, ImageFormat::WebP);
    // 14 bits each behind the signature byte of VP8L, less one: 16 383 x 16 383.
    webp_bomb[21..25].copy_from_slice(&[0xfe, 0xbf, 0xff, 0x0f]);
    vec![
        ("png", png_bomb),
        ("jpeg", jpeg_bomb),
        ("gif", gif_bomb),
        ("bmp", bmp_bomb),
        ("webp", webp_bomb),
    ]
}
