//! Whether a PDF is whole enough to be sent to a model: a malformed one makes every later request fail.

/// The trailer stands within this many bytes of the end.
const TAIL: usize = 2 * 1024;

/// Checks that a PDF has its header, objects, and the trailer that a reader starts from. It reads no object.
///
/// ```
/// let flaw = sixb_artifacts::pdf::check(b"%PDF-1.7\n").unwrap_err();
/// assert_eq!(flaw.to_string(), "the PDF is malformed: it holds no object");
/// ```
pub fn check(bytes: &[u8]) -> Result<(), PdfFlaw> {
    let has = |part: &[u8], word: &[u8]| part.windows(word.len()).any(|window| window == word);
    let tail = &bytes[bytes.len().saturating_sub(TAIL)..];
    if !bytes.starts_with(b"%PDF-") {
        Err(PdfFlaw("it does not begin with %PDF-"))
    } else if !has(bytes, b" obj") {
        Err(PdfFlaw("it holds no object"))
    } else if !has(tail, b"startxref") || !has(tail, b"%%EOF") {
        Err(PdfFlaw("its end is missing (startxref and %%EOF)"))
    } else {
        Ok(())
    }
}

/// Why a PDF cannot be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the PDF is malformed: {0}")]
pub struct PdfFlaw(&'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_54_a_header_alone_is_no_pdf() {
        let whole =
            b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\nxref\n0 1\ntrailer\n<<>>\nstartxref\n9\n%%EOF\n";
        assert_eq!(check(whole), Ok(()));
        for (bytes, part) in [
            (&b"%PDF-1.7\n"[..], "no object"),
            (&whole[..40], "end is missing"),
            (&whole[..whole.len() - 6], "end is missing"),
            (b"PDF", "does not begin"),
            (b"", "does not begin"),
        ] {
            let flaw = check(bytes).expect_err("malformed").to_string();
            assert!(flaw.contains(part), "{flaw}");
        }
    }
}
