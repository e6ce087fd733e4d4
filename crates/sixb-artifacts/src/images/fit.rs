//! `fit_image`: header → decode → downscale → turn upright → encode, on a thread that may block.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, LazyLock},
    time::Instant,
};

use bytes::Bytes;
use image::metadata::Orientation;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    AcceptedFormats, ImageLimits, LeftOut,
    decode::{self, Header},
    encode, resize,
    watch::Watch,
};
use crate::MediaType;

/// Memory that all decoders of the process take together, in MiB: parallel calls wait for one another.
const MEMORY_MIB: u32 = 2_048;
static MEMORY: LazyLock<Arc<Semaphore>> =
    LazyLock::new(|| Arc::new(Semaphore::new(MEMORY_MIB as usize)));

/// An image that a model takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FittedImage {
    /// The file: the original bytes, or encoded anew and without metadata.
    pub bytes: Bytes,
    /// Its type.
    pub media_type: MediaType,
    /// Its width, in pixels.
    pub width: u32,
    /// Its height, in pixels.
    pub height: u32,
    /// What the model should know: that the image was made smaller, or that there are more frames.
    pub note: Option<String>,
}

/// Makes an image fit for a model, or says why it is left out.
///
/// The whole image is decoded, whatever its name or declared type. It is sent as it came when it is within the limits, in an
/// accepted format, upright, of one frame and of 8-bit RGB or grey. Else it is turned upright by its EXIF orientation,
/// downscaled with Lanczos3 (never enlarged) and encoded anew without metadata: as PNG when it is flat or transparent and
/// that fits, else as JPEG of the first quality that fits of 85, 80, 70, 55, 40. Of animations and pages the first is sent,
/// with a note of their number.
///
/// Decoding runs on a thread for blocking work. All calls of the process share 2 GiB of memory for pixels and wait for each
/// other beyond that.
///
/// # Errors
/// [`LeftOut`], whose [`note`](LeftOut::note) is meant for the model.
///
/// # Cancellation
/// Dropping the future stops the decoder at its next read. A JPEG is read before it is decoded: that goes on to its end,
/// and its memory stays counted until then.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use sixb_artifacts::images::{AcceptedFormats, ImageLimits, LeftOut, fit_image};
/// let limits = ImageLimits::default();
/// let left_out = fit_image("not an image".into(), &limits, &AcceptedFormats::default()).await.unwrap_err();
/// assert!(matches!(left_out, LeftOut::NotAnImage { .. }));
/// assert!(left_out.note().ends_with("do not guess or describe what it shows."));
/// # }
/// ```
pub async fn fit_image(
    bytes: Bytes,
    limits: &ImageLimits,
    accepted: &AcceptedFormats,
) -> Result<FittedImage, LeftOut> {
    let (limits, accepted) = (*limits, accepted.clone());
    let watch = Watch::until(Instant::now() + limits.timeout);
    let _abandon = watch.abandon_on_drop();
    let work = async {
        let header = {
            let (bytes, watch) = (bytes.clone(), watch.clone());
            blocking(move || decode::header(&bytes, &limits, &watch)).await??
        };
        let permit = memory(&header).await?;
        let watch = watch.clone();
        blocking(move || {
            // Counted until the pixels are gone, also when nobody waits any more.
            let _permit = permit;
            fit(bytes, &header, &limits, &accepted, &watch)
        })
        .await?
    };
    match tokio::time::timeout(limits.timeout, work).await {
        Ok(fitted) => fitted,
        Err(_) => Err(LeftOut::TimedOut {
            after: limits.timeout,
        }),
    }
}

/// As [`fit_image`], on this thread, without the shared bound of memory.
pub fn fit_image_blocking(
    bytes: Bytes,
    limits: &ImageLimits,
    accepted: &AcceptedFormats,
) -> Result<FittedImage, LeftOut> {
    let watch = Watch::until(Instant::now() + limits.timeout);
    let work = || {
        let header = decode::header(&bytes, limits, &watch)?;
        fit(bytes.clone(), &header, limits, accepted, &watch)
    };
    // A decoder that panics on a hostile file must not end more than this image.
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(LeftOut::Internal))
}

/// A part of the process's memory for pixels.
async fn memory(header: &Header) -> Result<OwnedSemaphorePermit, LeftOut> {
    let mib = u32::try_from(header.memory() >> 20)
        .unwrap_or(u32::MAX)
        .clamp(1, MEMORY_MIB);
    MEMORY
        .clone()
        .acquire_many_owned(mib)
        .await
        .map_err(|_| LeftOut::Internal)
}

/// A panic of a decoder ends in `Internal`.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LeftOut> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| LeftOut::Internal)
}

fn fit(
    bytes: Bytes,
    header: &Header,
    limits: &ImageLimits,
    accepted: &AcceptedFormats,
    watch: &Watch,
) -> Result<FittedImage, LeftOut> {
    let pixels = decode::pixels(&bytes, header, limits, watch)?;
    let (width, height) = upright(header.width, header.height, header.orientation);
    let target = limits.target(width, height);
    if target == (width, height) && may_stay(&bytes, header, limits, accepted) {
        return Ok(FittedImage {
            bytes,
            media_type: header.media_type().clone(),
            width,
            height,
            note: None,
        });
    }
    drop(bytes);
    // Smaller first: then there is less to turn.
    let (turned_width, turned_height) = upright(target.0, target.1, header.orientation);
    let mut pixels = resize::resize(pixels, (turned_width, turned_height))?;
    pixels.apply_orientation(header.orientation);
    if watch.is_over() {
        return Err(LeftOut::TimedOut {
            after: limits.timeout,
        });
    }
    let (media_type, bytes) = encode::encode(&pixels, accepted, limits, watch)?;
    Ok(FittedImage {
        bytes,
        media_type,
        width: target.0,
        height: target.1,
        note: note(header, (width, height), target),
    })
}

/// Width and height as seen: a quarter turn swaps them, in both directions.
fn upright(width: u32, height: u32, orientation: Orientation) -> (u32, u32) {
    match orientation {
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => (height, width),
        _ => (width, height),
    }
}

/// Whether the file can be sent as it came, its size in pixels aside.
fn may_stay(
    bytes: &Bytes,
    header: &Header,
    limits: &ImageLimits,
    accepted: &AcceptedFormats,
) -> bool {
    let plain = !header.deep && header.outline.components != 4 && header.outline.frames == 1;
    plain
        && header.orientation == Orientation::NoTransforms
        && accepted.contains(header.media_type())
        && limits.fits(bytes.len())
}

fn note(header: &Header, size: (u32, u32), target: (u32, u32)) -> Option<String> {
    let mut notes = Vec::new();
    if header.outline.frames > 1 {
        let unit = if *header.media_type() == MediaType::TIFF {
            "page"
        } else {
            "frame"
        };
        notes.push(format!(
            "This is the first {unit} of {}.",
            header.outline.frames
        ));
    }
    if size != target {
        notes.push(format!(
            "It was made smaller, from {}x{} to {}x{} pixels.",
            size.0, size.1, target.0, target.1
        ));
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}
