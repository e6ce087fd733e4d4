//! A model that plays a script: for tests, examples and trying things out without a key.

mod script;
mod template;

use std::{fmt, sync::Arc};

use async_stream::try_stream;
use futures::{StreamExt, stream::BoxStream};
use tokio_util::sync::CancellationToken;

use crate::model::{FinishReason, Message, Model, ModelError, ModelEvent, ModelRequest, ToolCall};
use script::{Script, Step};
use template::Results;

/// What the model says when it is asked for a step that the script does not have.
const END: &str = "[the script ends here]";

/// Plays a JSON script, one of its steps per request.
///
/// ```json
/// {"steps": [
///   {"text": "Counting.",
///    "toolCalls": [{"id": "count", "name": "bash", "arguments": {"command": "wc -l < data.csv"}}]},
///   {"text": "The file has ${calls.count.result.stdout} lines.", "delayMs": 200}
/// ]}
/// ```
///
/// - A step has `text`, `toolCalls` and `delayMs` (a pause before it, at most 600 000), all optional. A step without
///   calls ends the run. When the script runs out the model says so and finishes.
/// - A call has `name`, `arguments` (an object; default `{}`) and `id` (default `call_<step>_<place>`, both from 1).
///   Ids are 1–64 letters, digits, `_` or `-`, unique in the script.
/// - **References.** In `text` and in any string of `arguments`, `${calls.ID.result.PATH}` stands for a piece of an
///   earlier call's result. `PATH` goes through objects by key and lists by index (from 0), separated by dots; without
///   it the whole result is meant. A failed call has `${calls.ID.error.kind}` and `.message` instead. A string that is
///   one reference and nothing else becomes that JSON value, with its type; a reference among other text is written
///   out, strings raw and other values as compact JSON. `$${calls.` writes `${calls.`; any other `${…}` is left to the
///   shell. An unknown reference is an error that names it, its place and the ids that are known.
///
/// It has no memory: the step to play is the number of assistant messages in the request, so one model serves any
/// number of runs at once. In the last step of a run it plays on unmoved.
#[derive(Clone)]
pub struct ScriptedModel {
    script: Arc<Script>,
    name: String,
}

impl ScriptedModel {
    /// Reads a script.
    ///
    /// # Errors
    /// [`ModelError::Script`] with the JSON path of what is wrong.
    pub fn from_json(json: &str) -> Result<Self, ModelError> {
        Ok(Self {
            script: Arc::new(Script::parse(json)?),
            name: "scripted".to_owned(),
        })
    }

    /// Sets the name; it stays labelled as scripted. Default: `scripted`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How many steps the script has.
    pub fn steps(&self) -> usize {
        self.script.steps.len()
    }
}

/// The text and the calls of a step, references filled.
fn play(
    step: &Step,
    index: usize,
    messages: &[Message],
) -> Result<(String, Vec<ToolCall>), ModelError> {
    let results = Results::of(messages);
    let wrong = |(at, problem)| ModelError::Script { at, problem };
    let at = format!("steps[{index}].text");
    let text = match template::fill(&step.text, &results).map_err(|problem| wrong((at, problem)))? {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    };
    let calls = step.calls.iter().enumerate().map(|(place, call)| {
        let at = format!("steps[{index}].toolCalls[{place}].arguments");
        let arguments = template::fill_value(&call.arguments, &results, &at).map_err(wrong)?;
        Ok(ToolCall::new(&call.id, &call.name, arguments.to_string()))
    });
    Ok((text, calls.collect::<Result<_, _>>()?))
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_scripted(&self) -> bool {
        true
    }

    /// As a model that sees: what it is shown changes nothing.
    fn takes_images(&self) -> bool {
        true
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let script = self.script.clone();
        try_stream! {
            let said = |message: &&Message| matches!(message, Message::Assistant { .. });
            let index = request.messages.iter().filter(said).count();
            let Some(step) = script.steps.get(index) else {
                yield ModelEvent::TextDelta(END.to_owned());
                yield ModelEvent::Finished { reason: FinishReason::Stop };
                return;
            };
            // A timer of no time at all fires a millisecond later.
            let pause = async {
                if !step.delay.is_zero() {
                    tokio::time::sleep(step.delay).await;
                }
            };
            if cancel.run_until_cancelled(pause).await.is_none() {
                Err(ModelError::Cancelled)?;
            }
            let (text, calls) = play(step, index, &request.messages)?;
            // Word by word, as a model would: whoever shows it live has something to show.
            for word in text.split_inclusive(' ') {
                yield ModelEvent::TextDelta(word.to_owned());
            }
            let reason = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
            for call in calls {
                yield ModelEvent::ToolCall(call);
            }
            yield ModelEvent::Finished { reason };
        }
        .boxed()
    }
}

