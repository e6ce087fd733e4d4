//! Checks arguments against a tool's schema, and says what is wrong so that a model can mend it.

mod numbers;
mod typed;

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use serde_json::Value;

use crate::{ToolError, ToolErrorKind};

pub(crate) use typed::typed;

/// Problems named in one error.
const MAX_PROBLEMS: usize = 5;
/// Longest quoted value, in characters.
const MAX_QUOTE: usize = 120;

/// A schema, compiled once.
#[derive(Debug)]
pub(crate) struct InputCheck {
    validator: Validator,
    properties: Vec<String>,
}

impl InputCheck {
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        let properties = schema["properties"]
            .as_object()
            .map(|named| named.keys().cloned().collect());
        Ok(Self {
            validator: numbers::compile(schema)?,
            properties: properties.unwrap_or_default(),
        })
    }

    /// Names every problem with its path, the value found and what was expected. Nothing is coerced.
    pub(crate) fn check(&self, input: &Value) -> Result<(), ToolError> {
        if self.validator.is_valid(input) {
            return Ok(());
        }
        let mut errors = self.validator.iter_errors(input);
        let problems: Vec<String> = errors
            .by_ref()
            .take(MAX_PROBLEMS)
            .map(|error| self.describe(&error))
            .collect();
        let more = match errors.count() {
            0 => String::new(),
            count => format!("; and {count} more"),
        };
        Err(ToolError::new(
            ToolErrorKind::InvalidInput,
            format!("invalid input: {}{more}", problems.join("; ")),
        ))
    }

    fn describe(&self, error: &ValidationError<'_>) -> String {
        let path = error.instance_path().as_str();
        let place = place(path);
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } if path.is_empty() => {
                let known = match &self.properties[..] {
                    [] => "takes no properties".to_owned(),
                    known => format!("knows {}", known.join(", ")),
                };
                format!(
                    "{place}: unknown property {}; this tool {known}",
                    unexpected.join(", ")
                )
            }
            ValidationErrorKind::Required { property } => {
                format!("{place}: property {property} is missing")
            }
            ValidationErrorKind::AnyOf { context }
            | ValidationErrorKind::OneOfNotValid { context } => {
                let mut reasons: Vec<String> = context.iter().flatten().map(message).collect();
                reasons.dedup();
                reasons.truncate(MAX_PROBLEMS);
                format!(
                    "{place}: {} fits none of the forms: {}",
                    quote(error.instance()),
                    reasons.join(", or ")
                )
            }
            _ => format!("{place}: {}", message(error)),
        }
    }
}

fn place(pointer: &str) -> String {
    if pointer.is_empty() {
        "at the root".to_owned()
    } else {
        format!("at `{pointer}`")
    }
}

/// The validator's words, with a long value cut.
fn message(error: &ValidationError<'_>) -> String {
    error.masked_with(quote(error.instance())).to_string()
}

fn quote(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_QUOTE) {
        None => text,
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, input: Value, expect: &str) {
        let compiled = InputCheck::compile(schema).expect("schema");
        let text = match compiled.check(&input) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error.model_text().to_owned(),
        };
        assert_eq!(text, expect, "{input}");
    }

    #[test]
    fn an_error_names_path_value_and_expectation() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": ["integer", "null"], "minimum": 1},
                "mode": {"enum": ["a", "b"]},
                "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}},
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}
            },
            "required": ["path"],
            "additionalProperties": false
        });
        for (input, expect) in [
            (json!({"path": "x"}), "ok"),
            (json!({"path": "x", "limit": null}), "ok"),
            (
                json!({"path": "x", "limit": 1.0}),
                "invalid input: at `/limit`: 1.0 is not written as an integer: expected digits without fraction or exponent",
            ),
            (json!({"path": "x", "list": [{"n": 1.0}]}), "ok"),
            (
                json!({"path": "x", "either": 2.0}),
                "invalid input: at `/either`: 2.0 fits none of the forms: 2.0 is not of type \"string\", or 2.0 is not written as an integer: expected digits without fraction or exponent",
            ),
            (
                json!({}),
                "invalid input: at the root: property \"path\" is missing",
            ),
            (
                json!([]),
                "invalid input: at the root: [] is not of type \"object\"",
            ),
            (
                json!({"path": 7}),
                "invalid input: at `/path`: 7 is not of type \"string\"",
            ),
            (
                json!({"path": "x", "limit": "5"}),
                "invalid input: at `/limit`: \"5\" is not of types \"null\", \"integer\"",
            ),
            (
                json!({"path": "x", "limit": 0}),
                "invalid input: at `/limit`: 0 is less than the minimum of 1",
            ),
            (
                json!({"path": "x", "mode": "c"}),
                "invalid input: at `/mode`: \"c\" is not one of \"a\" or \"b\"",
            ),
            (
                json!({"path": "x", "pth": 1}),
                "invalid input: at the root: unknown property pth; this tool knows path, limit, mode, list, either",
            ),
            (
                json!({"path": "x", "list": [{"n": 1}, {"n": "one"}]}),
                "invalid input: at `/list/1/n`: \"one\" is not of type \"number\"",
            ),
            (
                json!({"path": "x", "either": []}),
                "invalid input: at `/either`: [] fits none of the forms: [] is not of type \"string\", or [] is not of type \"integer\"",
            ),
        ] {
            check(&schema, input, expect);
        }
    }

    #[test]
    fn a_long_value_is_quoted_in_part() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let error = InputCheck::compile(&schema)
            .expect("schema")
            .check(&json!({"n": "é".repeat(100_000)}));
        let text = error.expect_err("wrong type").model_text().to_owned();
        assert!(
            text.len() < 600 && text.ends_with("is not of type \"integer\""),
            "{text}"
        );
    }
}
