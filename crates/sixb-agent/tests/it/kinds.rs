//! Conversations and workflow tasks: what they add to a run.

use std::sync::{Arc, Mutex};

use futures::{StreamExt, stream::BoxStream};
use serde_json::{Value, json};
use sixb_agent::{
    Agent, CancellationToken, FailureKind, Model, ModelError, Outcome, RunKind, RunRequest,
    RunStatus, ScriptedModel, Sixb,
    model::{Message, ModelEvent, ModelRequest},
    transcript,
};

use crate::support::{Fault, wait};

/// Plays a script and keeps what it was asked.
#[derive(Debug, Clone)]
struct Listening {
    inner: ScriptedModel,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl std::fmt::Display for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Model for Listening {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        self.asked.lock().expect("asked").push(request.clone());
        self.inner.stream(request, cancel).boxed()
    }
}

fn project(steps: Value, max_steps: u32) -> (Sixb, Listening) {
    let inner = ScriptedModel::from_json(&json!({"steps": steps}).to_string()).expect("script");
    let model = Listening {
        inner,
        asked: Arc::default(),
    };
    let agent = Agent::builder("a")
        .model(model.clone())
        .tool(wait())
        .max_steps(max_steps);
    let sixb = Sixb::builder("p")
        .sandboxes(Fault::Hangs)
        .blobs(sixb_artifacts::store::BlobStore::memory())
        .agent(agent)
        .build()
        .expect("project");
    (sixb, model)
}

async fn play(sixb: &Sixb, request: RunRequest) -> Outcome {
    sixb.run(request)
        .await
        .expect("run")
        .finish()
        .await
        .expect("outcome")
}

#[tokio::test]
async fn a_follow_up_turn_knows_what_was_said() {
    let (sixb, model) = project(
        json!([
            {"text": "One.", "toolCalls": [{"id": "w", "name": "wait", "arguments": {"ms": 1}}]},
            {"text": "It was ${calls.w.result}."},
            {"text": "As I said: ${calls.w.result}."},
        ]),
        25,
    );
    let folder = tempfile::tempdir().expect("folder");
    let mut runs = Vec::new();
    for (task, answer) in [("How long?", "It was 1."), ("Again?", "As I said: 1.")] {
        let history = transcript::thread(folder.path(), "t1", None).expect("history");
        let request = RunRequest::conversation("a", task, "t1", history).transcripts(folder.path());
        let outcome = play(&sixb, request).await;
        assert_eq!(outcome.text, answer);
        runs.push(outcome.run_id);
    }
    let asked = model.asked.lock().expect("asked");
    let last = asked.last().expect("asked");
    assert!(
        last.system.contains("Earlier turns of this conversation"),
        "{}",
        last.system
    );
    assert!(!asked[0].system.contains("Earlier turns"));
    let said: Vec<_> = last
        .messages
        .iter()
        .map(|message| match message {
            Message::User { text, .. } => format!("user {text}"),
            Message::Assistant { text, calls } => format!("assistant {text} {}", calls.len()),
            Message::Tool(result) => format!("tool {}", result.to_json()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        said,
        [
            "user How long?",
            "assistant One. 1",
            "tool 1",
            "assistant It was 1. 0",
            "user Again?"
        ]
    );
    assert_eq!(transcript::runs(folder.path()).expect("runs"), runs);
    let other = transcript::thread(folder.path(), "t2", None).expect("other");
    assert_eq!(other.messages, []);
    let first = transcript::thread(folder.path(), "t1", Some(&runs[1])).expect("first");
    assert_eq!(first.messages.len(), 4, "what was said before a run");
    assert_eq!(
        transcript::Replay::read(folder.path(), &runs[1])
            .expect("replay")
            .kind,
        RunKind::Conversation
    );
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"], "additionalProperties": false})
}

fn task() -> RunRequest {
    RunRequest::workflow_task("a", "Add the numbers.", json!({"numbers": [1, 2]}))
        .output_schema(schema())
}

#[tokio::test]
async fn a_workflow_task_gives_output_that_fits() {
    let (sixb, model) = project(json!([{"text": "```json\n{\"total\": 3}\n```"}]), 25);
    let outcome = play(&sixb, task()).await;
    assert_eq!(
        (outcome.status.clone(), outcome.output.clone()),
        (RunStatus::Completed, Some(json!({"total": 3})))
    );
    let asked = model.asked.lock().expect("asked");
    assert_eq!(
        asked[0].messages,
        [Message::user(
            "Add the numbers.\n\n<input>\n{\n  \"numbers\": [\n    1,\n    2\n  ]\n}\n</input>"
        )]
    );
    assert!(
        asked[0].system.contains("\"total\"") && asked[0].system.contains("without a person"),
        "{}",
        asked[0].system
    );
}

#[tokio::test]
async fn output_that_does_not_fit_is_told_and_corrected() {
    let steps =
        json!([{"text": "It is 3."}, {"text": "{\"total\": \"3\"}"}, {"text": "{\"total\": 3}"}]);
    let (sixb, model) = project(steps.clone(), 3);
    let outcome = play(&sixb, task()).await;
    assert_eq!(
        (outcome.status.clone(), outcome.output, outcome.steps),
        (RunStatus::Completed, Some(json!({"total": 3})), 3)
    );
    let told: Vec<_> = model
        .asked
        .lock()
        .expect("asked")
        .iter()
        .filter_map(|asked| {
            match asked
                .messages
                .iter()
                .rev()
                .nth(usize::from(asked.last_step))
            {
                Some(Message::User { text, .. }) if text.starts_with("[runtime]") => {
                    Some(text.clone())
                }
                _ => None,
            }
        })
        .collect();
    assert!(
        told[0].contains("it is not one JSON value") && told[1].contains("at `/total`"),
        "{told:?}"
    );

    let (sixb, _) = project(steps, 2);
    let outcome = play(&sixb, task()).await;
    let RunStatus::Failed { kind, reason } = &outcome.status else {
        panic!("{outcome:?}")
    };
    assert_eq!(*kind, FailureKind::Output);
    assert!(
        reason.contains("at `/total`") && outcome.output.is_none(),
        "{reason}"
    );
    assert_eq!(outcome.text, "{\"total\": \"3\"}", "what there is is kept");
}

#[tokio::test]
async fn a_schema_that_is_none_is_refused_at_once() {
    let (sixb, _) = project(json!([{"text": "x"}]), 2);
    let error = sixb
        .run(task().output_schema(json!({"type": "objekt"})))
        .await
        .expect_err("refused");
    assert!(
        error
            .to_string()
            .starts_with("the output schema cannot be used: "),
        "{error}"
    );
}
