//! Blobs in a local folder against the same bytes hashed, copied and synced; fitting a photo against libvips.

use std::{
    fs::File,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use sha2::{Digest as _, Sha256};
use sixb_artifacts::{
    images::{AcceptedFormats, ImageLimits, fit_image_blocking},
    store::BlobStore,
};

use crate::figure::{Goal, Paired, Report};

const MIB: usize = 1 << 20;
/// Starts this program as the subject of the figures on images.
const CHILD: &str = "--fit-image";
const VIPS: &str = "/usr/bin/vips";
/// Runs a command and prints its processor time in seconds and its peak memory in KiB.
const MEASURE: &str = "import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)";

/// In the process that [`CHILD`] starts: fits one file.
pub(crate) fn is_child() -> bool {
    let mut arguments = std::env::args().skip_while(|argument| argument != CHILD);
    let Some(file) = arguments.nth(1) else {
        return false;
    };
    let bytes = std::fs::read(file).expect("photo");
    let fitted = fit_image_blocking(
        bytes.into(),
        &ImageLimits::default(),
        &AcceptedFormats::default(),
    )
    .expect("fits");
    assert_eq!((fitted.width, fitted.height), (2000, 1500));
    true
}

pub(crate) async fn run(report: &mut Report) {
    if !report.wants("artifacts") {
        return;
    }
    puts(
        report,
        "artifacts: put of 25 MiB / hash, copy, fsync",
        1,
        25 * MIB,
        1,
    )
    .await;
    puts(
        report,
        "artifacts: 100 puts of 1 MiB / the same",
        100,
        MIB,
        1,
    )
    .await;
    puts(
        report,
        "artifacts: 8 parallel puts of 8 MiB / one by one",
        8,
        8 * MIB,
        8,
    )
    .await;
    fits(report);
}

/// `count` blobs of `size` bytes, so many at once, in MiB a second.
async fn puts(report: &mut Report, name: &str, count: usize, size: usize, at_once: usize) {
    let folder = tempfile::tempdir().expect("folder");
    let mut rounds = Vec::new();
    for round in 0..9_u8 {
        // Contents of its own in each round: a put of a known blob is another thing.
        let bodies: Vec<bytes::Bytes> = (0..count)
            .map(|body| content(round, body, size).into())
            .collect();
        let mebibytes = (count * size / MIB) as f64;
        let blobs = BlobStore::local(folder.path().join(format!("blobs-{round}"))).expect("store");
        let begin = Instant::now();
        for group in bodies.chunks(at_once) {
            let puts = group.iter().map(|body| {
                let (blobs, body) = (blobs.clone(), body.clone());
                tokio::spawn(async move { blobs.put(body).await.expect("put") })
            });
            for put in futures::future::join_all(puts).await {
                put.expect("no panic");
            }
        }
        let ours = mebibytes / begin.elapsed().as_secs_f64();
        let plain = folder.path().join(format!("plain-{round}"));
        std::fs::create_dir(&plain).expect("folder");
        let begin = Instant::now();
        for (at, body) in bodies.iter().enumerate() {
            hash_copy_sync(body, &plain.join(at.to_string()));
        }
        let floor = mebibytes / begin.elapsed().as_secs_f64();
        if round >= 2 {
            rounds.push((ours, floor));
        }
        std::fs::remove_dir_all(plain).expect("removed");
    }
    report.ratio(name, "MiB/s", Paired::of(&rounds), Goal::AtLeast(0.7));
}

fn content(round: u8, body: usize, size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    bytes[0] = round;
    bytes[1] = body as u8;
    bytes
}

fn hash_copy_sync(bytes: &[u8], path: &Path) {
    std::hint::black_box(Sha256::digest(bytes));
    let mut file = File::create(path).expect("file");
    file.write_all(bytes).expect("written");
    file.sync_all().expect("synced");
}

/// Both as whole processes of one thread, by their processor time: the machine is shared. libvips's start is taken off.
fn fits(report: &mut Report) {
    if !Path::new(VIPS).exists() {
        println!("artifacts: no {VIPS} to compare with: apt-get install libvips-tools");
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let (photo, out) = (
        folder.path().join("photo.jpg"),
        folder.path().join("out.jpg[Q=85]"),
    );
    photo_of_12_megapixels(&photo);
    let (photo, out) = (photo.display().to_string(), out.display().to_string());
    let own = std::env::current_exe()
        .expect("this program")
        .display()
        .to_string();
    let (mut times, mut memory) = (Vec::new(), Vec::new());
    for round in 0..9 {
        let start = measure(&[VIPS, "--version"]);
        let ours = measure(&[&own, CHILD, &photo]);
        let floor = measure(&[
            VIPS,
            "thumbnail_image",
            &photo,
            &out,
            "2000",
            "--height",
            "2000",
            "--size",
            "down",
        ]);
        if round >= 2 {
            times.push((ours.0 * 1000.0, (floor.0 - start.0) * 1000.0));
            memory.push((ours.1 / 1024.0, floor.1 / 1024.0));
        }
    }
    report.ratio(
        "artifacts: fit a 12-megapixel JPEG / libvips",
        "ms",
        Paired::of(&times),
        Goal::AtMost(1.5),
    );
    // 36 MB of pixels and 9 MB of smaller ones; libvips streams them.
    report.ratio(
        "artifacts: its peak memory / libvips",
        "MiB",
        Paired::of(&memory),
        Goal::Value(100.0),
    );
}

/// Processor seconds and peak KiB.
fn measure(command: &[&str]) -> (f64, f64) {
    let output = Command::new("/usr/bin/python3")
        .args(["-c", MEASURE])
        .args(command)
        .env("VIPS_CONCURRENCY", "1")
        .stderr(Stdio::inherit())
        .output()
        .expect("python3 starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text
        .split_whitespace()
        .filter_map(|number| number.parse().ok());
    numbers
        .next()
        .zip(numbers.next())
        .unwrap_or_else(|| panic!("{command:?} failed"))
}

/// 4000×3000 with slopes and noise, of quality 92.
fn photo_of_12_megapixels(path: &Path) {
    let (width, height) = (4_000_u16, 3_000_u16);
    let mut seed = 1_u32;
    let mut pixels = Vec::with_capacity(usize::from(width) * usize::from(height) * 3);
    for y in 0..u32::from(height) {
        for x in 0..u32::from(width) {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (seed >> 28) as u8;
            let wave = |phase: f32| ((phase.sin() * 0.5 + 0.5) * 220.0) as u8 + noise;
            pixels.extend([
                wave(x as f32 / 90.0),
                wave(y as f32 / 70.0),
                wave((x + y) as f32 / 130.0),
            ]);
        }
    }
    let mut encoder = jpeg_encoder::Encoder::new_file(path, 92).expect("file");
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_2_2);
    encoder
        .encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb)
        .expect("encoded");
}
