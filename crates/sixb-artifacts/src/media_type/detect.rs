//! One file has one type by every route: uploads, outputs and `view_file` all ask here.

use super::{MediaType, detected, svg};

/// Tells the type of a file: what its bytes show, else what is declared, else what its name suggests, else text or bytes.
///
/// 1. A signature of [`detected`] decides (but text with a name of text may begin like a PDF). A declaration that it contradicts is an error, with three exceptions: text that
///    is declared as text may begin like a signature; a ZIP may be declared as a more special container; a TIFF as a
///    camera's raw format.
/// 2. Without a signature the declaration counts, unless it claims a type that has one: an `image/png` that does not begin
///    like one is an error. `application/octet-stream` declares nothing.
/// 3. Without a declaration other signatures (audio, video, archives, programs) count, then the name's extension, unless
///    the bytes cannot be that; then valid UTF-8 is `text/plain`, or `image/svg+xml`; all else `application/octet-stream`.
///
/// A name never makes an error: it is only a label. Give all bytes of the file, not its start: a late invalid byte makes
/// text binary.
///
/// # Errors
/// [`Contradiction`] names what was declared and what the bytes are.
///
/// ```
/// use sixb_artifacts::{MediaType, detect};
/// let jpeg = b"\xff\xd8\xff\xe0...";
/// assert_eq!(detect(jpeg, None, Some("a.png"))?, MediaType::JPEG);
/// assert_eq!(detect(b"a,b\n", None, Some("a.csv"))?.as_str(), "text/csv");
/// assert!(detect(jpeg, Some(&MediaType::PNG), None).is_err());
/// # Ok::<(), sixb_artifacts::Contradiction>(())
/// ```
pub fn detect(
    bytes: &[u8],
    declared: Option<&MediaType>,
    file_name: Option<&str>,
) -> Result<MediaType, Contradiction> {
    let declared = declared.filter(|declared| **declared != MediaType::OCTET_STREAM);
    match (detected(bytes), declared) {
        (Some(found), Some(declared)) => reconcile(bytes, found, declared),
        (Some(found), None) => Ok(match is_prose(bytes, &found, file_name) {
            true => undeclared(bytes, file_name),
            false => found,
        }),
        (None, Some(declared)) if has_signature(declared) => {
            let found = undeclared(bytes, None);
            Err(Contradiction {
                declared: declared.clone(),
                found,
                empty: bytes.is_empty(),
            })
        }
        (None, Some(declared)) => Ok(declared.clone()),
        (None, None) => Ok(undeclared(bytes, file_name)),
    }
}

/// Whether bytes are text: valid UTF-8 without NUL.
pub fn is_text(bytes: &[u8]) -> bool {
    text(bytes).is_some()
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
}

/// Text about PDF that begins like one: it has a name of text, and nothing of a PDF behind its first line.
fn is_prose(bytes: &[u8], found: &MediaType, file_name: Option<&str>) -> bool {
    let by_name = file_name.and_then(MediaType::by_extension);
    *found == MediaType::PDF
        && by_name.is_some_and(|by_name| by_name.is_textual())
        && is_text(bytes)
        && crate::pdf::check(bytes).is_err()
}

/// A signature and a declaration: which counts, or that they cannot both be right.
fn reconcile(
    bytes: &[u8],
    found: MediaType,
    declared: &MediaType,
) -> Result<MediaType, Contradiction> {
    let canonical = alias(declared);
    let special = |special: bool| special && !has_signature(&canonical) && !canonical.is_textual();
    let is_prose = canonical.is_textual() && is_text(bytes);
    let is_inside = may_hold(&found)
        .iter()
        .any(|start| special(canonical.as_str().starts_with(start)));
    let is_raw = found == MediaType::TIFF && special(canonical.kind() == "image");
    if canonical == found || canonical == MediaType::ZIP && zip_inside(&found) {
        Ok(found)
    } else if is_prose || is_inside || is_raw {
        Ok(declared.clone())
    } else {
        Err(Contradiction {
            declared: declared.clone(),
            found,
            empty: false,
        })
    }
}

/// What a container may be declared as, by how these types begin.
fn may_hold(found: &MediaType) -> &'static [&'static str] {
    match found.as_str() {
        "application/zip" | "application/java-archive" => &["application/", "model/"],
        // Templates and files with macros have the parts of a plain one.
        office if office.starts_with("application/vnd.openxmlformats") => &[
            "application/vnd.openxmlformats-officedocument.",
            "application/vnd.ms-",
        ],
        open if open.starts_with("application/vnd.oasis.") => &["application/vnd.oasis."],
        _ => &[],
    }
}

