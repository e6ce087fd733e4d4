use sixb_artifacts::images::*;
use std::time::Instant;
fn main() {
    let (w, h) = (4000, 3000);
    let mut seed = 1u32;
    let image = image::RgbImage::from_fn(w, h, |x, y| {
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        let n = (seed >> 28) as u8;
        let v = |a: f32| ((a.sin() * 0.5 + 0.5) * 220.0) as u8;
        image::Rgb([v(x as f32 / 90.0).wrapping_add(n), v(y as f32 / 70.0).wrapping_add(n), v((x + y) as f32 / 130.0).wrapping_add(n)])
    });
    let mut jpeg = Vec::new();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut jpeg, 92).encode_image(&image).unwrap();
    std::fs::write("/tmp/wt-artifacts/target/12mp.jpg", &jpeg).unwrap();
    println!("{} bytes", jpeg.len());
    let jpeg: bytes::Bytes = jpeg.into();
    for _ in 0..5 {
        let t = Instant::now();
        let d = image::load_from_memory(&jpeg).unwrap();
        let a = t.elapsed();
        let f = fit_image_blocking(jpeg.clone(), &ImageLimits::default(), &AcceptedFormats::default()).unwrap();
        let b = t.elapsed() - a;
        let small = d.resize(2000, 1500, image::imageops::FilterType::Triangle).to_rgb8();
        let t = Instant::now();
        let mut out = Vec::new();
        image::codecs::jpeg::JpegEncoder::new_with_quality(&mut out, 85).encode_image(&small).unwrap();
        let c = t.elapsed();
        println!("decode {a:?} fit {b:?} encode {c:?} {} {}", f.bytes.len(), out.len());
    }
}