impl fmt::Display for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (scripted)", self.name)
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel")
            .field("name", &self.name)
            .field("steps", &self.steps())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolResult;
    use serde_json::json;

    async fn events(
        model: &ScriptedModel,
        messages: Vec<Message>,
    ) -> Vec<Result<ModelEvent, ModelError>> {
        let request = ModelRequest::new("", messages);
        model
            .stream(request, CancellationToken::new())
            .collect()
            .await
    }

    #[tokio::test]
    async fn steps_are_played_in_order_then_it_finishes() {
        let model = ScriptedModel::from_json(
            r#"{"steps":[{"text":"a b","toolCalls":[{"id":"n","name":"add","arguments":{"x":1}}]},
                         {"text":"sum ${calls.n.result}","toolCalls":[{"name":"add","arguments":{"x":"${calls.n.result}"}}]}]}"#,
        )
        .expect("script");
        let first: Vec<_> = events(&model, vec![])
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let call = ToolCall::new("n", "add", r#"{"x":1}"#);
        assert_eq!(
            first,
            [
                ModelEvent::TextDelta("a ".into()),
                ModelEvent::TextDelta("b".into()),
                ModelEvent::ToolCall(call.clone()),
                ModelEvent::Finished {
                    reason: FinishReason::ToolCalls
                },
            ]
        );
        let assistant = Message::Assistant {
            text: "a b".into(),
            calls: vec![call.clone()],
        };
        let history = vec![
            assistant.clone(),
            Message::Tool(ToolResult::ok(&call, json!(7))),
        ];
        let second = events(&model, history).await;
        assert!(
            matches!(&second[2], Ok(ModelEvent::ToolCall(call)) if call.arguments == r#"{"x":7}"#),
            "{second:?}"
        );
        let past = events(&model, vec![assistant.clone(), assistant]).await;
        assert!(
            matches!(&past[0], Ok(ModelEvent::TextDelta(text)) if text == END),
            "{past:?}"
        );
    }

    #[tokio::test]
    async fn an_unknown_reference_ends_the_stream_with_its_place() {
        let model = ScriptedModel::from_json(
            r#"{"steps":[{"toolCalls":[{"name":"a","arguments":{"x":"${calls.q.result}"}}]}]}"#,
        )
        .expect("script");
        let events = events(&model, vec![]).await;
        let error = events[0].as_ref().expect_err("unknown").to_string();
        assert!(
            error.starts_with(
                "script steps[0].toolCalls[0].arguments.x: unknown reference ${calls.q.result}"
            ),
            "{error}"
        );
    }

    #[tokio::test]
    async fn cancelling_ends_a_pause() {
        let model = ScriptedModel::from_json(r#"{"steps":[{"delayMs":60000}]}"#).expect("script");
        let cancel = CancellationToken::new();
        cancel.cancel();
        let events: Vec<_> = model
            .stream(ModelRequest::new("", vec![]), cancel)
            .collect()
            .await;
        assert!(
            matches!(events[..], [Err(ModelError::Cancelled)]),
            "{events:?}"
        );
    }
}
