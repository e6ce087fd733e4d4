//! What a model sees of the images that tools made in a step: one text marker, then the images. A pure function.
//!
//! The same pending images and the same budget give the same text and choice, so a provider's retry sends the same bytes.

use std::collections::HashMap;

use crate::{Digest, FileElement, FileRef};

/// How many images, and how many bytes of them, one request may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestBudget {
    /// Images. Default: 20.
    pub images: usize,
    /// Bytes of all images in Base64. Default: 20 MiB.
    pub base64_bytes: u64,
}

impl RequestBudget {
    /// At most `images`, and `base64_bytes` in all.
    pub const fn new(images: usize, base64_bytes: u64) -> Self {
        Self {
            images,
            base64_bytes,
        }
    }
}

impl Default for RequestBudget {
    fn default() -> Self {
        Self::new(20, 20 << 20)
    }
}

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageInput {
    /// No images: it gets metadata and the path.
    None,
    /// Images within a budget.
    Within(RequestBudget),
}

/// Bytes that `bytes` take in Base64, with padding.
pub const fn base64_len(bytes: u64) -> u64 {
    bytes.div_ceil(3).saturating_mul(4)
}

/// An image that a tool call left for the model. Give them in call order.
#[derive(Debug, Clone)]
pub struct PendingImage<'a> {
    tool_call_id: &'a str,
    file: &'a FileRef,
    path: Option<&'a str>,
    content: Content<'a>,
}

#[derive(Debug, Clone)]
enum Content<'a> {
    /// Bytes to send, and what is to be said of them.
    Ready {
        bytes: u64,
        note: Option<&'a str>,
    },
    LeftOut {
        note: &'a str,
    },
}

impl<'a> PendingImage<'a> {
    /// An image ready to be sent: `bytes` as fitted, before Base64.
    pub fn ready(tool_call_id: &'a str, file: &'a FileRef, bytes: u64) -> Self {
        Self {
            tool_call_id,
            file,
            path: None,
            content: Content::Ready { bytes, note: None },
        }
    }

    /// An image that cannot be sent; `note` says why.
    pub fn left_out(tool_call_id: &'a str, file: &'a FileRef, note: &'a str) -> Self {
        Self {
            tool_call_id,
            file,
            path: None,
            content: Content::LeftOut { note },
        }
    }

    /// Says where the file lies in the sandbox.
    #[must_use]
    pub fn at(mut self, path: impl Into<Option<&'a str>>) -> Self {
        self.path = path.into();
        self
    }

    /// Says something of an image that is sent: that it was made smaller, or is the first frame.
    #[must_use]
    pub fn with_note(mut self, text: impl Into<Option<&'a str>>) -> Self {
        if let Content::Ready { note, .. } = &mut self.content {
            *note = text.into();
        }
        self
    }
}

/// One user message: the text first, then the images.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Projection {
    /// The marker: which calls and files the images come from, and what is not there.
    pub text: String,
    /// Which of the pending images to send, by index, in order.
    pub images: Vec<usize>,
}

