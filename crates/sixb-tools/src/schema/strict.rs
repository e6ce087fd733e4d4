//! OpenAI's strict subset of JSON Schema.

use serde_json::{Map, Value, json};

use super::walk::child_schemas_mut;

/// Keywords that the strict subset knows. Others are dropped: the registry still checks them.
const KNOWN: [&str; 20] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "title",
    "description",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "default",
];

/// Formats that the strict subset knows.
const FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];

/// A schema that OpenAI's strict mode has no words for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no strict form of the schema at `{at}`: {problem}")]
pub struct NotStrict {
    at: String,
    problem: &'static str,
}

/// The strict form of a flat schema.
pub(super) fn strict_schema(schema: &Value) -> Result<Value, NotStrict> {
    let mut schema = schema.clone();
    strict(&mut schema, "")?;
    Ok(schema)
}

fn strict(schema: &mut Value, at: &str) -> Result<(), NotStrict> {
    let refuse = |problem| {
        Err(NotStrict {
            at: at.to_owned(),
            problem,
        })
    };
    let Value::Object(object) = schema else {
        return refuse("it accepts any value");
    };
    one_of_is_any_of(object);
    if object.contains_key("allOf") || object.contains_key("not") || object.contains_key("if") {
        return refuse("it combines schemas by allOf, not or if");
    }
    if !["type", "enum", "const", "anyOf"]
        .iter()
        .any(|keyword| object.contains_key(*keyword))
    {
        return refuse("it accepts any value");
    }
    if is_object(object) {
        if object
            .get("additionalProperties")
            .is_some_and(|more| more != &json!(false))
            || object.contains_key("patternProperties")
            || (!object.contains_key("properties") && !at.is_empty())
        {
            return refuse("it is a map with free keys");
        }
        require_all(object);
    } else if object.contains_key("prefixItems") {
        return refuse("it is a tuple");
    }
    object.retain(|keyword, value| match keyword.as_str() {
        "format" => value
            .as_str()
            .is_some_and(|format| FORMATS.contains(&format)),
        // Strict mode fills in every property itself, so it takes no defaults.
        "default" => false,
        keyword => KNOWN.contains(&keyword),
    });
    for (step, child) in child_schemas_mut(object) {
        if !child.is_boolean() || step.below("") != "/additionalProperties" {
            strict(child, &step.below(at))?;
        }
    }
    Ok(())
}

pub(super) fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => schema.contains_key("properties"),
    }
}

/// Neither OpenAI's nor Gemini's subset has `oneOf`. `anyOf` accepts at least as much, and the registry checks.
pub(super) fn one_of_is_any_of(object: &mut Map<String, Value>) {
    if let Some(variants) = object.shift_remove("oneOf") {
        object.insert("anyOf".into(), variants);
    }
}

fn require_all(object: &mut Map<String, Value>) {
    let required: Vec<String> = object
        .get("required")
        .and_then(Value::as_array)
        .map(|names| {
            names
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default();
    let mut names = Vec::new();
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for (name, property) in properties.iter_mut() {
            names.push(Value::from(name.as_str()));
            if !required.contains(name) {
                make_nullable(property);
            }
        }
    }
    object.insert("required".into(), Value::Array(names));
    object.insert("additionalProperties".into(), false.into());
}

fn make_nullable(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    let null_type = json!("null");
    if let Some(Value::Array(values)) = object.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(constant) = object.shift_remove("const") {
        object.insert("enum".into(), json!([constant, null]));
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(variants)) = object.get_mut(keyword)
            && !variants
                .iter()
                .any(|variant| variant.get("type") == Some(&null_type))
        {
            variants.push(json!({"type": "null"}));
        }
    }
    match object.get_mut("type") {
        Some(Value::Array(kinds)) if !kinds.contains(&null_type) => kinds.push(null_type),
        Some(kind @ Value::String(_)) if *kind != null_type => *kind = json!([kind.take(), "null"]),
        _ => {}
    }
}

/// Removes properties that are `null` where the schema knows no `null`.
pub(super) fn drop_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            object.retain(|name, value| {
                !value.is_null() || properties.get(name).is_none_or(takes_null)
            });
            for (name, value) in object {
                if let Some(property) = properties.get(name) {
                    drop_nulls(property, value);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else {
                return;
            };
            items.iter_mut().for_each(|item| drop_nulls(schema, item));
        }
        _ => {}
    }
}

fn takes_null(schema: &Value) -> bool {
    let Value::Object(object) = schema else {
        return true;
    };
    let variants = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|keyword| object.get(*keyword)?.as_array())
        .flatten();
    match object.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        Some(kind) => kind == "null",
        None => object.is_empty() || variants.into_iter().any(takes_null),
    }
}
