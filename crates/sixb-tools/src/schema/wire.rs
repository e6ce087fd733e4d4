//! A tool as each provider wants to be told of it.

use serde_json::{Map, Value, json};

use super::{
    gemini::gemini_schema,
    strict::{NotStrict, drop_nulls, strict_schema},
};
use crate::ToolSpec;

/// OpenAI chat completions and everything compatible: `{"type":"function","function":{…}}`.
pub fn openai(spec: &ToolSpec) -> Value {
    json!({"type": "function", "function": {
        "name": spec.name.as_str(),
        "description": spec.description,
        "parameters": spec.input_schema,
    }})
}

/// OpenAI with `strict: true`: arguments then always fit the schema. Optional properties become required and nullable,
/// so the arguments may hold `null` where the tool wants the property absent: [`without_strict_nulls`] takes it out.
///
/// # Errors
/// When the schema cannot be said strictly (a map, a value of any type): use [`openai`] then.
pub fn openai_strict(spec: &ToolSpec) -> Result<Value, NotStrict> {
    Ok(json!({"type": "function", "function": {
        "name": spec.name.as_str(),
        "description": spec.description,
        "strict": true,
        "parameters": strict_schema(&spec.input_schema)?,
    }}))
}

/// Arguments as the tool wants them: without the `null`s that stand for absent properties in strict mode.
pub fn without_strict_nulls(spec: &ToolSpec, mut arguments: Value) -> Value {
    drop_nulls(&spec.input_schema, &mut arguments);
    arguments
}

/// Anthropic messages: `{"name", "description", "input_schema"}`.
pub fn anthropic(spec: &ToolSpec) -> Value {
    json!({"name": spec.name.as_str(), "description": spec.description, "input_schema": spec.input_schema})
}

/// A Gemini function declaration. A tool without arguments has no `parameters`: Gemini refused objects without
/// properties.
pub fn gemini(spec: &ToolSpec) -> Value {
    let mut declaration = json!({"name": spec.name.as_str(), "description": spec.description});
    let empty = spec
        .input_schema
        .get("properties")
        .and_then(Value::as_object)
        .is_none_or(Map::is_empty);
    if !empty {
        declaration["parameters"] = gemini_schema(&spec.input_schema);
    }
    declaration
}

/// An entry of MCP's `tools/list`: `{"name", "title"?, "description", "inputSchema"}`.
pub fn mcp(spec: &ToolSpec) -> Value {
    let mut tool = Map::new();
    tool.insert("name".into(), spec.name.as_str().into());
    if let Some(title) = &spec.title {
        tool.insert("title".into(), title.as_str().into());
    }
    tool.insert("description".into(), spec.description.as_str().into());
    tool.insert("inputSchema".into(), spec.input_schema.clone());
    Value::Object(tool)
}
