//! Sandboxes that do not come up, tools that panic, calls that make no sense.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream::BoxStream};
use serde_json::json;
use sixb_agent::{
    Agent, CancellationToken, FailureKind, Model, ModelError, RunStatus, Sixb,
    model::{ModelEvent, ModelRequest, ToolCall},
};

use crate::support::{Fault, follow, of_type, outcome, project, start};

#[tokio::test]
async fn a_boot_failure_fails_the_run_that_needed_the_sandbox_and_names_the_cause() {
    let script = json!({"steps": [{"toolCalls": [{"name": "bash", "arguments": {"command": "true"}}]}, {"text": "fine"}]});
    let outcome = outcome(Fault::Refuses, script).await;
    let RunStatus::Failed { kind, reason } = &outcome.status else {
        panic!("{outcome:?}");
    };
    assert_eq!(*kind, FailureKind::Sandbox);
    assert!(
        reason.contains("user namespaces are blocked") && reason.contains("Ask the operator"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_boot_failure_leaves_other_runs_alone() {
    let script = json!({"steps": [{"toolCalls": [{"name": "wait", "arguments": {"ms": 50}}]}, {"text": "fine"}]});
    let outcome = outcome(Fault::Refuses, script).await;
    assert_eq!(
        (outcome.status, outcome.text.as_str()),
        (RunStatus::Completed, "fine")
    );
    let codes: Vec<_> = outcome
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.code.as_str())
        .collect();
    assert_eq!(codes, ["sandbox_boot_failed"]);
}

#[tokio::test]
async fn a_run_that_needs_no_sandbox_does_not_wait_for_its_boot() {
    let begun = Instant::now();
    let outcome = outcome(Fault::Hangs, json!({"steps": [{"text": "hi"}]})).await;
    assert_eq!(outcome.status, RunStatus::Completed);
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_never_answers_does_not_hold_the_run_for_ever() {
    let outcome = outcome(Fault::Deaf, json!({"steps": [{"text": "hi"}]})).await;
    assert_eq!(outcome.status, RunStatus::Completed);
}

#[tokio::test]
async fn a_boot_that_hangs_ends_with_the_time_of_the_run_that_waits_for_it() {
    let script = json!({"steps": [{"text": "Trying.", "toolCalls": [{"id": "c", "name": "bash", "arguments": {"command": "true"}}]}]});
    let sixb = project(Fault::Hangs, script, |agent| {
        agent.timeout(Duration::from_millis(200))
    });
    let (events, outcome) = follow(start(&sixb).await).await;
    let reason = outcome.status.reason().expect("reason");
    assert!(
        matches!(outcome.status, RunStatus::TimedOut { limit_ms: 200, .. }),
        "{outcome:?}"
    );
    assert!(reason.contains("without a result: bash (c)"), "{reason}");
    assert_eq!(outcome.text, "Trying.");
    assert_eq!(
        of_type(&events, "toolCallFinished")[0]["status"],
        "cancelled"
    );
}

#[tokio::test]
async fn errors_of_one_call_are_results_and_leave_the_others_alone() {
    let script = json!({"steps": [
        {"toolCalls": [
            {"id": "boom", "name": "explode", "arguments": {"ms": 7}},
            {"id": "good", "name": "wait", "arguments": {"ms": 1}},
            {"id": "none", "name": "nope"},
            {"id": "bad", "name": "wait", "arguments": {"ms": "x"}},
        ]},
        {"text": "${calls.boom.error.kind} ${calls.good.result} ${calls.none.error.kind} ${calls.bad.error.kind}"},
    ]});
    let outcome = outcome(Fault::Hangs, script).await;
    assert_eq!(
        (outcome.status, outcome.text.as_str()),
        (RunStatus::Completed, "internal 1 not_found invalid_input")
    );
}

#[tokio::test]
async fn a_script_error_fails_the_run_and_names_its_place() {
    let script = json!({"steps": [{"text": "${calls.x.result}"}]});
    let outcome = outcome(Fault::Hangs, script).await;
    let reason = outcome.status.reason().expect("reason");
    assert!(matches!(
        outcome.status,
        RunStatus::Failed {
            kind: FailureKind::Model,
            ..
        }
    ));
    assert!(
        reason.contains("step 1: script steps[0].text: unknown reference ${calls.x.result}"),
        "{reason}"
    );
}

/// A model that ends without finishing, or panics.
#[derive(Debug)]
struct Broken {
    panics: bool,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken")
    }
}

impl Model for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn stream(
        &self,
        _: ModelRequest,
        _: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        assert!(!self.panics, "out of luck");
        let call = ToolCall::new("c", "wait", "{}");
        futures::stream::iter([
            Ok(ModelEvent::TextDelta("Half".into())),
            Ok(ModelEvent::ToolCall(call)),
        ])
        .boxed()
    }
}

#[tokio::test]
async fn a_broken_model_fails_the_run_and_keeps_what_it_said() {
    for (panics, kind, reason, text) in [
        (true, FailureKind::Internal, "panicked: out of luck", ""),
        (
            false,
            FailureKind::Model,
            "the stream ended before the step did",
            "Half",
        ),
    ] {
        let agent = Agent::builder("a").model(Broken { panics });
        let sixb = Sixb::builder("p")
            .sandboxes(Fault::Hangs)
            .blobs(sixb_artifacts::store::BlobStore::memory())
            .agent(agent)
            .build()
            .expect("project");
        let (events, outcome) = follow(start(&sixb).await).await;
        let RunStatus::Failed {
            kind: found,
            reason: why,
        } = &outcome.status
        else {
            panic!("{outcome:?}");
        };
        assert_eq!(*found, kind);
        assert!(why.contains(reason), "{why}");
        assert_eq!(outcome.text, text);
        for ended in of_type(&events, "toolCallFinished") {
            assert_eq!(ended["status"], "cancelled");
        }
    }
}
