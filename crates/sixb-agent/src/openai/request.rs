//! A request as chat completions want it. Pure.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use sixb_tools::schema;

use crate::model::{ImagePart, Message, ModelRequest, ToolCall};

/// What a model is asked besides the request itself.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    /// As the server calls the model.
    pub(super) model: String,
    pub(super) reasoning_effort: Option<String>,
    pub(super) images: bool,
    /// Fields added to the body as they are.
    pub(super) extra: Map<String, Value>,
}

pub(super) fn body(request: &ModelRequest, options: &Options) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    messages.extend(
        request
            .messages
            .iter()
            .map(|said| message(said, options.images)),
    );
    let mut body = json!({
        "model": options.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(schema::openai).collect();
        // Taken away from a conversation that has calls, tools make some servers refuse the request.
        if request.last_step {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(effort) = &options.reasoning_effort {
        body["reasoning_effort"] = effort.as_str().into();
    }
    for (key, value) in &options.extra {
        body[key] = value.clone();
    }
    body
}

fn message(message: &Message, takes_images: bool) -> Value {
    match message {
        Message::User { text, images } if images.is_empty() => {
            json!({"role": "user", "content": text})
        }
        Message::User { text, images } => {
            let mut parts = vec![json!({"type": "text", "text": text})];
            parts.extend(images.iter().map(|part| match takes_images {
                true => json!({"type": "image_url", "image_url": {"url": data_url(part)}}),
                false => json!({"type": "text", "text": left_out(part)}),
            }));
            json!({"role": "user", "content": parts})
        }
        Message::Assistant { text, calls } => {
            let mut said = json!({"role": "assistant"});
            // An answer without content has to have calls, and the other way round.
            said["content"] = match text.is_empty() && !calls.is_empty() {
                true => Value::Null,
                false => text.as_str().into(),
            };
            if !calls.is_empty() {
                said["tool_calls"] = calls.iter().map(call).collect();
            }
            said
        }
        Message::Tool(result) => json!({
            "role": "tool",
            "tool_call_id": result.call_id,
            "content": result.model_text(),
        }),
    }
}

fn call(call: &ToolCall) -> Value {
    // Servers parse the arguments of earlier calls and refuse a request whose model once wrote broken JSON.
    let arguments = match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(_)) => call.arguments.clone(),
        _ if call.arguments.trim().is_empty() => "{}".to_owned(),
        _ => json!({"malformed": call.arguments}).to_string(),
    };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn data_url(part: &ImagePart) -> String {
    format!(
        "data:{};base64,{}",
        part.media_type,
        STANDARD.encode(&part.data)
    )
}

fn left_out(part: &ImagePart) -> String {
    format!(
        "[an image, {} of {} bytes, which this model does not take]",
        part.media_type,
        part.data.len()
    )
}

/// Whether a model takes images, by what is known of its name. A guess: the builder can say it.
pub(super) fn takes_images(model: &str) -> bool {
    let name = model
        .rsplit('/')
        .next()
        .unwrap_or(model)
        .to_ascii_lowercase();
    const SEEING: &[&str] = &[
        "gpt-4o",
        "gpt-4.1",
        "gpt-4-turbo",
        "gpt-5",
        "o1",
        "o3",
        "o4",
        "claude-3",
        "claude-opus",
        "claude-sonnet",
        "claude-haiku",
        "claude-fable",
        "gemini",
        "gemma-3",
        "pixtral",
        "llama-4",
        "llama-3.2-vision",
        "grok-4",
    ];
    const BLIND: &[&str] = &["o1-mini", "o3-mini", "gpt-5-nano-text", "embedding"];
    let is_one_of = |names: &[&str]| names.iter().any(|known| name.starts_with(known));
    name.contains("vision") || name.contains("-vl") || (is_one_of(SEEING) && !is_one_of(BLIND))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use sixb_tools::{ToolErrorKind, ToolSpec};

    use super::*;
    use crate::model::ToolResult;

    fn options() -> Options {
        Options {
            model: "m".into(),
            ..Options::default()
        }
    }

    #[test]
    fn the_whole_request() {
        let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": false});
        let tools = [ToolSpec::new("add", "Adds.", schema).expect("spec")];
        let call = ToolCall::new("c1", "add", "{\"x\":1}");
        let messages = vec![
            Message::user("Hi"),
            Message::Assistant {
                text: String::new(),
                calls: vec![call.clone(), ToolCall::new("c2", "add", "{\"x\":")],
            },
            Message::Tool(ToolResult::ok(&call, json!({"sum": 2}))),
            Message::Tool(ToolResult::failed(
                &ToolCall::new("c2", "add", ""),
                ToolErrorKind::InvalidInput,
                "no JSON",
            )),
        ];
        let request = ModelRequest::new("Be brief.", messages).tools(Arc::from(tools));
        insta::assert_snapshot!(format!(
            "{:#}",
            body(
                &request,
                &Options {
                    reasoning_effort: Some("high".into()),
                    ..options()
                }
            )
        ));
        let last = body(&request.last_step(true), &options());
        assert_eq!(last["tool_choice"], "none");
    }

    #[test]
    fn images_are_parts_or_a_note() {
        let image = ImagePart::new("image/png", &b"\x89PNG"[..]);
        let request = ModelRequest::new(
            "",
            vec![Message::User {
                text: "Look.".into(),
                images: vec![image],
            }],
        );
        let part = |images| {
            body(
                &request,
                &Options {
                    images,
                    ..options()
                },
            )["messages"][0]["content"][1]
                .clone()
        };
        assert_eq!(
            part(true),
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}})
        );
        assert_eq!(
            part(false),
            json!({"type": "text", "text": "[an image, image/png of 4 bytes, which this model does not take]"})
        );
    }

    #[test]
    fn which_models_see() {
        for (model, sees) in [
            ("openai/gpt-5.5", true),
            ("gpt-4o-mini", true),
            ("anthropic/claude-sonnet-4.5", true),
            ("google/gemini-3-pro", true),
            ("qwen/qwen3-vl-30b", true),
            ("o3-mini", false),
            ("deepseek/deepseek-v3", false),
            ("test/m", false),
        ] {
            assert_eq!(takes_images(model), sees, "{model}");
        }
    }
}
