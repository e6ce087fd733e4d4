//! The structured output of a run: the last answer as JSON that fits a schema. Pure.

use serde_json::Value;
use sixb_tools::schema::SchemaCheck;

/// What the answer has to fit.
#[derive(Debug)]
pub(super) struct OutputCheck {
    pub(super) schema: Value,
    check: SchemaCheck,
}

impl OutputCheck {
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() {
            return Err("it is no JSON object".to_owned());
        }
        Ok(Self {
            check: SchemaCheck::compile(schema)?,
            schema: schema.clone(),
        })
    }

    /// The answer as JSON, or what the model has to correct.
    pub(super) fn read(&self, answer: &str) -> Result<Value, String> {
        let text = unfenced(answer);
        let value = serde_json::from_str(text)
            .map_err(|error| format!("it is not one JSON value: {error}"))?;
        match self.check.problems(&value) {
            None => Ok(value),
            Some(problems) => Err(problems),
        }
    }
}

/// What stands in a code block, if the answer is one: models like to make one whatever they are told.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, inner)) if !language.contains(['{', '[', '"']) => inner.trim(),
        _ => answer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_read_or_its_problem_named() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        let check = OutputCheck::compile(&schema).expect("schema");
        for (answer, expect) in [
            ("{\"n\": 1}", Ok(json!({"n": 1}))),
            (" \n{\"n\": 1}\n", Ok(json!({"n": 1}))),
            ("```json\n{\"n\": 1}\n```", Ok(json!({"n": 1}))),
            ("```\n{\"n\": 1}\n```\n", Ok(json!({"n": 1}))),
            (
                "Here you are: {\"n\": 1}",
                Err("it is not one JSON value: "),
            ),
            ("{\"n\": 1} {}", Err("trailing characters")),
            ("", Err("it is not one JSON value: EOF")),
            (
                "{\"n\": \"1\"}",
                Err("at `/n`: \"1\" is not of type \"integer\""),
            ),
            ("{}", Err("at the root: property \"n\" is missing")),
            (
                "{\"n\": 1, \"m\": 2}",
                Err("unknown property m; the schema knows n"),
            ),
        ] {
            match (check.read(answer), expect) {
                (Ok(value), Ok(expect)) => assert_eq!(value, expect),
                (Err(problem), Err(expect)) => {
                    assert!(problem.contains(expect), "{answer}: {problem}")
                }
                (got, _) => panic!("{answer}: {got:?}"),
            }
        }
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        assert!(OutputCheck::compile(&json!(true)).is_err());
        assert!(OutputCheck::compile(&json!({"type": 7})).is_err());
    }
}