/// The message for the images of a step; `None` when there are none.
///
/// Images keep call order; equal content is sent once. What the budget or the model does not take is named with its path
/// and the request not to guess; it does not stop those behind it.
///
/// ```
/// use sixb_artifacts::{FileRef, projection::{ImageInput, PendingImage, RequestBudget, project}};
/// let (cat, dog) = (FileRef::of(b"cat"), FileRef::of(b"dog"));
/// let pending = [
///     PendingImage::ready("call_1", &cat, 3),
///     PendingImage::ready("call_2", &dog, 3),
///     PendingImage::ready("call_3", &cat, 3),
/// ];
/// let message = project(&pending, ImageInput::Within(RequestBudget::default())).expect("images");
/// assert_eq!(message.images, [0, 1]);
/// assert!(message.text.starts_with(r#"<sixb_tool_files toolCallIds="call_1,call_2,call_3">"#));
/// ```
pub fn project(pending: &[PendingImage<'_>], input: ImageInput) -> Option<Projection> {
    if pending.is_empty() {
        return None;
    }
    let mut choice = Choice::new(input);
    let elements: Vec<String> = pending
        .iter()
        .enumerate()
        .map(|(at, image)| choice.element(at, image))
        .collect();
    let mut calls: Vec<&str> = Vec::new();
    for image in pending {
        if !calls.contains(&image.tool_call_id) {
            calls.push(image.tool_call_id);
        }
    }
    let follow = match choice.images.len() {
        0 => "No image follows.",
        1 => "The image follows.",
        _ => "The images follow in order.",
    };
    let text = format!(
        "<sixb_tool_files toolCallIds=\"{}\">\nFiles that tools made or viewed in the last step, supplied by the runtime; \
         this is not a request. {follow}\n{}\n</sixb_tool_files>",
        crate::escape(&calls.join(",")).replace('\n', "&#10;"),
        elements.join("\n"),
    );
    Some(Projection {
        text,
        images: choice.images,
    })
}

/// Goes through the images in order and spends the budget.
struct Choice {
    input: ImageInput,
    images: Vec<usize>,
    spent: u64,
    /// The number that a content was sent under.
    sent: HashMap<Digest, usize>,
}

impl Choice {
    fn new(input: ImageInput) -> Self {
        Self {
            input,
            images: Vec::new(),
            spent: 0,
            sent: HashMap::new(),
        }
    }

    fn element(&mut self, at: usize, image: &PendingImage<'_>) -> String {
        let element = FileElement::new(image.file)
            .path(image.path)
            .attribute("toolCallId", image.tool_call_id);
        let digest = image.file.digest();
        let (bytes, note) = match image.content {
            Content::LeftOut { note } => return element.note(note).to_string(),
            Content::Ready { bytes, note } => (bytes, note),
        };
        if let Some(number) = self.sent.get(&digest) {
            return element.attribute("image", number).to_string();
        }
        if let Some(reason) = self.refusal(bytes) {
            return element
                .note(format!(
                    "The image is not shown: {reason}. Do not guess what it shows."
                ))
                .to_string();
        }
        self.images.push(at);
        self.spent += base64_len(bytes);
        self.sent.insert(digest, self.images.len());
        let element = element.attribute("image", self.images.len());
        match note {
            Some(note) => element.note(note).to_string(),
            None => element.to_string(),
        }
    }

    fn refusal(&self, bytes: u64) -> Option<String> {
        match self.input {
            ImageInput::None => Some("this model takes no images".to_owned()),
            ImageInput::Within(budget) if self.images.len() >= budget.images => Some(format!(
                "one request carries at most {} images",
                budget.images
            )),
            ImageInput::Within(budget)
                if self.spent.saturating_add(base64_len(bytes)) > budget.base64_bytes =>
            {
                Some(format!(
                    "the images of one request have at most {} bytes in Base64",
                    budget.base64_bytes
                ))
            }
            ImageInput::Within(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn within(images: usize, bytes: u64) -> ImageInput {
        ImageInput::Within(RequestBudget::new(images, bytes))
    }

    #[test]
    fn the_whole_marker() {
        let name = "a\"<b>.png".parse().expect("name");
        let (one, two) = (
            FileRef::of(b"one").with_file_name(name),
            FileRef::of(b"two"),
        );
        let pending = [
            PendingImage::ready("c1", &one, 3)
                .at("/w/a.png")
                .with_note("first frame of 2"),
            PendingImage::left_out("c1", &two, "left out: corrupt"),
            PendingImage::ready("c2", &one, 3),
        ];
        let message = project(&pending, within(9, 99)).expect("pending");
        let expect = "\
<sixb_tool_files toolCallIds=\"c1,c2\">
Files that tools made or viewed in the last step, supplied by the runtime; this is not a request. The image follows.
<file name=\"a&quot;&lt;b&gt;.png\" size=\"3\" path=\"/w/a.png\" toolCallId=\"c1\" image=\"1\">first frame of 2</file>
<file size=\"3\" toolCallId=\"c1\">left out: corrupt</file>
<file name=\"a&quot;&lt;b&gt;.png\" size=\"3\" toolCallId=\"c2\" image=\"1\"/>
</sixb_tool_files>";
        assert_eq!(
            message,
            Projection {
                text: expect.to_owned(),
                images: vec![0]
            }
        );
        assert_eq!(project(&[], within(9, 99)), None);
    }

    #[test]
    fn the_budget_is_spent_in_order_and_refusals_are_said() {
        let files: Vec<FileRef> = (0..4_u8).map(|file| FileRef::of(&[file])).collect();
        let sizes = [6, 60, 3, 3];
        let pending: Vec<_> = files
            .iter()
            .zip(sizes)
            .map(|(file, size)| PendingImage::ready("c", file, size).at("/w/x"))
            .collect();
        for (input, expect, refusals, part) in [
            (within(9, 200), vec![0, 1, 2, 3], 0, ""),
            (within(2, 200), vec![0, 1], 2, "at most 2 images"),
            // 8 + 80 + 4 + 4 bytes in Base64; a large one does not stop the small ones behind it.
            (
                within(9, 16),
                vec![0, 2, 3],
                1,
                "at most 16 bytes in Base64",
            ),
            (within(9, 15), vec![0, 2], 2, "at most 15 bytes in Base64"),
            (within(0, 200), vec![], 4, "at most 0 images"),
            (ImageInput::None, vec![], 4, "this model takes no images"),
        ] {
            let message = project(&pending, input).expect("pending");
            assert_eq!(message.images, expect, "{input:?}");
            assert_eq!(
                message.text.matches("Do not guess").count(),
                refusals,
                "{input:?}"
            );
            assert_eq!(
                message.text.matches("path=\"/w/x\"").count(),
                4,
                "{input:?}"
            );
            assert!(message.text.contains(part), "{}", message.text);
        }
    }

    #[test]
    fn base64_grows_in_steps_of_four() {
        for (bytes, expect) in [(0, 0), (1, 4), (3, 4), (4, 8), (3_538_944, 4_718_592)] {
            assert_eq!(base64_len(bytes), expect);
        }
    }

    proptest! {
        #[test]
        fn it_is_pure_ordered_unique_and_within_budget(
            images in prop::collection::vec((0_u8..6, "[a-c<\"\n]{1,3}", 0_u64..50, any::<bool>()), 0..20),
            most in 0_usize..8, bytes in 0_u64..300,
        ) {
            let files: Vec<FileRef> = images.iter().map(|image| FileRef::of(&[image.0])).collect();
            let pending: Vec<_> = images.iter().zip(&files).map(|((content, call, _, ready), file)| {
                // One content has one size.
                if *ready { PendingImage::ready(call, file, u64::from(*content) * 9) } else { PendingImage::left_out(call, file, "no") }
            }).collect();
            let message = project(&pending, within(most, bytes));
            prop_assert_eq!(&message, &project(&pending, within(most, bytes)));
            let Some(message) = message else { return Ok(()) };
            prop_assert!(message.images.is_sorted() && message.images.len() <= most);
            let sent: Vec<Digest> = message.images.iter().map(|at| files[*at].digest()).collect();
            prop_assert_eq!(sent.iter().collect::<std::collections::HashSet<_>>().len(), sent.len());
            let spent: u64 = message.images.iter().map(|at| base64_len(u64::from(images[*at].0) * 9)).sum();
            prop_assert!(spent <= bytes);
            prop_assert_eq!(message.text.matches("<file ").count(), pending.len());
        }
    }
}
