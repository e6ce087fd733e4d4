//! The element that stands for a file in text for a model. Names, types and content are untrusted: all of it is escaped.

use std::fmt::{self, Write as _};

use crate::{Excerpt, FileRef};

/// Escapes text for an attribute or the content of an element: nothing in it can close the element or the quote.
///
/// Control characters but tab and newline become `U+FFFD`; in attributes newlines are escaped too, see [`FileElement`].
///
/// ```
/// assert_eq!(sixb_artifacts::escape("a<b>\"&'"), "a&lt;b&gt;&quot;&amp;&#39;");
/// ```
pub fn escape(text: &str) -> String {
    escaped(text, false)
}

fn escaped(text: &str, attribute: bool) -> String {
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' if attribute => safe.push_str("&#10;"),
            '\t' if attribute => safe.push_str("&#9;"),
            '\n' | '\t' => safe.push(character),
            // A CRLF text keeps its lines.
            '\r' if !attribute => safe.push(character),
            character if character.is_control() => safe.push('\u{fffd}'),
            character => safe.push(character),
        }
    }
    safe
}

/// `<file name=… type=… size=… path=…>…</file>`: what a model reads of a file. `Display` writes it.
///
/// ```
/// use sixb_artifacts::{FileElement, FileRef};
/// let file = FileRef::of(b"hi").with_file_name("a \"b\".txt".parse()?);
/// let element = FileElement::new(&file).path("/workspace/a").note("left out").to_string();
/// assert_eq!(element, r#"<file name="a &quot;b&quot;.txt" size="2" path="/workspace/a">left out</file>"#);
/// # Ok::<(), sixb_artifacts::FileNameError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileElement<'a> {
    file: &'a FileRef,
    path: Option<&'a str>,
    attributes: Vec<(&'static str, String)>,
    excerpt: Option<Excerpt<'a>>,
    note: Option<String>,
}

impl<'a> FileElement<'a> {
    /// The element of `file`, with its name, type and size.
    pub fn new(file: &'a FileRef) -> Self {
        Self {
            file,
            path: None,
            attributes: Vec::new(),
            excerpt: None,
            note: None,
        }
    }

    /// Where it lies in the sandbox.
    #[must_use]
    pub fn path(mut self, path: impl Into<Option<&'a str>>) -> Self {
        self.path = path.into();
        self
    }

    /// One more attribute. `name` is ours; `value` is escaped.
    #[must_use]
    pub fn attribute(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.attributes.push((name, value.to_string()));
        self
    }

    /// The start of its text.
    #[must_use]
    pub fn excerpt(mut self, excerpt: Excerpt<'a>) -> Self {
        self.excerpt = Some(excerpt);
        self
    }

    /// What is to be said of it.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

impl fmt::Display for FileElement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<file")?;
        let mut attribute =
            |name: &str, value: &str| write!(f, " {name}=\"{}\"", escaped(value, true));
        if let Some(name) = self.file.file_name() {
            attribute("name", name.as_str())?;
        }
        if let Some(media_type) = self.file.media_type() {
            attribute("type", media_type.as_str())?;
        }
        attribute("size", &self.file.size().to_string())?;
        if let Some(path) = self.path {
            attribute("path", path)?;
        }
        for (name, value) in &self.attributes {
            attribute(name, value)?;
        }
        if self.excerpt.is_none() && self.note.is_none() {
            return f.write_str("/>");
        }
        f.write_char('>')?;
        if let Some(note) = &self.note {
            f.write_str(&escape(note))?;
        }
        if let Some(excerpt) = &self.excerpt {
            let (lines, bytes) = (excerpt.lines, excerpt.text.len());
            match (excerpt.total_bytes, excerpt.truncated) {
                (0, _) => f.write_str("(empty file)")?,
                (_, false) => write!(f, "\n{}\n", escape(excerpt.text))?,
                (total, true) => write!(
                    f,
                    "\n{}\n[shown: the first {lines} lines, {bytes} of {total} bytes; read the rest by its path]\n",
                    escape(excerpt.text)
                )?,
            }
        }
        f.write_str("</file>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExcerptLimits, MediaType, excerpt};
    use proptest::prelude::*;

    fn file() -> FileRef {
        FileRef::of(b"x")
            .with_file_name("a.txt".parse().expect("name"))
            .with_media_type(MediaType::TEXT)
    }

    #[test]
    fn an_element_says_what_is_known() {
        let file = file();
        let of = |text: &'static str, limits| excerpt(text.as_bytes(), limits).expect("text");
        let element = FileElement::new(&file);
        for (element, expect) in [
            (
                element.clone(),
                r#"<file name="a.txt" type="text/plain" size="1"/>"#,
            ),
            (
                element.clone().path("a\n\"b"),
                r#"<file name="a.txt" type="text/plain" size="1" path="a&#10;&quot;b"/>"#,
            ),
            (
                element.clone().excerpt(of("", ExcerptLimits::default())),
                r#"<file name="a.txt" type="text/plain" size="1">(empty file)</file>"#,
            ),
            (
                element
                    .clone()
                    .excerpt(of("</file>\r\n", ExcerptLimits::default())),
                "<file name=\"a.txt\" type=\"text/plain\" size=\"1\">\n&lt;/file&gt;\r\n\n</file>",
            ),
            (
                element.excerpt(of("a\nb\n", ExcerptLimits::new(100, 1))),
                "<file name=\"a.txt\" type=\"text/plain\" size=\"1\">\na\n\n[shown: the first 1 lines, 2 of 4 bytes; read the rest by its path]\n</file>",
            ),
        ] {
            assert_eq!(element.to_string(), expect);
        }
    }

    proptest! {
        #[test]
        fn nothing_untrusted_closes_the_element(text in "\\PC{0,60}|[<>&\"'/a-z\n\u{1}\u{1b}]{0,60}", path in "[<>&\"'/a-z\n\u{0}-\u{1f}]{0,40}") {
            let file = file();
            let element = FileElement::new(&file).path(path.as_str()).note(text).to_string();
            prop_assert_eq!(element.matches('<').count(), 2);
            prop_assert_eq!(element.matches('>').count(), 2);
            prop_assert_eq!(element.matches('"').count(), 8);
            prop_assert!(!element.chars().any(|character| character.is_control() && character != '\n'));
        }
    }
}