/// Other names of the types that are checked.
fn alias(declared: &MediaType) -> MediaType {
    match declared.as_str() {
        "image/pjpeg" => MediaType::JPEG,
        "image/x-png" | "image/apng" | "image/vnd.mozilla.apng" => MediaType::PNG,
        "image/x-bmp" | "image/x-ms-bmp" => MediaType::BMP,
        "image/tif" | "image/x-tiff" => MediaType::TIFF,
        "image/heif" | "image/heic-sequence" | "image/heif-sequence" => MediaType::HEIC,
        "application/x-pdf" => MediaType::PDF,
        "application/x-gzip"
        | "application/x-tgz"
        | "application/x-compressed-tar"
        | "application/tar+gzip" => MediaType::GZIP,
        "application/x-zip" | "application/x-zip-compressed" => MediaType::ZIP,
        _ => declared.clone(),
    }
}

/// Whether every file of this type begins with a signature that is checked.
fn has_signature(media_type: &MediaType) -> bool {
    const CHECKED: [MediaType; 14] = [
        MediaType::AVIF,
        MediaType::BMP,
        MediaType::DOCX,
        MediaType::GIF,
        MediaType::GZIP,
        MediaType::HEIC,
        MediaType::JPEG,
        MediaType::PDF,
        MediaType::PNG,
        MediaType::PPTX,
        MediaType::TIFF,
        MediaType::WEBP,
        MediaType::XLSX,
        MediaType::ZIP,
    ];
    CHECKED.contains(&alias(media_type))
}

fn zip_inside(found: &MediaType) -> bool {
    let name = found.as_str();
    [MediaType::DOCX, MediaType::XLSX, MediaType::PPTX].contains(found)
        || name.starts_with("application/vnd.oasis.")
        || ["application/epub+zip", "application/java-archive"].contains(&name)
}

/// Without a declaration, and without a signature that is checked.
fn undeclared(bytes: &[u8], file_name: Option<&str>) -> MediaType {
    let text = text(bytes);
    let by_name = file_name
        .and_then(MediaType::by_extension)
        .filter(|by_name| !has_signature(by_name) && *by_name != MediaType::OCTET_STREAM);
    match text {
        Some(text) if svg::is_svg(text) => MediaType::SVG,
        // What is text cannot be sound or film, whatever its name; of the rest nobody can tell, so the name counts.
        Some(_) => by_name
            .filter(|by_name| {
                !["audio", "video", "image", "font"].contains(&by_name.kind())
                    || by_name.is_textual()
            })
            .unwrap_or(MediaType::TEXT),
        None => by_infer(bytes)
            .or(by_name)
            .unwrap_or(MediaType::OCTET_STREAM),
    }
}

/// Signatures that decide only where nothing is declared: some of them are short.
fn by_infer(bytes: &[u8]) -> Option<MediaType> {
    let found: MediaType = infer::get(bytes)?.mime_type().parse().ok()?;
    // What it calls text is no text, or it would not be looked at; and ours of these types are narrower.
    (!found.is_textual() && !has_signature(&found)).then_some(found)
}

/// A declared type that the bytes contradict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("declared as {declared}, but {}", if *.empty { "the file is empty".to_owned() } else { format!("the bytes are {found}") })]
#[non_exhaustive]
pub struct Contradiction {
    /// What was declared.
    pub declared: MediaType,
    /// What the bytes are.
    pub found: MediaType,
    /// Whether there are no bytes at all.
    pub empty: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0";
    const SVG: &[u8] = br#"<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>"#;
    const ZIP: &[u8] = b"PK\x03\x04\x14\0\0\0\0\0";
    const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n";
    const MP3: &[u8] = b"ID3\x03\0\0\0\0\0\0\xff";

    /// `declared` and `name` may be empty. `Err` holds what was found.
    fn check(bytes: &[u8], declared: &str, name: &str, expect: Result<&str, &str>) {
        let declared: Option<MediaType> =
            (!declared.is_empty()).then(|| declared.parse().expect("media type"));
        let name = (!name.is_empty()).then_some(name);
        let got = detect(bytes, declared.as_ref(), name);
        let got = got
            .as_ref()
            .map(MediaType::as_str)
            .map_err(|error| error.found.as_str());
        assert_eq!(
            got,
            expect,
            "{:?} declared {declared:?} named {name:?}",
            String::from_utf8_lossy(bytes)
        );
    }

    #[test]
    fn bytes_come_first() {
        check(PNG, "", "", Ok("image/png"));
        check(PNG, "image/png", "a.txt", Ok("image/png"));
        check(PNG, "application/octet-stream", "", Ok("image/png"));
        check(PNG, "image/apng", "", Ok("image/png"));
        check(PNG, "image/jpeg", "a.jpg", Err("image/png"));
        check(PNG, "text/plain", "", Err("image/png"));
        check(PNG, "application/json", "", Err("image/png"));
        check(PDF, "text/plain", "", Err("application/pdf"));
        check(PDF, "application/x-pdf", "", Ok("application/pdf"));
        check(PDF, "image/png", "", Err("application/pdf"));
    }

