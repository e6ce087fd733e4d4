//! References to earlier results in a script: `${calls.ID.result.path}`.

use serde_json::{Value, json};

use crate::model::{Message, ToolResult};

const OPEN: &str = "${calls.";

/// What came of the calls so far, for references.
#[derive(Debug)]
pub(super) struct Results<'a>(Vec<&'a ToolResult>);

impl<'a> Results<'a> {
    pub(super) fn of(messages: &'a [Message]) -> Self {
        Self(
            messages
                .iter()
                .filter_map(|message| match message {
                    Message::Tool(result) => Some(result),
                    _ => None,
                })
                .collect(),
        )
    }

    /// The value of a reference such as `calls.count.result.rows.0`, or what is wrong with it.
    fn resolve(&self, reference: &str) -> Result<Value, String> {
        let mut parts = reference.split('.').skip(1);
        let id = parts.next().unwrap_or_default();
        // The latest one: a thread may play its script more than once.
        let Some(call) = self.0.iter().rev().find(|call| call.call_id == id) else {
            return Err(format!(
                "unknown reference ${{{reference}}}: no call `{id}` has a result; {}",
                self.known()
            ));
        };
        let root = match &call.result {
            Ok(value) => json!({"result": value}),
            Err(failure) => json!({"error": failure}),
        };
        let mut value = &root;
        let mut seen = format!("calls.{id}");
        for part in parts {
            let next = match value {
                Value::Object(map) => map.get(part),
                Value::Array(items) => part
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get(index)),
                _ => None,
            };
            value = next.ok_or_else(|| {
                format!(
                    "unknown reference ${{{reference}}}: {seen} {}",
                    describe(value, call)
                )
            })?;
            seen = format!("{seen}.{part}");
        }
        Ok(value.clone())
    }

    fn known(&self) -> String {
        if self.0.is_empty() {
            return "no call has one yet".to_owned();
        }
        let ids: Vec<_> = self.0.iter().map(|call| call.call_id.as_str()).collect();
        format!("known ids: {}", ids.join(", "))
    }
}

fn describe(value: &Value, call: &ToolResult) -> String {
    match (value, &call.result) {
        (Value::Object(map), Err(failure)) if map.contains_key("error") => {
            format!(
                "failed ({}: {}); it has only `error`",
                failure.kind, failure.message
            )
        }
        (Value::Object(map), _) => format!(
            "has the keys {}",
            map.keys().cloned().collect::<Vec<_>>().join(", ")
        ),
        (Value::Array(items), _) => format!("is a list of {}", items.len()),
        (Value::String(_), _) => "is a string".to_owned(),
        (Value::Null, _) => "is null".to_owned(),
        (other, _) => format!("is {other}"),
    }
}

/// Fills a string. A string that is one reference and nothing else takes the JSON value as it is; a reference among
/// other text is written out: strings raw, other values as compact JSON. `$${calls.` stands for the text `${calls.`.
pub(super) fn fill(text: &str, results: &Results<'_>) -> Result<Value, String> {
    if let Some(reference) = whole(text) {
        return results.resolve(reference);
    }
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        if rest[..start].ends_with('$') {
            filled.push_str(&rest[..start - 1]);
            filled.push_str(OPEN);
            rest = &rest[start + OPEN.len()..];
            continue;
        }
        let Some(len) = rest[start..].find('}') else {
            return Err(format!(
                "the reference {:?} has no closing }}",
                clip(&rest[start..])
            ));
        };
        filled.push_str(&rest[..start]);
        match results.resolve(&rest[start + 2..start + len])? {
            Value::String(text) => filled.push_str(&text),
            other => filled.push_str(&other.to_string()),
        }
        rest = &rest[start + len + 1..];
    }
    filled.push_str(rest);
    Ok(Value::String(filled))
}

