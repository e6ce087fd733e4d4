//! What a ZIP archive is the container of, by the names in its central directory. Nothing is decompressed.

use super::MediaType;

/// Entries looked at: office files name their parts early.
const MAX_ENTRIES: usize = 4_000;
/// The end record: 22 bytes, and a comment of up to 65 535 in between it and the end of the file.
const END: usize = 22;
const MAX_COMMENT: usize = 65_535;

/// The type of an archive: of an office file, a book or a program where its parts say so, else plain ZIP.
pub(super) fn contents(bytes: &[u8]) -> MediaType {
    if let Some(declared) = mimetype(bytes) {
        return declared;
    }
    let mut is_office = false;
    let mut is_java = false;
    let mut main = None;
    for name in names(bytes).take(MAX_ENTRIES) {
        match name {
            b"[Content_Types].xml" => is_office = true,
            b"META-INF/MANIFEST.MF" => is_java = true,
            b"word/document.xml" => main = Some(MediaType::DOCX),
            b"xl/workbook.xml" => main = Some(MediaType::XLSX),
            b"ppt/presentation.xml" => main = Some(MediaType::PPTX),
            _ => {}
        }
    }
    match (is_office, main) {
        (true, Some(office)) => office,
        _ if is_java => "application/java-archive".parse().unwrap_or(MediaType::ZIP),
        _ => MediaType::ZIP,
    }
}

/// OpenDocument and EPUB: the first entry is called `mimetype` and holds the type, stored as it is.
fn mimetype(bytes: &[u8]) -> Option<MediaType> {
    let entry = bytes.get(..30)?;
    let (name, extra) = (u16_at(entry, 26)? as usize, u16_at(entry, 28)? as usize);
    let stored = u16_at(entry, 8)? == 0;
    if !stored || bytes.get(30..30 + name)? != b"mimetype" {
        return None;
    }
    let start = 30 + name + extra;
    let size = u32_at(entry, 18)? as usize;
    let text = std::str::from_utf8(bytes.get(start..start.checked_add(size.min(256))?)?).ok()?;
    let media_type: MediaType = text.trim().parse().ok()?;
    // Only what such a container may hold: a file cannot call itself a picture this way.
    let known = [
        "application/epub+zip",
        "application/vnd.oasis.opendocument.",
    ];
    known
        .iter()
        .any(|start| media_type.as_str().starts_with(start))
        .then_some(media_type)
}

/// The names of the entries, as far as the directory is readable.
fn names(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = directory(bytes);
    std::iter::from_fn(move || {
        let entry = bytes.get(at?..)?;
        if !entry.starts_with(b"PK\x01\x02") {
            return None;
        }
        let (name, extra, comment) = (u16_at(entry, 28)?, u16_at(entry, 30)?, u16_at(entry, 32)?);
        at = at?.checked_add(46 + usize::from(name) + usize::from(extra) + usize::from(comment));
        entry.get(46..46 + usize::from(name))
    })
}

/// Where the central directory begins.
fn directory(bytes: &[u8]) -> Option<usize> {
    let window = bytes.len().saturating_sub(END + MAX_COMMENT);
    let tail = bytes.get(window..)?;
    let end = tail.windows(4).rposition(|four| four == b"PK\x05\x06")?;
    u32_at(tail.get(end..)?, 16).map(|offset| offset as usize)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..at + 2)?
        .try_into()
        .ok()
        .map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An archive of stored entries.
    fn archive(entries: &[(&str, &str)]) -> Vec<u8> {
        let (mut files, mut directory) = (Vec::new(), Vec::new());
        for (name, body) in entries {
            let (name_len, len) = (
                (name.len() as u16).to_le_bytes(),
                (body.len() as u32).to_le_bytes(),
            );
            let offset = (files.len() as u32).to_le_bytes();
            files.extend(
                [
                    b"PK\x03\x04".as_slice(),
                    &[0; 14],
                    &len,
                    &len,
                    &name_len,
                    &[0; 2],
                    name.as_bytes(),
                    body.as_bytes(),
                ]
                .concat(),
            );
            directory.extend(
                [
                    b"PK\x01\x02".as_slice(),
                    &[0; 16],
                    &len,
                    &len,
                    &name_len,
                    &[0; 12],
                    &offset,
                    name.as_bytes(),
                ]
                .concat(),
            );
        }
        let (offset, size) = (
            (files.len() as u32).to_le_bytes(),
            (directory.len() as u32).to_le_bytes(),
        );
        [
            files,
            directory,
            b"PK\x05\x06".to_vec(),
            vec![0; 8],
            size.to_vec(),
            offset.to_vec(),
            vec![0; 2],
        ]
        .concat()
    }

    #[test]
    fn parts_tell_the_container() {
        for (entries, expect) in [
            (&[("a.txt", "")][..], "application/zip"),
            (&[], "application/zip"),
            (
                &[("[Content_Types].xml", ""), ("word/document.xml", "")],
                MediaType::DOCX.as_str(),
            ),
            (
                &[("xl/workbook.xml", ""), ("[Content_Types].xml", "")],
                MediaType::XLSX.as_str(),
            ),
            (
                &[("[Content_Types].xml", ""), ("ppt/presentation.xml", "")],
                MediaType::PPTX.as_str(),
            ),
            (&[("word/document.xml", "")], "application/zip"),
            (&[("META-INF/MANIFEST.MF", "")], "application/java-archive"),
            (
                &[("mimetype", "application/epub+zip")],
                "application/epub+zip",
            ),
            (
                &[("mimetype", "application/vnd.oasis.opendocument.text")],
                "application/vnd.oasis.opendocument.text",
            ),
            (&[("mimetype", "image/png")], "application/zip"),
        ] {
            assert_eq!(contents(&archive(entries)).as_str(), expect, "{entries:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(cut in 0_usize..400, noise in prop::collection::vec(any::<u8>(), 0..64), at in 0_usize..400) {
            let mut bytes = archive(&[("[Content_Types].xml", ""), ("word/document.xml", "x"), ("mimetype", "a/b")]);
            for (offset, byte) in noise.iter().enumerate() {
                if let Some(place) = bytes.get_mut(at + offset) {
                    *place = *byte;
                }
            }
            bytes.truncate(cut);
            contents(&bytes);
        }
    }
}
