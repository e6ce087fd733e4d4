//! The OpenAI-compatible model against a local server that speaks the recorded wire, good and bad.

mod faults;
mod keys;
mod recorded;
mod retries;
mod server;

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use sixb_agent::{
    CancellationToken, Model, ModelError, OpenAiModel, OpenAiModelBuilder,
    model::{Message, ModelEvent, ModelRequest},
};
use sixb_tools::Credential;

use server::Server;

const KEY: &str = "sk-planted-7f3a9c";

fn builder(server: &Server) -> OpenAiModelBuilder {
    OpenAiModel::builder("test/m")
        .base_url(server.base_url(), Some(Credential::from(KEY.to_owned())))
        .idle_timeout(Duration::from_secs(5))
}

fn model(server: &Server) -> OpenAiModel {
    builder(server).build().expect("model")
}

async fn ask(model: &OpenAiModel) -> Vec<Result<ModelEvent, ModelError>> {
    let request = ModelRequest::new("Be brief.", vec![Message::user("Hi")]);
    let stream = model.stream(request, CancellationToken::new());
    tokio::time::timeout(Duration::from_secs(30), stream.collect())
        .await
        .expect("no request hangs")
}

/// The text, the calls and the end, for comparison.
fn summary(events: &[Result<ModelEvent, ModelError>]) -> (String, Vec<Value>, String) {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut end = String::new();
    for event in events {
        match event {
            Ok(ModelEvent::TextDelta(delta)) => text.push_str(delta),
            Ok(ModelEvent::ToolCall(call)) => {
                calls.push(json!([call.id, call.name, call.arguments_json()]));
            }
            Ok(ModelEvent::Finished { reason }) => end = format!("{reason:?}"),
            Ok(_) => {}
            Err(error) => end = error.to_string(),
        }
    }
    (text, calls, end)
}
