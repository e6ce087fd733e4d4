//! What a file is that is not UTF-8 text: for the error that says which tool to use instead.

/// Bytes from the start of a file that tell its type.
pub(super) const SNIFF: usize = 4_096;

/// The error text for a binary file.
pub(super) fn refusal(path: &str, size: u64, start: &[u8]) -> String {
    if let Some(encoding) = utf16(start) {
        return format!(
            "{path:?} is {encoding} text ({size} bytes); read shows UTF-8 only. Convert it with bash, for example: \
             iconv -f UTF-16 -t UTF-8"
        );
    }
    let kind = sixb_artifacts::detected(start).unwrap_or(sixb_artifacts::MediaType::OCTET_STREAM);
    format!(
        "{path:?} is binary ({kind}, {size} bytes); read shows text only. Use view_file for an image or a PDF, or bash to \
         inspect or convert it"
    )
}

/// UTF-16, told by its byte order mark or by every second byte being zero.
fn utf16(start: &[u8]) -> Option<&'static str> {
    match start {
        // UTF-32 LE begins like UTF-16 LE.
        [0xff, 0xfe, 0, 0, ..] => return None,
        [0xff, 0xfe, ..] => return Some("UTF-16 (little-endian)"),
        [0xfe, 0xff, ..] => return Some("UTF-16 (big-endian)"),
        _ => {}
    }
    let sample = &start[..start.len().min(64) & !1];
    let zeros = |odd: usize| sample.chunks(2).filter(|pair| pair[odd] == 0).count();
    let pairs = sample.len() / 2;
    if pairs < 4 {
        return None;
    }
    match (zeros(0), zeros(1)) {
        (0, odd) if odd * 10 >= pairs * 8 => Some("UTF-16 (little-endian)"),
        (even, 0) if even * 10 >= pairs * 8 => Some("UTF-16 (big-endian)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_35_the_type_and_the_way_out_are_named() {
        let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| {
            text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>()
        };
        for (start, part) in [
            (
                b"PK\x03\x04rest".to_vec(),
                "binary (application/zip, 6400 bytes)",
            ),
            (b"\x89PNG\r\n\x1a\n".to_vec(), "image/png"),
            (b"a\0b".to_vec(), "application/octet-stream"),
            (
                utf16("\u{feff}hi", u16::to_le_bytes),
                "UTF-16 (little-endian)",
            ),
            (utf16("\u{feff}hi", u16::to_be_bytes), "UTF-16 (big-endian)"),
            (
                utf16("no mark here", u16::to_le_bytes),
                "UTF-16 (little-endian)",
            ),
            (
                utf16("no mark here", u16::to_be_bytes),
                "UTF-16 (big-endian)",
            ),
            (b"\xff\xfe\0\0a\0\0\0".to_vec(), "binary"),
            (b"text then \0\0\0\0\0\0\0\0\0".to_vec(), "binary"),
        ] {
            let text = refusal("a.xlsx", 6_400, &start);
            assert!(text.contains(part) && text.contains("bash"), "{text}");
        }
    }
}
