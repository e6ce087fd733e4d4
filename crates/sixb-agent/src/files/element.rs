//! What stands for a file in text for a model: name, type, size, path, and of text the start, within an allowance.

use sixb_artifacts::{ExcerptLimits, FileElement, FileRef, excerpt};

/// Text of files in one message or step, in bytes.
const ALLOWANCE: usize = 200 * 1024;

/// How much more text of files may be shown.
#[derive(Debug)]
pub(super) struct Allowance(usize);

impl Default for Allowance {
    fn default() -> Self {
        Self(ALLOWANCE)
    }
}

impl Allowance {
    /// The element of a file with the start of its text, if it is text.
    pub(super) fn with_excerpt(&mut self, element: FileElement<'_>, bytes: &[u8]) -> String {
        let mut limits = ExcerptLimits::default();
        if self.0 == 0 {
            let note =
                "Its text is not shown: other files have taken the room. Read it by its path.";
            return element.note(note).to_string();
        }
        limits.bytes = limits.bytes.min(self.0);
        match excerpt(bytes, limits) {
            Some(shown) => {
                // As it is escaped, which may be six times as long.
                let element = element.excerpt(shown).to_string();
                self.0 = self.0.saturating_sub(element.len());
                element
            }
            None => element.to_string(),
        }
    }
}

/// Whether a file's text may be shown.
pub(super) fn is_textual(file: &FileRef) -> bool {
    file.media_type()
        .is_some_and(|media_type| media_type.is_textual())
}

/// Whether a file is an image of pixels.
pub(super) fn is_image(file: &FileRef) -> bool {
    file.media_type()
        .is_some_and(|media_type| media_type.is_image())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_shown_until_the_allowance_is_spent() {
        let file = FileRef::of(b"x");
        let mut allowance = Allowance::default();
        let text = "a line of text\n".repeat(10_000);
        let shown: Vec<usize> = (0..6)
            .map(|_| {
                allowance
                    .with_excerpt(FileElement::new(&file), text.as_bytes())
                    .len()
            })
            .collect();
        assert!(shown[..3].iter().all(|len| *len > 29_000), "{shown:?}");
        assert!(shown.iter().sum::<usize>() < ALLOWANCE + 2_000, "{shown:?}");
        let mut spent = Allowance(0);
        let left = spent.with_excerpt(FileElement::new(&file), b"x");
        assert!(left.contains("Read it by its path"), "{left}");
        let binary = Allowance::default().with_excerpt(FileElement::new(&file), b"\0\xff");
        assert!(binary.ends_with("/>"), "{binary}");
    }
}
