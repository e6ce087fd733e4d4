//! Tracing spans of a run, with the attribute names of OpenTelemetry's conventions for generative AI.
//!
//! `invoke_agent` around a run, `chat` around each request to the model, `execute_tool` around each call. What people and
//! models say is in none of them. `otel.name` and `otel.kind` are what a tracing-to-OpenTelemetry layer looks for.

use sixb_tools::RunKind;
use tracing::{Span, field::Empty, info_span};

use crate::model::{FinishReason, ModelError, ModelLabel, ToolCall, Usage};

/// Whose run it is.
pub(crate) struct RunAttributes<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) project_id: &'a str,
    pub(crate) agent_id: &'a str,
    pub(crate) agent_name: &'a str,
    pub(crate) thread_id: Option<&'a str>,
    pub(crate) kind: RunKind,
    pub(crate) model: &'a ModelLabel,
}

pub(crate) fn run_span(run: &RunAttributes<'_>) -> Span {
    info_span!(
        "invoke_agent",
        otel.name = format!("invoke_agent {}", run.agent_name),
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.provider.name = provider(run.model),
        gen_ai.agent.id = run.agent_id,
        gen_ai.agent.name = run.agent_name,
        gen_ai.conversation.id = run.thread_id,
        gen_ai.request.model = run.model.name,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.r#type = Empty,
        sixb.run.id = run.run_id,
        sixb.run.kind = ?run.kind,
        sixb.project.id = run.project_id,
    )
}

pub(crate) fn chat_span(model: &ModelLabel, step: u32) -> Span {
    info_span!(
        "chat",
        otel.name = format!("chat {}", model.name),
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider(model),
        gen_ai.request.model = model.name,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        error.r#type = Empty,
        sixb.step = step,
    )
}

pub(crate) fn tool_span(call: &ToolCall) -> Span {
    info_span!(
        "execute_tool",
        otel.name = format!("execute_tool {}", call.name),
        otel.kind = "internal",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name,
        gen_ai.tool.r#type = "function",
        gen_ai.tool.call.id = call.id,
        error.r#type = Empty,
    )
}

/// The name in front of the model: `openai` of `openai/gpt-5.5`.
fn provider(model: &ModelLabel) -> &str {
    match model.name.split_once('/') {
        _ if model.scripted => "scripted",
        Some((vendor, _)) => vendor,
        None => "openai_compatible",
    }
}

pub(crate) fn used(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
}

pub(crate) fn finished(span: &Span, reason: FinishReason) {
    let reason = match reason {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::ContentFilter => "content_filter",
    };
    span.record("gen_ai.response.finish_reasons", reason);
}

/// What failed, in the span that is entered.
pub(crate) fn failed(kind: &str) {
    failed_in(&Span::current(), kind);
}

pub(crate) fn failed_in(span: &Span, kind: &str) {
    span.record("error.type", kind);
}

/// A few words that do not change with the text of an error.
pub(crate) fn model_error(error: &ModelError) -> &'static str {
    match error {
        ModelError::Refused { .. } => "refused",
        ModelError::Unavailable { .. } => "unavailable",
        ModelError::Malformed { .. } => "malformed",
        ModelError::TooLong { .. } => "too_long",
        ModelError::Script { .. } => "script",
        ModelError::Cancelled => "cancelled",
    }
}
