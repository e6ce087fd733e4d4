//! What a model sees of files in tool results: an element each, and the images of a step in one message.

use std::collections::HashMap;

use bytes::Bytes;
use sixb_artifacts::{
    Digest, FileElement, FileRef,
    images::{FittedImage, ImageLimits, fit_image},
    projection::{ImageInput, PendingImage, RequestBudget, base64_len, project},
};
use sixb_tools::{ContentPart, ToolOutput};

use super::{
    Files,
    element::{Allowance, is_image, is_textual},
};
use crate::model::{ImagePart, Message, ToolResult};

const TOO_MANY: &str =
    "The image is not shown: one request carries no more. Do not guess what it shows.";

/// An image that a call left for the model.
struct Pending {
    call_id: String,
    file: FileRef,
    path: Option<String>,
}

/// What is to be sent of an image: itself, or why it is not.
type Fitted = Result<FittedImage, String>;

impl Files {
    /// Gives each result with files the text that the model reads in the place of its JSON. Returns the one message with
    /// the images, which goes into the next request and nowhere else. `sent` are images that the request holds anyway.
    ///
    /// A file that cannot be read or shown says so itself; the others are shown all the same.
    pub(crate) async fn show(
        &self,
        results: &mut [ToolResult],
        sent: &[Message],
    ) -> Option<Message> {
        let mut allowance = Allowance::default();
        let mut pending = Vec::new();
        for result in results {
            self.describe_one(result, Some(&mut allowance), &mut pending)
                .await;
        }
        self.images(&pending, sent).await
    }

    /// As [`show`](Self::show), for a conversation that goes on: results that the model has answered to are described without
    /// text and images; those of a step that it has not seen yet, since its run was interrupted, are shown.
    pub(crate) async fn recall(&self, messages: &mut [Message]) -> Option<Message> {
        let said = |message: &Message| matches!(message, Message::Assistant { .. });
        let answered = messages.iter().rposition(said).unwrap_or(0);
        let (mut allowance, mut pending) = (Allowance::default(), Vec::new());
        for (place, message) in messages.iter_mut().enumerate() {
            let Message::Tool(result) = message else {
                continue;
            };
            match place < answered {
                true => self.describe_one(result, None, &mut Vec::new()).await,
                false => {
                    self.describe_one(result, Some(&mut allowance), &mut pending)
                        .await
                }
            }
        }
        self.images(&pending, messages).await
    }

    async fn describe_one(
        &self,
        result: &mut ToolResult,
        mut allowance: Option<&mut Allowance>,
        pending: &mut Vec<Pending>,
    ) {
        let Some(parts) = result.result.as_ref().ok().and_then(ToolOutput::parts_of) else {
            return;
        };
        let has_files = parts
            .iter()
            .any(|part| matches!(part, ContentPart::File { .. }));
        if !has_files {
            return;
        }
        let mut texts = Vec::with_capacity(parts.len());
        for part in parts {
            let file = match part {
                ContentPart::Text { text } => {
                    texts.push(text);
                    continue;
                }
                ContentPart::File { file_ref } => file_ref,
                _ => continue,
            };
            let path = self
                .artifacts
                .files()
                .of(&file)
                .and_then(|known| known.path);
            let element = FileElement::new(&file).path(path.as_deref());
            texts.push(match &mut allowance {
                Some(allowance) if is_textual(&file) => {
                    match self.artifacts.blobs().read(&file).await {
                        Ok(bytes) => allowance.with_excerpt(element, &bytes),
                        Err(error) => {
                            tracing::warn!("a file of a result cannot be read: {error}");
                            element.note("Its content cannot be read now.").to_string()
                        }
                    }
                }
                _ => element.to_string(),
            });
            if is_image(&file) {
                pending.push(Pending {
                    call_id: result.call_id.clone(),
                    file,
                    path,
                });
            }
        }
        result.shown = Some(texts.join("\n"));
    }

    async fn images(&self, pending: &[Pending], sent: &[Message]) -> Option<Message> {
        let mut fitted: HashMap<Digest, Fitted> = HashMap::new();
        let most = self.sight.budget.map_or(0, |budget| budget.images);
        for image in pending {
            let digest = image.file.digest();
            // More of them would be left out anyway: they are not even decoded.
            if fitted.len() < most && !fitted.contains_key(&digest) {
                fitted.insert(digest, self.fit(&image.file).await);
            }
        }
        let candidates: Vec<PendingImage<'_>> = pending
            .iter()
            .map(|image| {
                let candidate = match fitted.get(&image.file.digest()) {
                    Some(Ok(fitted)) => {
                        PendingImage::ready(&image.call_id, &image.file, fitted.bytes.len() as u64)
                            .with_note(fitted.note.as_deref())
                    }
                    Some(Err(note)) => PendingImage::left_out(&image.call_id, &image.file, note),
                    None if self.sight.budget.is_some() => {
                        PendingImage::left_out(&image.call_id, &image.file, TOO_MANY)
                    }
                    None => PendingImage::ready(&image.call_id, &image.file, image.file.size()),
                };
                candidate.at(image.path.as_deref())
            })
            .collect();
        let input = match self.sight.budget {
            Some(budget) => ImageInput::Within(left(budget, sent)),
            None => ImageInput::None,
        };
        let projection = project(&candidates, input)?;
        let chosen = projection.images.iter().filter_map(|at| {
            let digest = pending.get(*at)?.file.digest();
            let fitted = fitted.get(&digest)?.as_ref().ok()?;
            Some(ImagePart::new(
                fitted.media_type.as_str(),
                fitted.bytes.clone(),
            ))
        });
        Some(Message::User {
            text: projection.text,
            images: chosen.collect(),
        })
    }

    /// Reads an image and fits it for the model.
    async fn fit(&self, file: &FileRef) -> Fitted {
        match self.artifacts.blobs().read(file).await {
            Ok(bytes) => self.sight.fit(bytes).await,
            Err(error) => {
                tracing::warn!("an image of a result cannot be read: {error}");
                Err("The image cannot be read now. You have not seen it: do not guess or describe what it shows.".to_owned())
            }
        }
    }
}

impl super::Sight {
    pub(super) async fn fit(&self, bytes: Bytes) -> Fitted {
        let fitted = fit_image(bytes, &ImageLimits::default(), &self.formats).await;
        fitted.map_err(|left_out| left_out.note())
    }
}

/// What is left of a request's budget beside the images that it holds anyway.
fn left(budget: RequestBudget, sent: &[Message]) -> RequestBudget {
    let images = sent.iter().filter_map(|message| match message {
        Message::User { images, .. } => Some(images),
        _ => None,
    });
    let (mut count, mut bytes) = (0, 0);
    for image in images.flatten() {
        count += 1;
        bytes += base64_len(image.data.len() as u64);
    }
    RequestBudget::new(
        budget.images.saturating_sub(count),
        budget.base64_bytes.saturating_sub(bytes),
    )
}
