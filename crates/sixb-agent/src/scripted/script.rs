//! The script format, checked when it is read: every error names its JSON path.

use std::{collections::HashSet, time::Duration};

use serde_json::{Map, Value};

use crate::model::ModelError;

/// Longest pause of one step.
const MAX_DELAY_MS: u64 = 600_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    pub(super) delay: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// An object; its strings may hold references.
    pub(super) arguments: Value,
}

impl Script {
    pub(super) fn parse(json: &str) -> Result<Self, ModelError> {
        let value: Value = serde_json::from_str(json)
            .map_err(|error| wrong("$", format!("is not JSON: {error}")))?;
        let root = object(&value, "$", &["steps"])?;
        let steps = list(
            root.get("steps")
                .ok_or_else(|| wrong("$", "has no `steps`"))?,
            "steps",
        )?;
        if steps.is_empty() {
            return Err(wrong("steps", "is empty: a script has at least one step"));
        }
        let mut ids = HashSet::new();
        let steps = steps
            .iter()
            .enumerate()
            .map(|(index, step)| Step::parse(step, index, &mut ids))
            .collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }
}

impl Step {
    fn parse(value: &Value, index: usize, ids: &mut HashSet<String>) -> Result<Self, ModelError> {
        let at = format!("steps[{index}]");
        let map = object(value, &at, &["text", "toolCalls", "delayMs"])?;
        let text = match map.get("text") {
            None => String::new(),
            Some(text) => string(text, &format!("{at}.text"))?.to_owned(),
        };
        let calls = match map.get("toolCalls") {
            None => &[][..],
            Some(calls) => list(calls, &format!("{at}.toolCalls"))?,
        };
        let delay = match map.get("delayMs") {
            None => 0,
            Some(delay) => delay
                .as_u64()
                .filter(|ms| *ms <= MAX_DELAY_MS)
                .ok_or_else(|| {
                    wrong(
                        &format!("{at}.delayMs"),
                        format!("is {delay}: give whole milliseconds from 0 to {MAX_DELAY_MS}"),
                    )
                })?,
        };
        let calls = calls
            .iter()
            .enumerate()
            .map(|(place, call)| Call::parse(call, index, place, ids))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            text,
            calls,
            delay: Duration::from_millis(delay),
        })
    }
}

impl Call {
    fn parse(
        value: &Value,
        step: usize,
        place: usize,
        ids: &mut HashSet<String>,
    ) -> Result<Self, ModelError> {
        let at = format!("steps[{step}].toolCalls[{place}]");
        let map = object(value, &at, &["id", "name", "arguments"])?;
        let id = match map.get("id") {
            None => format!("call_{}_{}", step + 1, place + 1),
            Some(id) => string(id, &format!("{at}.id"))?.to_owned(),
        };
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=64).contains(&id.len()) || !id.bytes().all(safe) {
            return Err(wrong(
                &format!("{at}.id"),
                format!("is {id:?}: use 1 to 64 letters, digits, `_` or `-`"),
            ));
        }
        if !ids.insert(id.clone()) {
            return Err(wrong(
                &format!("{at}.id"),
                format!("is {id:?}, which an earlier call has already"),
            ));
        }
        let name = map.get("name").ok_or_else(|| wrong(&at, "has no `name`"))?;
        let arguments = match map.get("arguments") {
            None => Value::Object(Map::new()),
            Some(arguments @ Value::Object(_)) => arguments.clone(),
            Some(other) => return Err(expected(&format!("{at}.arguments"), "an object", other)),
        };
        Ok(Self {
            id,
            name: string(name, &format!("{at}.name"))?.to_owned(),
            arguments,
        })
    }
}

fn object<'a>(
    value: &'a Value,
    at: &str,
    keys: &[&str],
) -> Result<&'a Map<String, Value>, ModelError> {
    let map = value
        .as_object()
        .ok_or_else(|| expected(at, "an object", value))?;
    match map.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(wrong(
            at,
            format!(
                "has the unknown key {key:?}; known keys: {}",
                keys.join(", ")
            ),
        )),
        None => Ok(map),
    }
}

fn list<'a>(value: &'a Value, at: &str) -> Result<&'a [Value], ModelError> {
    value
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| expected(at, "a list", value))
}

fn string<'a>(value: &'a Value, at: &str) -> Result<&'a str, ModelError> {
    value
        .as_str()
        .ok_or_else(|| expected(at, "a string", value))
}

fn expected(at: &str, what: &str, found: &Value) -> ModelError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    wrong(at, format!("is {found}, not {what}"))
}

fn wrong(at: &str, problem: impl Into<String>) -> ModelError {
    ModelError::Script {
        at: at.to_owned(),
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read() {
        let script = Script::parse(
            r#"{"steps":[{"text":"hi","delayMs":5,"toolCalls":[{"name":"bash"},{"id":"x","name":"read","arguments":{"path":"a"}}]},{}]}"#,
        )
        .expect("script");
        assert_eq!(script.steps.len(), 2);
        assert_eq!(script.steps[0].delay, Duration::from_millis(5));
        assert_eq!(script.steps[0].calls[0].id, "call_1_1");
        assert_eq!(script.steps[0].calls[1].id, "x");
    }

    #[test]
    fn an_error_names_its_json_path() {
        for (json, expect) in [
            ("{", "script $: is not JSON"),
            ("[]", "script $: is a list, not an object"),
            ("{}", "script $: has no `steps`"),
            (r#"{"steps":[]}"#, "script steps: is empty"),
            (r#"{"steps":{}}"#, "script steps: is an object, not a list"),
            (
                r#"{"steps":[{}],"stpes":1}"#,
                "has the unknown key \"stpes\"; known keys: steps",
            ),
            (
                r#"{"steps":[{},{"text":1}]}"#,
                "script steps[1].text: is a number, not a string",
            ),
            (
                r#"{"steps":[{"tooCalls":[]}]}"#,
                "script steps[0]: has the unknown key \"tooCalls\"",
            ),
            (
                r#"{"steps":[{"delayMs":-1}]}"#,
                "script steps[0].delayMs: is -1",
            ),
            (
                r#"{"steps":[{"toolCalls":[{}]}]}"#,
                "script steps[0].toolCalls[0]: has no `name`",
            ),
            (
                r#"{"steps":[{"toolCalls":[{"name":"a","arguments":"x"}]}]}"#,
                "toolCalls[0].arguments: is a string, not an object",
            ),
            (
                r#"{"steps":[{"toolCalls":[{"name":"a","id":"a.b"}]}]}"#,
                "toolCalls[0].id: is \"a.b\"",
            ),
            (
                r#"{"steps":[{"toolCalls":[{"name":"a","id":"x"}]},{"toolCalls":[{"name":"a","id":"x"}]}]}"#,
                "script steps[1].toolCalls[0].id: is \"x\", which an earlier call has already",
            ),
        ] {
            let error = Script::parse(json).expect_err(json).to_string();
            assert!(error.contains(expect), "{json}: {error}");
        }
    }
}
