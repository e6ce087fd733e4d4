//! Which parts of a schema are schemas themselves.

use serde_json::{Map, Value};

/// Keywords whose value is a schema.
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "additionalItems",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value maps names to schemas.
const NAMED: [&str; 5] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
];

/// How to get from a schema to a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    keyword: String,
    /// A property's name or an index.
    name: Option<String>,
}

impl Step {
    pub(crate) fn is_definition(&self) -> bool {
        matches!(self.keyword.as_str(), "$defs" | "definitions")
    }

    /// The JSON Pointer of this part of the schema at `at`.
    pub(crate) fn below(&self, at: &str) -> String {
        let escape = |text: &str| text.replace('~', "~0").replace('/', "~1");
        match &self.name {
            Some(name) => format!("{at}/{}/{}", escape(&self.keyword), escape(name)),
            None => format!("{at}/{}", escape(&self.keyword)),
        }
    }
}

/// The schemas directly inside one, in order.
pub(crate) fn child_schemas(schema: &Map<String, Value>) -> impl Iterator<Item = (Step, &Value)> {
    schema
        .iter()
        .flat_map(|(keyword, value)| -> Vec<(Step, &Value)> {
            let step = |name: Option<String>| Step {
                keyword: keyword.clone(),
                name,
            };
            match value {
                Value::Object(named) if NAMED.contains(&keyword.as_str()) => named
                    .iter()
                    .map(|(name, child)| (step(Some(name.clone())), child))
                    .collect(),
                Value::Array(list) if LIST.contains(&keyword.as_str()) || keyword == "items" => {
                    list.iter()
                        .enumerate()
                        .map(|(index, child)| (step(Some(index.to_string())), child))
                        .collect()
                }
                Value::Object(_) | Value::Bool(_) if ONE.contains(&keyword.as_str()) => {
                    vec![(step(None), value)]
                }
                _ => Vec::new(),
            }
        })
}

/// [`child_schemas`], to change.
pub(crate) fn child_schemas_mut(
    schema: &mut Map<String, Value>,
) -> impl Iterator<Item = (Step, &mut Value)> {
    schema
        .iter_mut()
        .flat_map(|(keyword, value)| -> Vec<(Step, &mut Value)> {
            let step = |name: Option<String>| Step {
                keyword: keyword.clone(),
                name,
            };
            if NAMED.contains(&keyword.as_str())
                && let Value::Object(named) = value
            {
                return named
                    .iter_mut()
                    .map(|(name, child)| (step(Some(name.clone())), child))
                    .collect();
            }
            if LIST.contains(&keyword.as_str()) || (keyword == "items" && value.is_array()) {
                let Value::Array(list) = value else {
                    return Vec::new();
                };
                return list
                    .iter_mut()
                    .enumerate()
                    .map(|(index, child)| (step(Some(index.to_string())), child))
                    .collect();
            }
            if ONE.contains(&keyword.as_str()) && (value.is_object() || value.is_boolean()) {
                return vec![(step(None), value)];
            }
            Vec::new()
        })
}
