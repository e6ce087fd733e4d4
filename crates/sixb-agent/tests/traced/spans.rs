//! Spans carry the attribute names of OpenTelemetry's conventions for generative AI, and nothing that was said.

use serde_json::json;
use sixb_agent::RunRequest;

use crate::{
    recorder::Recorder,
    support::{Fault, project},
};

#[tokio::test]
async fn a_run_its_requests_and_its_calls_are_spans() {
    let _alone = crate::LISTENING.lock().await;
    let recorder = Recorder::default();
    let lines = recorder.lines();
    let _tracing = tracing::subscriber::set_default(recorder);
    let script = json!({"steps": [
        {"text": "Private one.", "toolCalls": [{"id": "w", "name": "wait", "arguments": {"ms": 1}}, {"id": "n", "name": "nope"}]},
        {"text": "Private two."}]});
    let sixb = project(Fault::Hangs, script, |agent| agent);
    let request = RunRequest::new("a", "Private task.").thread("t1");
    sixb.run(request)
        .await
        .expect("run")
        .finish()
        .await
        .expect("outcome");
    let lines = lines.lock().expect("lines").clone();
    let spans = |name: &str| {
        lines
            .iter()
            .filter(|line| line.starts_with(&format!("span {name}")))
            .cloned()
            .collect::<Vec<_>>()
    };
    for (name, count, parts) in [
        (
            "invoke_agent",
            1,
            &[
                "otel.name=\"invoke_agent a\"",
                "gen_ai.operation.name=\"invoke_agent\"",
                "gen_ai.agent.id=\"a\"",
                "gen_ai.conversation.id=\"t1\"",
                "gen_ai.usage.output_tokens=0",
            ][..],
        ),
        (
            "chat",
            2,
            &[
                "gen_ai.operation.name=\"chat\"",
                "gen_ai.request.model=\"scripted\"",
                "gen_ai.response.finish_reasons=",
            ],
        ),
        (
            "execute_tool",
            2,
            &[
                "gen_ai.operation.name=\"execute_tool\"",
                "gen_ai.tool.name=",
                "gen_ai.tool.call.id=",
                "gen_ai.tool.type=\"function\"",
            ],
        ),
    ] {
        let found = spans(name);
        assert_eq!(found.len(), count, "{name}: {lines:#?}");
        for part in parts {
            assert!(
                found.iter().all(|line| line.contains(part)),
                "{part} is missing: {found:#?}"
            );
        }
    }
    assert!(
        spans("execute_tool")[1].contains("error.type=\"not_found\""),
        "{:?}",
        spans("execute_tool")
    );
    assert!(
        !lines.iter().any(|line| line.contains("Private")),
        "{lines:#?}"
    );
}
