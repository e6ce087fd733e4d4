//! Every wire's form of some tools, as snapshots, and the rules that each form must keep.
//!
//! `INSTA_UPDATE=always cargo test -p sixb-tools --all-features` writes them again.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{anthropic, gemini, mcp, openai, openai_strict, walk::child_schemas};
use crate::ToolSpec;

/// Searches the catalogue.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Search {
    /// What to look for.
    #[schemars(length(min = 1, max = 200))]
    query: String,
    /// At most this many hits.
    #[schemars(range(min = 1, max = 50))]
    #[serde(default = "ten")]
    limit: u32,
    /// Newest first, or best first.
    order: Option<Order>,
    /// Only what lies here.
    area: Option<Area>,
    tags: Vec<String>,
    price: Price,
    since: Option<f64>,
    version: Version,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    Newest,
    Best,
}

/// A rectangle.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Area {
    /// West, south, east, north.
    corners: [f64; 4],
    place: Option<Place>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Place {
    name: String,
    #[schemars(url)]
    url: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is looked at")]
enum Price {
    /// Any price.
    Any,
    /// Up to a price.
    Below { euros: u32 },
}

#[derive(Deserialize, JsonSchema)]
enum Version {
    /// The old one.
    V1,
    /// The new one.
    V2,
}

fn ten() -> u32 {
    10
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema is looked at")]
struct Open {
    labels: BTreeMap<String, u8>,
    anything: Value,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn spec<T: JsonSchema>(name: &str) -> ToolSpec {
    let schema = super::of::<T>().expect("flat");
    ToolSpec::new(name, "Does it.", schema)
        .expect("spec")
        .title("Do it")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("json")
}

/// Every schema inside one, itself first.
fn all(schema: &Value) -> Vec<&Value> {
    let inner = schema
        .as_object()
        .into_iter()
        .flat_map(child_schemas)
        .flat_map(|(_, child)| all(child));
    std::iter::once(schema).chain(inner).collect()
}

fn uses(schema: &Value, keyword: &str) -> bool {
    all(schema)
        .iter()
        .any(|schema| schema.get(keyword).is_some())
}

#[test]
fn each_wire_has_its_form_of_a_rich_tool() {
    let spec = spec::<Search>("search");
    insta::assert_snapshot!("flat", pretty(&spec.input_schema));
    insta::assert_snapshot!("openai", pretty(&openai(&spec)));
    insta::assert_snapshot!(
        "openai_strict",
        pretty(&openai_strict(&spec).expect("strict"))
    );
    insta::assert_snapshot!("anthropic", pretty(&anthropic(&spec)));
    insta::assert_snapshot!("gemini", pretty(&gemini(&spec)));
    insta::assert_snapshot!("mcp", pretty(&mcp(&spec)));
}

#[test]
fn case_80_each_wire_takes_a_tool_without_arguments() {
    let spec = spec::<Nothing>("now");
    let empty = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let strict =
        json!({"type": "object", "properties": {}, "additionalProperties": false, "required": []});
    assert_eq!(openai(&spec)["function"]["parameters"], empty);
    assert_eq!(
        openai_strict(&spec).expect("strict")["function"]["parameters"],
        strict
    );
    assert_eq!(anthropic(&spec)["input_schema"], empty);
    assert_eq!(
        mcp(&spec),
        json!({"name": "now", "title": "Do it", "description": "Does it.", "inputSchema": empty})
    );
    assert_eq!(
        gemini(&spec),
        json!({"name": "now", "description": "Does it."})
    );
}

#[test]
fn strict_closes_every_object_and_asks_for_every_property() {
    let strict = openai_strict(&spec::<Search>("search")).expect("strict");
    let schema = &strict["function"]["parameters"];
    for object in all(schema)
        .into_iter()
        .filter(|schema| schema.get("properties").is_some())
    {
        let names: Vec<&String> = object["properties"]
            .as_object()
            .expect("named")
            .keys()
            .collect();
        assert_eq!(object["required"], json!(names), "{object}");
        assert_eq!(object["additionalProperties"], false, "{object}");
    }
    for keyword in ["oneOf", "allOf", "default", "minLength", "$ref"] {
        assert!(!uses(schema, keyword), "{keyword}");
    }
    let limit = &schema["properties"]["limit"]["type"];
    assert_eq!(limit, &json!(["integer", "null"]));
}

#[test]
fn nulls_that_strict_mode_fills_in_are_taken_out_again() {
    let spec = spec::<Search>("search");
    let filled = json!({
        "query": "q", "limit": null, "order": null, "area": {"corners": [0, 0, 0, 0], "place": null}, "tags": [],
        "price": {"kind": "any"}, "since": null, "version": "V1",
    });
    // `limit` has a default but no null of its own; the others are `Option`s.
    let mut expect = filled.clone();
    expect
        .as_object_mut()
        .expect("object")
        .shift_remove("limit");
    assert_eq!(super::without_strict_nulls(&spec, filled), expect);
}

#[test]
fn what_has_no_strict_form_is_said() {
    let error = openai_strict(&spec::<Open>("open")).expect_err("a map");
    assert_eq!(
        error.to_string(),
        "no strict form of the schema at `/properties/labels`: it is a map with free keys"
    );
}

#[test]
fn gemini_gets_only_what_it_knows() {
    for declaration in [
        gemini(&spec::<Search>("search")),
        gemini(&spec::<Open>("open")),
    ] {
        for keyword in [
            "additionalProperties",
            "const",
            "oneOf",
            "allOf",
            "default",
            "prefixItems",
            "$ref",
        ] {
            assert!(
                !uses(&declaration["parameters"], keyword),
                "{keyword}: {declaration}"
            );
        }
        for schema in all(&declaration["parameters"]) {
            assert!(
                schema.get("type").is_some_and(Value::is_string) || schema.get("anyOf").is_some(),
                "{schema}"
            );
            let format = schema.get("format").and_then(Value::as_str);
            assert!(
                format
                    .is_none_or(|format| ["date-time", "float", "double", "int32", "int64"]
                        .contains(&format)),
                "{schema}"
            );
            assert!(schema.get("enum").is_none_or(|values| {
                values
                    .as_array()
                    .expect("list")
                    .iter()
                    .all(Value::is_string)
            }));
        }
    }
}

#[cfg(feature = "sandbox-tools")]
#[test]
fn the_sandbox_tools_are_flat_and_strict_where_asked() {
    for tool in crate::sandbox_tools() {
        let spec = tool.spec();
        insta::assert_snapshot!(format!("flat_{}", spec.name), pretty(&spec.input_schema));
        assert!(openai_strict(spec).is_ok(), "{}", spec.name);
        assert!(gemini(spec)["parameters"]["properties"].is_object());
    }
}
