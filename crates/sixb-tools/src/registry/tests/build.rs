//! What a registry refuses before any call.

use std::collections::HashMap;

use super::*;

fn named(name: &str, title: &str) -> Arc<dyn Tool> {
    idle::<Nothing>(name, title, "x").expect("tool")
}

#[test]
fn both_offenders_of_a_name_are_named() {
    assert_eq!(
        refusal(vec![
            named("a", "First"),
            named("b", "Other"),
            named("a", "Second")
        ]),
        "two tools are called `a`: tool 1 of the list (\"First\") and tool 3 of the list (\"Second\"); rename one"
    );
    assert_eq!(
        refusal(vec![named("bash", "Mine")]),
        "`bash` is reserved for the `bash` of sixb-tools, but tool 1 of the list (\"Mine\") uses it; rename the custom tool"
    );
}

#[cfg(feature = "sandbox-tools")]
#[test]
fn the_tools_of_this_crate_may_carry_their_names() {
    let with = |tool| {
        let mut tools = crate::sandbox_tools();
        tools.push(tool);
        tools
    };
    let registry = of(with(named("x", "X")));
    let names: Vec<_> = registry.specs().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["bash", "read", "view_file", "x"]);
    let text = refusal(with(named("read", "Mine")));
    assert!(
        text.contains("tool 2 of the list (\"Read a file\")")
            && text.contains("tool 4 of the list (\"Mine\")"),
        "{text}"
    );
}

/// The keys that are not named would be shown to no model, and refused when one sends them.
#[derive(Deserialize, JsonSchema)]
struct Open {
    #[serde(rename = "named")]
    _named: String,
    #[serde(flatten)]
    _more: HashMap<String, Value>,
}

#[derive(Deserialize, JsonSchema)]
struct OpenTyped {
    #[serde(flatten)]
    _more: HashMap<String, u8>,
}

#[test]
fn a_tool_that_cannot_be_shown_is_refused() {
    for (tool, part) in [
        (idle::<Nothing>("a", "A", " "), "`a` has no description"),
        (
            idle::<Nothing>("a b", "A", "x"),
            "\"a b\" has a wrong character",
        ),
        (idle::<Vec<u8>>("a", "A", "x"), "its type is \"array\""),
        (idle::<Open>("a", "A", "x"), "takes keys that are not named"),
        (
            idle::<OpenTyped>("a", "A", "x"),
            "takes keys that are not named",
        ),
    ] {
        let text = tool.expect_err(part).to_string();
        assert!(text.contains(part), "{text}");
    }
    let mut spec = ToolSpec::new("a", "x", json!({})).expect("spec");
    spec.input_schema =
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}});
    let text = refusal(vec![Arc::new(Partial(spec))]);
    assert!(text.contains("is not flat"), "{text}");
}
