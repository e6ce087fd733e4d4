//! Makes a schema flat: references inlined, one closed object at the root.

use serde_json::{Map, Value, json};

use super::walk::{child_schemas, child_schemas_mut};

/// More nodes than this after inlining is no schema for a model (and inlining can grow without bound).
const MAX_NODES: usize = 10_000;

/// Keywords that say something about a schema without changing what it accepts.
const ANNOTATIONS: [&str; 8] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
];

/// Why a schema cannot be made flat.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct SchemaError {
    at: String,
    problem: String,
}

impl SchemaError {
    pub(crate) fn new(at: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            problem: problem.into(),
        }
    }

    /// Where: a JSON Pointer into the schema, empty for its root.
    pub fn pointer(&self) -> &str {
        &self.at
    }

    pub(crate) fn place(&self) -> String {
        if self.at.is_empty() {
            String::new()
        } else {
            format!(" at `{}`", self.at)
        }
    }
}

/// Makes a schema flat: inlines `$ref`s, drops `$defs`, and closes the root object.
///
/// # Errors
/// When a type contains itself, a reference leads nowhere or out of the document, the root is not an object with named
/// properties, or the result is too large.
pub fn flatten(schema: Value) -> Result<Value, SchemaError> {
    let mut root = Inliner {
        document: &schema,
        nodes: 0,
    }
    .inline(&schema, &mut Vec::new(), "")?;
    close_root(&mut root)?;
    Ok(root)
}

struct Inliner<'a> {
    document: &'a Value,
    nodes: usize,
}

impl<'a> Inliner<'a> {
    /// `open` holds the references being inlined: meeting one again means that a type contains itself.
    fn inline(
        &mut self,
        schema: &'a Value,
        open: &mut Vec<&'a str>,
        at: &str,
    ) -> Result<Value, SchemaError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(SchemaError::new(
                "",
                format!("is too large: over {MAX_NODES} parts once references are inlined"),
            ));
        }
        let Value::Object(object) = schema else {
            return Ok(schema.clone());
        };
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if object.contains_key(keyword) {
                return Err(SchemaError::new(
                    at,
                    format!("uses `{keyword}`, which cannot be inlined"),
                ));
            }
        }
        let mut own = object.clone();
        for keyword in [
            "$defs",
            "definitions",
            "$schema",
            "$id",
            "$anchor",
            "$ref",
            "$comment",
        ] {
            own.shift_remove(keyword);
        }
        let mut own = Value::Object(own);
        let children = child_schemas(object).filter(|(step, _)| !step.is_definition());
        let mut inlined = Vec::new();
        for (step, child) in children {
            inlined.push((step.clone(), self.inline(child, open, &step.below(at))?));
        }
        if let Value::Object(own) = &mut own {
            for ((_, slot), (_, child)) in child_schemas_mut(own).zip(inlined) {
                *slot = child;
            }
        }
        let Some(reference) = object.get("$ref") else {
            return Ok(own);
        };
        let (name, target) = self.resolve(reference, at)?;
        if open.contains(&name) {
            return Err(SchemaError::new(
                at,
                format!(
                    "`{name}` contains itself: a model cannot be shown a recursive type, so bound its depth"
                ),
            ));
        }
        open.push(name);
        let target = self.inline(target, open, at)?;
        open.pop();
        Ok(merge(target, own))
    }

    fn resolve(&self, reference: &'a Value, at: &str) -> Result<(&'a str, &'a Value), SchemaError> {
        let name = reference.as_str().unwrap_or_default();
        let Some(pointer) = name.strip_prefix('#') else {
            return Err(SchemaError::new(
                at,
                format!("`$ref` {reference} leads out of the schema"),
            ));
        };
        match self.document.pointer(pointer) {
            Some(target) => Ok((name, target)),
            None => Err(SchemaError::new(
                at,
                format!("`$ref` {reference} leads nowhere"),
            )),
        }
    }
}

/// What stood beside a `$ref` joins its target: annotations win over the target's, constraints hold as well as it.
fn merge(target: Value, beside: Value) -> Value {
    let Value::Object(beside) = beside else {
        return target;
    };
    if beside.is_empty() {
        return target;
    }
    let (annotations, constraints): (Map<_, _>, Map<_, _>) = beside
        .into_iter()
        .partition(|(key, _)| ANNOTATIONS.contains(&key.as_str()));
    let mut merged = match target {
        Value::Object(target) if constraints.is_empty() => target,
        target if constraints.is_empty() && target == json!(true) => Map::new(),
        target if constraints.is_empty() => return target,
        target => Map::from_iter([("allOf".to_owned(), json!([target, constraints]))]),
    };
    merged.extend(annotations);
    Value::Object(merged)
}

