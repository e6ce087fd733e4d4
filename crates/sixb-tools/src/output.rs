//! What a tool call gives back.

mod rich;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use sixb_artifacts::FileRef;

use crate::ToolError;

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolOutput {
    /// Any JSON value. An object whose `kind` is `agentToolResult` is rich content and is read as such by
    /// [`ToolRegistry::call`](crate::ToolRegistry::call).
    Json(Value),
    /// Parts for a model to look at, in order. At least one.
    Rich(Vec<ContentPart>),
}

/// One part of a rich result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A file that this run published or was given. An image is shown to models that take images; of other files a model
    /// reads name, type, size and path, and the start of text.
    File {
        /// Which. A reference that the run does not know is refused by [`ToolRegistry::call`](crate::ToolRegistry::call).
        file_ref: FileRef,
    },
}

impl ToolOutput {
    /// A rich result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Rich(vec![ContentPart::Text { text: text.into() }])
    }

    /// A rich result of one file.
    pub fn file(file: FileRef) -> Self {
        Self::Rich(vec![ContentPart::File { file_ref: file }])
    }

    /// The files of a rich result, in order.
    pub fn files(&self) -> impl Iterator<Item = &FileRef> {
        let parts = match self {
            Self::Rich(parts) => &parts[..],
            Self::Json(_) => &[],
        };
        parts.iter().filter_map(|part| match part {
            ContentPart::File { file_ref } => Some(file_ref),
            ContentPart::Text { .. } => None,
        })
    }

    /// Rich content that was written as JSON by [`to_json`](Self::to_json), as it stands in a transcript; `None` for all
    /// other JSON. Whether a run knows the files is not checked.
    pub fn parts_of(value: &Value) -> Option<Vec<ContentPart>> {
        rich::is(value).then(|| rich::read(value).ok()).flatten()
    }

    /// Reads JSON that is rich content by its own account.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(crate) fn settle(self) -> Result<Self, ToolError> {
        match self {
            Self::Json(value) if rich::is(&value) => rich::read(&value).map(Self::Rich),
            other => Ok(other),
        }
    }

    /// As it is kept in a transcript and shown to a model: the JSON itself, or
    /// `{"kind":"agentToolResult","content":[…]}`.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Rich(content) => json!({"kind": rich::KIND, "content": content}),
        }
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl Serialize for ToolOutput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Json(value) => value.serialize(serializer),
            Self::Rich(_) => self.to_json().serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_part_and_is_read_back() {
        let file = FileRef::of(b"hi").with_file_name("hi.txt".parse().expect("name"));
        let output = ToolOutput::file(file.clone());
        let json = output.to_json();
        assert_eq!(json["content"][0]["type"], "file");
        assert_eq!(json["content"][0]["fileRef"]["fileName"], "hi.txt");
        assert_eq!(
            ToolOutput::parts_of(&json),
            Some(vec![ContentPart::File {
                file_ref: file.clone()
            }])
        );
        assert_eq!(output.files().collect::<Vec<_>>(), [&file]);
        assert_eq!(ToolOutput::parts_of(&json!({"content": []})), None);
    }

    #[test]
    fn a_rich_result_has_its_own_envelope() {
        let expect =
            json!({"kind": "agentToolResult", "content": [{"type": "text", "text": "hi"}]});
        assert_eq!(ToolOutput::text("hi").to_json(), expect);
        assert_eq!(
            serde_json::to_value(ToolOutput::text("hi")).expect("json"),
            expect
        );
        assert_eq!(ToolOutput::Json(json!([1])).to_json(), json!([1]));
    }
}