/// Fills all strings in `value`; `at` is its path, for errors.
pub(super) fn fill_value(
    value: &Value,
    results: &Results<'_>,
    at: &str,
) -> Result<Value, (String, String)> {
    match value {
        Value::String(text) => fill(text, results).map_err(|problem| (at.to_owned(), problem)),
        Value::Array(items) => {
            let filled = items
                .iter()
                .enumerate()
                .map(|(index, item)| fill_value(item, results, &format!("{at}[{index}]")));
            filled.collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Object(map) => {
            let filled = map.iter().map(|(key, item)| {
                Ok((
                    key.clone(),
                    fill_value(item, results, &format!("{at}.{key}"))?,
                ))
            });
            filled.collect::<Result<_, _>>().map(Value::Object)
        }
        other => Ok(other.clone()),
    }
}

fn whole(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("${")?.strip_suffix('}')?;
    (inner.starts_with("calls.") && !inner.contains('}')).then_some(inner)
}

fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(60)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolCall;
    use sixb_tools::ToolErrorKind;

    fn messages() -> Vec<Message> {
        vec![
            Message::user("x"),
            Message::Tool(ToolResult::ok(
                &ToolCall::new("count", "bash", "{}"),
                json!({"stdout": "42\n", "exitCode": 0, "rows": [{"name": "é"}]}),
            )),
            Message::Tool(ToolResult::failed(
                &ToolCall::new("bad", "read", "{}"),
                ToolErrorKind::NotFound,
                "no file",
            )),
        ]
    }

    #[test]
    fn references_are_filled() {
        let messages = messages();
        let results = Results::of(&messages);
        for (text, expect) in [
            ("plain", json!("plain")),
            ("${calls.count.result.stdout}", json!("42\n")),
            ("${calls.count.result.exitCode}", json!(0)),
            ("${calls.count.result.rows}", json!([{"name": "é"}])),
            ("${calls.count.result.rows.0.name}", json!("é")),
            ("exit ${calls.count.result.exitCode}!", json!("exit 0!")),
            (
                "${calls.count.result.exitCode}${calls.count.result.exitCode}",
                json!("00"),
            ),
            (
                "rows: ${calls.count.result.rows}",
                json!("rows: [{\"name\":\"é\"}]"),
            ),
            ("${calls.bad.error.kind}", json!("not_found")),
            // What a shell means stays as it is.
            (
                "echo ${HOME} $${x} ${calls}",
                json!("echo ${HOME} $${x} ${calls}"),
            ),
            (
                "echo $${calls.count.result}",
                json!("echo ${calls.count.result}"),
            ),
        ] {
            assert_eq!(fill(text, &results).expect(text), expect, "{text}");
        }
    }

    #[test]
    fn an_unknown_reference_is_named_with_what_is_known() {
        let messages = messages();
        let results = Results::of(&messages);
        for (text, expect) in [
            (
                "${calls.nope.result}",
                "unknown reference ${calls.nope.result}: no call `nope` has a result; known ids: count, bad",
            ),
            (
                "a ${calls.count.result.stderr}",
                "calls.count.result has the keys stdout, exitCode, rows",
            ),
            (
                "${calls.count.result.rows.7}",
                "calls.count.result.rows is a list of 1",
            ),
            (
                "${calls.bad.result.stdout}",
                "calls.bad failed (not_found: no file); it has only `error`",
            ),
            ("a ${calls.count.result", "has no closing }"),
        ] {
            let problem = fill(text, &results).expect_err(text);
            assert!(problem.contains(expect), "{text}: {problem}");
        }
        let none = Results::of(&[]);
        assert!(
            fill("${calls.a.result}", &none)
                .expect_err("none")
                .contains("no call has one yet")
        );
    }

    #[test]
    fn an_error_has_the_path_of_its_string() {
        let value = json!({"a": [1, {"b": "${calls.x.result}"}]});
        let (at, _) = fill_value(&value, &Results::of(&[]), "steps[0].toolCalls[1].arguments")
            .expect_err("unknown");
        assert_eq!(at, "steps[0].toolCalls[1].arguments.a[1].b");
    }
}