fn close_root(root: &mut Value) -> Result<(), SchemaError> {
    let wanted = "the root must be an object with named properties";
    let Value::Object(object) = root else {
        return Err(SchemaError::new(
            "",
            format!("{wanted}, but it accepts any value: use a struct with named fields"),
        ));
    };
    for keyword in ["oneOf", "anyOf", "allOf", "not", "if", "enum", "const"] {
        if object.contains_key(keyword) {
            return Err(SchemaError::new(
                "",
                format!("{wanted}, but it has `{keyword}`: put the enum into a field of a struct"),
            ));
        }
    }
    match object.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        None if object.is_empty() || object.contains_key("properties") => {}
        Some(other) => {
            return Err(SchemaError::new(
                "",
                format!("{wanted}, but its type is {other}: use a struct with named fields"),
            ));
        }
        None => {
            return Err(SchemaError::new(
                "",
                format!("{wanted}, but it has no type"),
            ));
        }
    }
    // Closing such an object would refuse the very keys that its author wants.
    let open = ["additionalProperties", "unevaluatedProperties"]
        .into_iter()
        .find(|keyword| object.get(*keyword).is_some_and(|more| more != false))
        .or(object
            .contains_key("patternProperties")
            .then_some("patternProperties"));
    if let Some(keyword) = open {
        return Err(SchemaError::new(
            "",
            format!(
                "{wanted}, but it takes keys that are not named (`{keyword}`), as a map or \
                 `#[serde(flatten)]` of one does: put the map into a field of a struct"
            ),
        ));
    }
    let mut flat = Map::new();
    flat.insert("type".into(), "object".into());
    flat.insert(
        "properties".into(),
        object
            .shift_remove("properties")
            .unwrap_or_else(|| json!({})),
    );
    if let Some(required) = object
        .shift_remove("required")
        .filter(|required| required != &json!([]))
    {
        flat.insert("required".into(), required);
    }
    flat.insert("additionalProperties".into(), false.into());
    // The name of a Rust type and its own doc comment say nothing to a model that the tool's description does not.
    for dropped in [
        "type",
        "title",
        "description",
        "additionalProperties",
        "unevaluatedProperties",
    ] {
        object.shift_remove(dropped);
    }
    flat.extend(std::mem::take(object));
    *root = Value::Object(flat);
    Ok(())
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::schema;

    fn check(input: Value, expect: Value) {
        assert_eq!(
            flatten(input.clone()).map_err(|error| error.to_string()),
            Ok(expect),
            "{input}"
        );
    }

    fn refuse(input: Value, part: &str) {
        let error = flatten(input.clone()).expect_err(&input.to_string());
        let text = format!("{}{}", error.place(), error);
        assert!(text.contains(part), "{input}: {text}");
    }

    #[test]
    fn case_80_a_tool_without_arguments_has_properties() {
        #[derive(Deserialize, JsonSchema)]
        struct Nothing {}
        let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
        assert_eq!(schema::of::<Nothing>(), Ok(empty.clone()));
        check(json!({"type": "object"}), empty.clone());
        check(json!({}), empty.clone());
        check(
            json!({"type": "object", "additionalProperties": false, "required": []}),
            empty,
        );
    }

    #[test]
    fn references_are_inlined() {
        check(
            json!({
                "$schema": "x", "title": "T", "type": "object", "required": ["a"],
                "properties": {
                    "a": {"$ref": "#/$defs/A", "description": "mine"},
                    "$ref": {"type": "array", "items": {"$ref": "#/$defs/A"}},
                    "n": {"$ref": "#/$defs/A", "minLength": 2}
                },
                "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "string", "description": "theirs"}}
            }),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "string", "description": "mine"},
                    "$ref": {"type": "array", "items": {"type": "string", "description": "theirs"}},
                    "n": {"allOf": [{"type": "string", "description": "theirs"}, {"minLength": 2}]}
                },
                "required": ["a"],
                "additionalProperties": false
            }),
        );
    }

    #[test]
    fn a_root_reference_is_followed() {
        check(
            json!({"$ref": "#/definitions/A", "definitions": {"A": {"type": "object", "properties": {"x": true}}}}),
            json!({"type": "object", "properties": {"x": true}, "additionalProperties": false}),
        );
    }

    #[test]
    fn what_cannot_be_flat_is_refused_with_the_remedy() {
        for (input, part) in [
            (json!({"type": "string"}), "its type is \"string\""),
            (json!({"type": ["object", "null"]}), "its type is"),
            (json!(true), "accepts any value"),
            (json!({"oneOf": []}), "put the enum into a field"),
            (json!({"type": "object", "allOf": [{}]}), "`allOf`"),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                "put the map into a field",
            ),
            (
                json!({"properties": {"a": true}, "additionalProperties": true}),
                "takes keys that are not named",
            ),
            (
                json!({"properties": {"a": true}, "unevaluatedProperties": {}}),
                "takes keys that are not named",
            ),
            (
                json!({"properties": {"a": true}, "patternProperties": {"x": true}}),
                "takes keys that are not named",
            ),
            (
                json!({"properties": {"a": {"$ref": "http://x/y"}}}),
                "at `/properties/a``$ref` \"http://x/y\" leads out",
            ),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/no"}}}),
                "leads nowhere",
            ),
            (json!({"$ref": "#"}), "contains itself"),
        ] {
            refuse(input, part);
        }
    }

    #[test]
    fn a_recursive_type_is_refused() {
        #[derive(Deserialize, JsonSchema)]
        struct Tree {
            #[serde(rename = "children")]
            _children: Vec<Tree>,
        }
        let error = schema::of::<Tree>().expect_err("recursive");
        assert!(error.to_string().contains("contains itself"), "{error}");
    }

    #[test]
    fn references_that_double_at_each_level_are_bounded() {
        let defs: Map<_, _> = (0..30)
            .map(|n| {
                let next = json!({"$ref": format!("#/$defs/{}", n + 1)});
                (
                    n.to_string(),
                    json!({"type": "object", "properties": {"a": next, "b": next}}),
                )
            })
            .chain([("30".to_owned(), json!({"type": "string"}))])
            .collect();
        refuse(
            json!({"properties": {"x": {"$ref": "#/$defs/0"}}, "$defs": defs}),
            "too large",
        );
    }
}
