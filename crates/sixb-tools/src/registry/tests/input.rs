//! How arguments reach a typed tool, and what it is told about those that do not.

use super::*;

/// serde buffers these through its own value type, where arbitrary-precision numbers have broken before.
#[tokio::test]
async fn numbers_reach_tagged_untagged_and_flattened_types() {
    #[derive(Deserialize, JsonSchema)]
    struct Deep {
        shape: Shape,
        #[serde(flatten)]
        more: More,
        exact: Value,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Shape {
        Circle { radius: f64 },
    }
    #[derive(Deserialize, JsonSchema)]
    struct More {
        either: Either,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Either {
        Number(f32),
        Text(String),
    }
    let tool = AgentTool::new("deep")
        .description("x")
        .run(|_, input: Deep| async move {
            let Shape::Circle { radius } = input.shape;
            let either = match input.more.either {
                Either::Number(number) => number.to_string(),
                Either::Text(text) => text,
            };
            Ok(json!([radius, either, input.exact]))
        });
    let registry = of([tool.expect("tool")]);
    let call = |arguments: &'static str| registry.call_json("deep", cx(), arguments);
    let exact = "12345678901234567890123.10";
    let arguments =
        r#"{"shape":{"kind":"Circle","radius":2},"either":1.5,"exact":12345678901234567890123.10}"#;
    let output = call(arguments).await.expect("numbers").to_json();
    assert_eq!(output.to_string(), format!("[2.0,\"1.5\",{exact}]"));
    let error = call(r#"{"shape":{"kind":"Circle","radius":2},"either":[],"exact":1}"#)
        .await
        .expect_err("neither");
    assert!(
        error
            .model_text()
            .contains("at `/either`: [] fits none of the forms: [] is not of type \"number\", or"),
        "{error}"
    );
}

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    #[serde(rename = "a")]
    _a: i64,
    #[serde(rename = "o")]
    _o: Option<i32>,
    #[serde(rename = "list", default)]
    _list: Vec<u8>,
    #[serde(rename = "when", default)]
    _when: Option<Hour>,
    #[serde(rename = "float", default)]
    _float: f64,
}

/// Knows more than its schema says.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
struct Hour;

impl TryFrom<String> for Hour {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == "noon" {
            Ok(Self)
        } else {
            Err("expected the word noon")
        }
    }
}

#[tokio::test]
async fn a_number_that_does_not_fit_is_named_with_its_place_and_what_would_fit() {
    let registry = of([idle::<Numbers>("n", "N", "x").expect("tool")]);
    for (arguments, expect) in [
        (r#"{"a":1}"#, "ok"),
        (r#"{"a":-9223372036854775808,"o":null,"float":1}"#, "ok"),
        (
            r#"{"a":1.0}"#,
            "at `/a`: 1.0 is not written as an integer: expected digits without fraction or exponent",
        ),
        (
            r#"{"a":1e2}"#,
            "at `/a`: 1e+2 is not written as an integer: expected digits without fraction or exponent",
        ),
        (r#"{"a":1.5}"#, "at `/a`: 1.5 is not of type \"integer\""),
        (
            r#"{"a":99999999999999999999}"#,
            "at `/a`: 99999999999999999999 is out of range: expected an integer from -9223372036854775808 to 9223372036854775807",
        ),
        (
            r#"{"a":-9223372036854775809}"#,
            "at `/a`: -9223372036854775809 is out of range: expected an integer from -9223372036854775808 to 9223372036854775807",
        ),
        (
            r#"{"a":1,"o":2147483648}"#,
            "at `/o`: 2147483648 is out of range: expected an integer from -2147483648 to 2147483647",
        ),
        (
            r#"{"a":1,"list":[1,256]}"#,
            "at `/list/1`: 256 is greater than the maximum of 255",
        ),
        (
            r#"{"a":1,"list":[1,-0]}"#,
            "at `/list/1`: -0 is out of range: expected an integer from 0 to 255",
        ),
        (
            r#"{"a":1,"float":1e400}"#,
            "at `/float`: 1e+400 is out of range: expected a number that a float of 64 bits holds",
        ),
        (
            r#"{"a":1,"when":"two"}"#,
            "at `/when`: \"two\" does not fit: expected the word noon",
        ),
    ] {
        let text = match registry.call_json("n", cx(), arguments).await {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.model_text().replace("invalid input: ", ""),
        };
        assert_eq!(text, expect, "{arguments}");
    }
}
