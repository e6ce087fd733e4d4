//! The subset of OpenAPI schema that Gemini takes.

use serde_json::{Map, Value, json};

use super::strict::one_of_is_any_of;

/// Keywords that Gemini knows. Others are dropped: the registry still checks them.
const KNOWN: [&str; 17] = [
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "anyOf",
    "nullable",
    "title",
    "description",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
];

/// The Gemini form of a schema.
pub(super) fn gemini_schema(schema: &Value) -> Value {
    let Value::Object(object) = schema else {
        return any_value();
    };
    let mut object = object.clone();
    one_of_is_any_of(&mut object);
    if let Some(Value::Array(parts)) = object.shift_remove("allOf") {
        merge_all(&mut object, parts);
    }
    if let Some(constant) = object.shift_remove("const") {
        object.insert("enum".into(), json!([constant]));
    }
    nullable_type(&mut object);
    string_enum(&mut object);
    nullable_variants(&mut object);
    if let Some(Value::Array(items)) = object.shift_remove("prefixItems") {
        object.insert("items".into(), json!({"anyOf": items}));
    }
    object.retain(|keyword, _| KNOWN.contains(&keyword.as_str()));
    formats(&mut object);
    for keyword in ["properties", "items", "anyOf"] {
        match object.get_mut(keyword) {
            Some(Value::Object(named)) if keyword == "properties" => {
                named
                    .values_mut()
                    .for_each(|child| *child = gemini_schema(child));
            }
            Some(Value::Array(list)) => list
                .iter_mut()
                .for_each(|child| *child = gemini_schema(child)),
            Some(child) => *child = gemini_schema(child),
            None => {}
        }
    }
    if !object.contains_key("type") && !object.contains_key("anyOf") {
        let Value::Object(any) = any_value() else {
            return Value::Object(object);
        };
        object.extend(any);
    }
    if object.get("type") == Some(&json!("array")) && !object.contains_key("items") {
        object.insert("items".into(), any_value());
    }
    Value::Object(object)
}

/// Gemini wants a type everywhere.
fn any_value() -> Value {
    json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}], "nullable": true})
}

fn merge_all(object: &mut Map<String, Value>, parts: Vec<Value>) {
    for part in parts {
        if let Value::Object(part) = part {
            for (keyword, value) in part {
                object.entry(keyword).or_insert(value);
            }
        }
    }
}

/// `type: [T, "null"]` becomes `type: T, nullable: true`; several types become `anyOf`.
fn nullable_type(object: &mut Map<String, Value>) {
    let Some(Value::Array(kinds)) = object.get("type") else {
        return;
    };
    let mut kinds = kinds.clone();
    let before = kinds.len();
    kinds.retain(|kind| kind != "null");
    if kinds.len() < before {
        object.insert("nullable".into(), true.into());
    }
    match &kinds[..] {
        [] => drop(object.insert("type".into(), "string".into())),
        [kind] => drop(object.insert("type".into(), kind.clone())),
        _ => {
            object.shift_remove("type");
            let variants: Vec<_> = kinds.iter().map(|kind| json!({"type": kind})).collect();
            object.insert("anyOf".into(), variants.into());
        }
    }
}

/// Gemini's `enum` lists strings only; `null` in it becomes `nullable`.
fn string_enum(object: &mut Map<String, Value>) {
    let Some(Value::Array(values)) = object.get_mut("enum") else {
        return;
    };
    let before = values.len();
    values.retain(|value| !value.is_null());
    let nullable = values.len() < before;
    let strings = values.iter().all(Value::is_string);
    let kind = match values.first() {
        Some(Value::Number(number)) if number.is_f64() => "number",
        Some(Value::Number(_)) => "integer",
        Some(Value::Bool(_)) => "boolean",
        _ => "string",
    };
    if nullable {
        object.insert("nullable".into(), true.into());
    }
    if !object.contains_key("type") {
        object.insert("type".into(), kind.into());
    }
    if !strings && let Some(values) = object.shift_remove("enum") {
        let note = format!("One of {values}.");
        let text = match object.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description} {note}"),
            None => note,
        };
        object.insert("description".into(), text.into());
    }
}

/// A `null` variant of `anyOf` becomes `nullable`; a single other variant takes its place.
fn nullable_variants(object: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = object.get_mut("anyOf") else {
        return;
    };
    let before = variants.len();
    variants.retain(|variant| variant.get("type") != Some(&json!("null")));
    let nullable = variants.len() < before;
    if let [only] = &variants[..] {
        let only = only.clone();
        object.shift_remove("anyOf");
        merge_all(object, vec![only]);
        nullable_type(object);
        if let Some(constant) = object.shift_remove("const") {
            object.insert("enum".into(), json!([constant]));
        }
        string_enum(object);
    }
    if nullable {
        object.insert("nullable".into(), true.into());
    }
}

/// Only these formats; others are refused by Gemini.
fn formats(object: &mut Map<String, Value>) {
    let allowed: &[&str] = match object.get("type").and_then(Value::as_str) {
        Some("string") => &["enum", "date-time"],
        Some("number") => &["float", "double"],
        Some("integer") => &["int32", "int64"],
        _ => &[],
    };
    if object
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| !allowed.contains(&format))
    {
        object.shift_remove("format");
    }
}
