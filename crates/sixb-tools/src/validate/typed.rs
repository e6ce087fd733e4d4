//! Arguments as the Rust type that a tool takes.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use super::{place, quote};
use crate::ToolError;

/// Reads arguments into their type. What its schema could not say is refused here, and path and value are named too.
pub(crate) fn typed<I: DeserializeOwned>(input: &Value) -> Result<I, ToolError> {
    serde_path_to_error::deserialize(input).map_err(|error| {
        let (pointer, value) = find(error.path(), input);
        ToolError::invalid_input(format!(
            "invalid input: {}: {} does not fit: {}",
            place(&pointer),
            quote(value),
            error.inner()
        ))
    })
}

/// The JSON Pointer of a path, and what lies there. Ends where the path has a step that the JSON has not: serde counts
/// the variant of an enum as one also where it is a string.
fn find<'a>(path: &Path, root: &'a Value) -> (String, &'a Value) {
    let (mut pointer, mut value) = (String::new(), root);
    for segment in path {
        let step = match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                key.replace('~', "~0").replace('/', "~1")
            }
            Segment::Unknown => break,
        };
        let step = format!("/{step}");
        let Some(inner) = value.pointer(&step) else {
            break;
        };
        pointer += &step;
        value = inner;
    }
    (pointer, value)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, num::NonZeroU8};

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Input {
        #[serde(rename = "list", default)]
        _list: Vec<BTreeMap<String, NonZeroU8>>,
        #[serde(rename = "shape", default)]
        _shape: Option<Shape>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Shape {
        Point,
        Circle {
            #[serde(rename = "radius")]
            _radius: u8,
        },
    }

    #[test]
    fn an_error_has_the_pointer_and_the_value() {
        for (input, expect) in [
            (
                json!({"list": [{}, {"a/b": 0}]}),
                "at `/list/1/a~1b`: 0 does not fit: invalid value: integer `0`, expected a nonzero u8",
            ),
            (
                json!({"shape": {"circle": {"radius": "x"}}}),
                "at `/shape/circle/radius`: \"x\" does not fit: invalid type: string \"x\", expected u8",
            ),
            (
                json!({"shape": {"circle": {}}}),
                "at `/shape/circle`: {} does not fit: missing field `radius`",
            ),
            (
                json!({"shape": "square"}),
                "at `/shape`: \"square\" does not fit: unknown variant `square`, expected `point` or `circle`",
            ),
            (
                json!(7),
                "at the root: 7 does not fit: invalid type: number, expected struct Input",
            ),
        ] {
            let error = typed::<Input>(&input).expect_err(expect);
            assert_eq!(error.model_text(), format!("invalid input: {expect}"));
        }
        assert!(typed::<Input>(&json!({"shape": "point"})).is_ok());
    }
}
