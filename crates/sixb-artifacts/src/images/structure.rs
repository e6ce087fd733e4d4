//! The outline of an image file, read without decoding: whether it is whole, how many frames it has, how it holds colour.
//!
//! Decoders forgive a missing end and fill the rest with grey; a model would describe the grey.

/// What the outline shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outline {
    /// The file goes on to its proper end.
    pub(super) whole: bool,
    /// Frames of an animation or pages, as far as they could be counted.
    pub(super) frames: usize,
    /// Colour components of a JPEG: 4 is CMYK.
    pub(super) components: u8,
}

impl Outline {
    fn of(whole: bool, frames: usize) -> Self {
        Self {
            whole,
            frames: frames.max(1),
            components: 0,
        }
    }
}

/// Chunks up to `IEND`; `acTL` holds the number of frames.
pub(super) fn png(bytes: &[u8]) -> Outline {
    let (mut at, mut frames) = (8, 1);
    while let (Some(len), Some(kind)) = (be32(bytes, at), bytes.get(at + 4..at + 8)) {
        let end = at + 12 + len as usize;
        if end > bytes.len() {
            break;
        }
        match kind {
            b"acTL" => frames = be32(bytes, at + 8).unwrap_or(1) as usize,
            b"IEND" => return Outline::of(true, frames),
            _ => {}
        }
        at = end;
    }
    Outline::of(false, frames)
}

/// Segments, then scans, up to the end-of-image marker.
pub(super) fn jpeg(bytes: &[u8]) -> Outline {
    let mut at = 2;
    let mut components = 0;
    let outline = |whole, components| Outline {
        components,
        ..Outline::of(whole, 1)
    };
    while let Some(marker) = bytes.get(at..at + 2) {
        let [0xff, code] = *marker else {
            // Entropy-coded data, or padding: up to the next marker.
            at += 1 + memchr_ff(&bytes[at + 1..]);
            continue;
        };
        match code {
            0xd9 => return outline(true, components),
            // A fill byte; a stuffed zero; markers without a segment.
            0xff => at += 1,
            0x00 | 0x01 | 0xd0..=0xd8 => at += 2,
            _ => {
                let Some(len) = be16(bytes, at + 2) else {
                    break;
                };
                if matches!(code, 0xc0..=0xcf) && !matches!(code, 0xc4 | 0xc8 | 0xcc) {
                    components = bytes.get(at + 9).copied().unwrap_or(0);
                }
                at += 2 + usize::from(len.max(2));
            }
        }
    }
    outline(false, components)
}

fn memchr_ff(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|byte| *byte == 0xff)
        .unwrap_or(bytes.len())
}

/// Blocks up to the trailer; each image descriptor is a frame.
pub(super) fn gif(bytes: &[u8]) -> Outline {
    let table = |flags: u8| {
        if flags & 0x80 == 0 {
            0
        } else {
            3 << ((flags & 7) + 1)
        }
    };
    let Some(flags) = bytes.get(10) else {
        return Outline::of(false, 1);
    };
    let mut at = 13 + table(*flags);
    let mut frames = 0;
    loop {
        match bytes.get(at) {
            Some(0x3b) => return Outline::of(true, frames),
            Some(0x21) => at = sub_blocks(bytes, at + 2),
            Some(0x2c) => {
                let Some(flags) = bytes.get(at + 9) else {
                    break;
                };
                frames += 1;
                at = sub_blocks(bytes, at + 11 + table(*flags));
            }
            // Zeros between blocks are written by some programs.
            Some(0) => at += 1,
            _ => break,
        }
    }
    Outline::of(false, frames)
}

/// Behind the sub-blocks that begin here.
fn sub_blocks(bytes: &[u8], mut at: usize) -> usize {
    while let Some(len) = bytes.get(at) {
        at += 1 + usize::from(*len);
        if *len == 0 {
            break;
        }
    }
    at
}

/// The size of the RIFF chunk; each `ANMF` chunk is a frame.
pub(super) fn webp(bytes: &[u8]) -> Outline {
    let Some(size) = le32(bytes, 4) else {
        return Outline::of(false, 1);
    };
    let end = (8 + size as usize).min(bytes.len());
    let (mut at, mut frames, mut pictures) = (12, 0, 0);
    let mut whole = 8 + size as usize <= bytes.len();
    while at + 8 <= end {
        let len = le32(bytes, at + 4).unwrap_or(0) as usize;
        match &bytes[at..at + 4] {
            b"ANMF" => frames += 1,
            b"VP8 " | b"VP8L" => pictures += 1,
            _ => {}
        }
        at += 8 + len + (len & 1);
    }
    // A last chunk may lack its padding.
    whole &= frames + pictures > 0 && at <= end + 1;
    Outline::of(whole, frames)
}

/// The chain of directories: each is a page. Where it is cut cannot be told from here: the decoder sees it.
pub(super) fn tiff(bytes: &[u8]) -> Outline {
    /// More pages than a person means.
    const MOST: usize = 10_000;
    let little = bytes.starts_with(b"II");
    let read16 = |at: usize| -> Option<u16> {
        let two = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(if little {
            u16::from_le_bytes(two)
        } else {
            u16::from_be_bytes(two)
        })
    };
    let read32 = |at: usize| -> Option<u32> {
        let four = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if little {
            u32::from_le_bytes(four)
        } else {
            u32::from_be_bytes(four)
        })
    };
    let mut pages = 0;
    if read16(2) == Some(42) {
        let mut at = read32(4).unwrap_or(0) as usize;
        while at != 0 && pages < MOST {
            let Some(entries) = read16(at) else { break };
            pages += 1;
            at = read32(at + 2 + 12 * usize::from(entries)).unwrap_or(0) as usize;
        }
    }
    Outline::of(true, pages)
}

/// Nothing to see: its decoder fails where bytes are missing.
pub(super) fn bmp(_bytes: &[u8]) -> Outline {
    Outline::of(true, 1)
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..at.checked_add(2)?)?
        .try_into()
        .ok()
        .map(u16::from_be_bytes)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at.checked_add(4)?)?
        .try_into()
        .ok()
        .map(u32::from_be_bytes)
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at.checked_add(4)?)?
        .try_into()
        .ok()
        .map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_marker_inside_a_segment_is_no_end() {
        let with_thumbnail = b"\xff\xd8\xff\xe1\0\x06\xff\xd9\0\0\xff\xda\0\x02ab\xff\0c\xff\xd0d";
        assert!(!jpeg(with_thumbnail).whole);
        assert!(jpeg(&[with_thumbnail.as_slice(), b"\xff\xff\xd9"].concat()).whole);
    }

    proptest! {
        #[test]
        fn no_bytes_make_an_outline_panic_or_hang(bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0_usize..6) {
            let start: &[u8] = [
                b"\x89PNG\r\n\x1a\n".as_slice(), b"\xff\xd8\xff", b"GIF89a\x01\0\x01\0\x80\0\0", b"RIFF\x20\0\0\0WEBP", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08",
            ][kind];
            let bytes = [start, &bytes].concat();
            for outline in [png, jpeg, gif, webp, tiff, bmp] {
                outline(&bytes);
            }
        }
    }
}
