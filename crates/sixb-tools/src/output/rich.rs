//! Rich content that a tool gives as JSON: `{"kind":"agentToolResult","content":[…]}`, closed objects throughout.

use serde::Deserialize;
use serde_json::{Map, Value};
use sixb_artifacts::FileRef;

use super::ContentPart;
use crate::{ToolError, ToolErrorKind};

pub(super) const KIND: &str = "agentToolResult";

/// Whether a value says of itself that it is rich content.
pub(super) fn is(value: &Value) -> bool {
    value.get("kind").is_some_and(|kind| kind == KIND)
}

/// The parts of a value that [`is`] rich content.
pub(super) fn read(value: &Value) -> Result<Vec<ContentPart>, ToolError> {
    closed(value, "", &["kind", "content"])?;
    let Some(parts) = value.get("content").and_then(Value::as_array) else {
        return Err(wrong("/content", "expected a list of parts"));
    };
    if parts.is_empty() {
        return Err(wrong("/content", "there is no part in it"));
    }
    parts
        .iter()
        .enumerate()
        .map(|(index, part)| read_part(part, &format!("/content/{index}")))
        .collect()
}

fn read_part(part: &Value, at: &str) -> Result<ContentPart, ToolError> {
    match part.get("type").and_then(Value::as_str) {
        Some("text") => {
            closed(part, at, &["type", "text"])?;
            match part.get("text").and_then(Value::as_str) {
                Some(text) => Ok(ContentPart::Text { text: text.into() }),
                None => Err(wrong(at, "`text` is missing or no string")),
            }
        }
        Some("file") => {
            closed(part, at, &["type", "fileRef"])?;
            let Some(file_ref) = part.get("fileRef") else {
                return Err(wrong(at, "`fileRef` is missing"));
            };
            match FileRef::deserialize(file_ref) {
                Ok(file_ref) => Ok(ContentPart::File { file_ref }),
                Err(error) => Err(wrong(&format!("{at}/fileRef"), &error.to_string())),
            }
        }
        Some(other) => {
            let other: String = other.chars().take(40).collect();
            Err(wrong(at, &format!("no part has the type {other:?}")))
        }
        None => Err(wrong(at, "expected an object with `type`")),
    }
}

fn closed(value: &Value, at: &str, known: &[&str]) -> Result<(), ToolError> {
    let mut keys = value.as_object().into_iter().flat_map(Map::keys);
    match keys.find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let key: String = key.chars().take(40).collect();
            Err(wrong(at, &format!("unknown property {key:?}")))
        }
    }
}

/// A defect of the tool: the model cannot mend it, but may know why there is no result.
fn wrong(at: &str, problem: &str) -> ToolError {
    let place = if at.is_empty() {
        "at the root".to_owned()
    } else {
        format!("at `{at}`")
    };
    ToolError::new(
        ToolErrorKind::Internal,
        format!("The tool returned rich content that is not valid: {place}: {problem}."),
    )
}
