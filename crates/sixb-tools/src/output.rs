//! What a tool call gives back.

mod rich;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

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

/// One part of a rich result. Files join text here together with artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
}

impl ToolOutput {
    /// A rich result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Rich(vec![ContentPart::Text { text: text.into() }])
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
