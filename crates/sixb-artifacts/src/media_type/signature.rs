//! Signatures: what the first bytes of a file say it is. Each is narrow enough that prose does not begin so by accident.

use super::{MediaType, zip};

/// The type that the bytes themselves show; `None` where they show none that this crate checks.
///
/// Knows PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF, HEIC, PDF, gzip, and ZIP with what it may hold: OOXML, OpenDocument, EPUB, JAR.
/// These are the types of which a wrong claim is an error: see [`detect`](super::detect).
///
/// ```
/// use sixb_artifacts::{MediaType, detected};
/// assert_eq!(detected(b"\x89PNG\r\n\x1a\n"), Some(MediaType::PNG));
/// assert_eq!(detected(b"BM, he wrote, stands for bitmap"), None);
/// ```
pub fn detected(bytes: &[u8]) -> Option<MediaType> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => MediaType::PNG,
        [0xff, 0xd8, 0xff, ..] => MediaType::JPEG,
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => MediaType::GIF,
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => MediaType::WEBP,
        [b'B', b'M', rest @ ..] if is_bitmap(rest) => MediaType::BMP,
        // 42, and 43 for BigTIFF.
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => MediaType::TIFF,
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => return heif(bytes),
        [
            b'%',
            b'P',
            b'D',
            b'F',
            b'-',
            b'0'..=b'9',
            b'.',
            b'0'..=b'9',
            ..,
        ] => MediaType::PDF,
        [0x1f, 0x8b, 8, ..] => MediaType::GZIP,
        // The first entry, or the end of an archive without entries.
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => zip::contents(bytes),
        _ => return None,
    })
}

/// Behind `BM`: a file size, four reserved bytes, an offset, and the size of a header that exists.
fn is_bitmap(rest: &[u8]) -> bool {
    let header = rest
        .get(12..16)
        .and_then(|size| size.try_into().ok())
        .map(u32::from_le_bytes);
    matches!(header, Some(12 | 16 | 40 | 52 | 56 | 64 | 108 | 124))
}

/// The brands of an ISO file: AVIF, HEIC, or something else (MP4 begins so, too).
fn heif(bytes: &[u8]) -> Option<MediaType> {
    let size = u32::from_be_bytes(bytes.first_chunk().copied()?) as usize;
    let brands = bytes.get(8..size.min(bytes.len()).min(512))?;
    // The major brand, a version, then the compatible brands.
    let brands = brands
        .chunks_exact(4)
        .enumerate()
        .filter(|(at, _)| *at != 1);
    brands
        .map(|(_, brand)| brand)
        .find_map(|brand| match brand {
            b"avif" | b"avis" => Some(MediaType::AVIF),
            b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" => Some(MediaType::HEIC),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_signature_and_what_only_looks_like_it() {
        let bitmap = [b"BM".as_slice(), &[0; 12], &[40, 0, 0, 0]].concat();
        let ftyp = |brands: &[u8]| {
            [
                &(8 + brands.len() as u32).to_be_bytes()[..],
                b"ftyp",
                brands,
            ]
            .concat()
        };
        for (bytes, expect) in [
            (b"\x89PNG\r\n\x1a\n".to_vec(), Some(MediaType::PNG)),
            (b"\x89PNG\n\n\x1a\n".to_vec(), None),
            (b"\xff\xd8\xff\xe0".to_vec(), Some(MediaType::JPEG)),
            (b"\xff\xd8".to_vec(), None),
            (b"GIF89a".to_vec(), Some(MediaType::GIF)),
            (b"GIF87a".to_vec(), Some(MediaType::GIF)),
            (b"GIF88a".to_vec(), None),
            (b"RIFF\0\0\0\0WEBPVP8 ".to_vec(), Some(MediaType::WEBP)),
            (b"RIFF\0\0\0\0WAVE".to_vec(), None),
            (bitmap, Some(MediaType::BMP)),
            (b"BM stands for bitmap here".to_vec(), None),
            (b"II*\0".to_vec(), Some(MediaType::TIFF)),
            (b"MM\0*".to_vec(), Some(MediaType::TIFF)),
            (b"MM\0+".to_vec(), Some(MediaType::TIFF)),
            (b"II* the second".to_vec(), None),
            (ftyp(b"avif\0\0\0\0mif1"), Some(MediaType::AVIF)),
            (ftyp(b"mif1\0\0\0\0mif1avif"), Some(MediaType::AVIF)),
            (ftyp(b"heic\0\0\0\0mif1"), Some(MediaType::HEIC)),
            (ftyp(b"mif1\0\0\0\0heic"), Some(MediaType::HEIC)),
            (ftyp(b"isom\0\0\0\0mp41"), None),
            (ftyp(b"isomheicmp41"), None),
            (b"\xff\xff\xff\xffftyp".to_vec(), None),
            (b"\0\0\0\x01ftypavif".to_vec(), None),
            (b"%PDF-1.7\n".to_vec(), Some(MediaType::PDF)),
            (b"%PDF- begins every PDF".to_vec(), None),
            (b"\x1f\x8b\x08\0".to_vec(), Some(MediaType::GZIP)),
            (b"PK\x03\x04".to_vec(), Some(MediaType::ZIP)),
            (b"PK\x05\x06".to_vec(), Some(MediaType::ZIP)),
            (b"PK was here".to_vec(), None),
            (b"".to_vec(), None),
        ] {
            assert_eq!(
                detected(&bytes),
                expect,
                "{}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
}