    #[test]
    fn case_46_a_name_is_only_a_label() {
        check(JPEG, "", "a.png", Ok("image/jpeg"));
        check(b"just text", "", "b.png", Ok("text/plain"));
        check(b"\xff\xfe\xfd", "", "b.png", Ok("application/octet-stream"));
        check(b"just text", "image/png", "b.png", Err("text/plain"));
        check(b"", "image/png", "", Err("text/plain"));
        check(b"", "", "x.png", Ok("text/plain"));
    }

    #[test]
    fn case_50_svg_is_text_by_any_name() {
        check(SVG, "", "a.svg", Ok("image/svg+xml"));
        check(SVG, "", "a.png", Ok("image/svg+xml"));
        check(SVG, "", "", Ok("image/svg+xml"));
        check(SVG, "image/svg+xml", "", Ok("image/svg+xml"));
        check(SVG, "text/xml", "", Ok("text/xml"));
        check(SVG, "image/png", "", Err("image/svg+xml"));
    }

    #[test]
    fn text_may_begin_like_a_signature() {
        check(
            b"%PDF- begins every PDF",
            "text/markdown",
            "",
            Ok("text/markdown"),
        );
        check(
            b"%PDF-1.7 is the first line of a PDF",
            "text/markdown",
            "",
            Ok("text/markdown"),
        );
        check(b"GIF89a is a signature", "text/plain", "", Ok("text/plain"));
        check(b"GIF89a\0\x01", "text/plain", "", Err("image/gif"));
    }

    #[test]
    fn containers_may_be_declared_as_what_they_hold() {
        check(ZIP, "application/zip", "", Ok("application/zip"));
        check(
            ZIP,
            "application/x-zip-compressed",
            "",
            Ok("application/zip"),
        );
        check(
            ZIP,
            "application/vnd.android.package-archive",
            "",
            Ok("application/vnd.android.package-archive"),
        );
        check(ZIP, MediaType::DOCX.as_str(), "", Err("application/zip"));
        check(ZIP, "image/png", "", Err("application/zip"));
        check(ZIP, "text/plain", "", Err("application/zip"));
        check(ZIP, "", "a.docx", Ok("application/zip"));
        check(
            b"\x1f\x8b\x08\0",
            "application/x-gzip",
            "",
            Ok("application/gzip"),
        );
        check(b"II*\0", "image/x-adobe-dng", "", Ok("image/x-adobe-dng"));
        check(b"II*\0", "image/png", "", Err("image/tiff"));
    }

    #[test]
    fn then_the_declaration_then_the_name_then_a_look() {
        check(b"{}", "application/json", "a.txt", Ok("application/json"));
        check(b"{}", "", "a.json", Ok("application/json"));
        check(b"a,b\n", "", "a.CSV", Ok("text/csv"));
        check(b"# hi", "", "README.md", Ok("text/markdown"));
        check(b"hi", "", "Makefile", Ok("text/plain"));
        check(b"hi", "", "a.mp4", Ok("text/plain"));
        check(b"hi", "", "", Ok("text/plain"));
        check(b"a\0b", "", "", Ok("application/octet-stream"));
        check(b"\xe9", "text/plain", "", Ok("text/plain"));
        check(MP3, "", "", Ok("audio/mpeg"));
        check(MP3, "audio/x-own", "", Ok("audio/x-own"));
        check(
            b"\xc3\x28\0",
            "",
            "model.onnx",
            Ok("application/octet-stream"),
        );
    }

    #[test]
    fn the_error_names_both() {
        let error = detect(PNG, Some(&MediaType::PDF), None).expect_err("contradiction");
        assert_eq!(
            error.to_string(),
            "declared as application/pdf, but the bytes are image/png"
        );
        let error = detect(b"", Some(&MediaType::PDF), None).expect_err("contradiction");
        assert_eq!(
            error.to_string(),
            "declared as application/pdf, but the file is empty"
        );
    }

    proptest! {
        #[test]
        fn the_answer_can_be_declared(bytes in prop::collection::vec(any::<u8>(), 0..64), signature in 0_usize..8, name in "[a-z]{1,4}\\.(png|pdf|csv|txt|zip|docx|mp4|bin)") {
            let start: &[u8] = [PNG, JPEG, SVG, ZIP, PDF, MP3, b"BM", b""][signature];
            let bytes = [start, &bytes].concat();
            let found = detect(&bytes, None, Some(&name)).expect("nothing is declared");
            prop_assert_eq!(detect(&bytes, Some(&found), None).expect("the same"), found);
        }
    }
}
