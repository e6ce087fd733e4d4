//! Calls side by side, steps, time, cancellation, slow and absent readers.

use std::time::{Duration, Instant};

use futures::StreamExt;
use serde_json::{Value, json};
use sixb_agent::{FailureKind, RunEvent, RunRequest, RunStatus};

use crate::support::{Fault, follow, of_type, project, start};

fn waits(ms: &[u64]) -> Value {
    let calls: Vec<_> = ms
        .iter()
        .map(|ms| json!({"name": "wait", "arguments": {"ms": ms}}))
        .collect();
    json!({"toolCalls": calls})
}

#[tokio::test]
async fn calls_of_one_step_overlap_and_their_results_keep_call_order() {
    let last = json!({"text": "${calls.call_1_1.result} ${calls.call_1_2.result} ${calls.call_1_3.result}"});
    let sixb = project(
        Fault::Hangs,
        json!({"steps": [waits(&[300, 200, 100]), last]}),
        |agent| agent,
    );
    let (events, outcome) = follow(start(&sixb).await).await;
    assert_eq!(outcome.text, "300 200 100");
    let ended: Vec<_> = of_type(&events, "toolCallFinished")
        .iter()
        .map(|event| event["callId"].clone())
        .collect();
    assert_eq!(
        ended,
        ["call_1_3", "call_1_2", "call_1_1"],
        "one after the other they would end in call order"
    );
}

#[tokio::test]
async fn a_step_of_many_calls_is_bounded() {
    let sixb = project(
        Fault::Hangs,
        json!({"steps": [waits(&[10; 70]), {"text": "done"}]}),
        |agent| agent,
    );
    let (events, outcome) = follow(start(&sixb).await).await;
    assert_eq!(outcome.text, "done");
    let ended = of_type(&events, "toolCallFinished");
    assert_eq!(ended.len(), 70);
    let refused = ended
        .iter()
        .filter(|event| event["error"]["kind"] == "limit_exceeded")
        .count();
    assert_eq!(refused, 6);
}

#[tokio::test]
async fn the_last_step_has_no_tools() {
    let script = json!({"steps": [waits(&[1]), waits(&[1]), {"text": "never"}]});
    let sixb = project(Fault::Hangs, script.clone(), |agent| agent.max_steps(2));
    let (events, outcome) = follow(start(&sixb).await).await;
    assert!(
        matches!(
            outcome.status,
            RunStatus::Failed {
                kind: FailureKind::StepLimit,
                ..
            }
        ),
        "{outcome:?}"
    );
    assert_eq!(outcome.steps, 2);
    let ended: Vec<_> = of_type(&events, "toolCallFinished")
        .iter()
        .map(|event| event["status"].clone())
        .collect();
    assert_eq!(ended, ["ok", "cancelled"]);

    let sixb = project(Fault::Hangs, script, |agent| agent.max_steps(3));
    let (_, outcome) = follow(start(&sixb).await).await;
    assert_eq!(
        (outcome.status, outcome.text.as_str()),
        (RunStatus::Completed, "never")
    );
}

#[tokio::test]
async fn the_time_limit_keeps_what_there_is() {
    let script = json!({"steps": [{"text": "So far."}, {"text": "late", "delayMs": 60_000}]});
    let mut script = script;
    script["steps"][0]["toolCalls"] = json!([{"name": "wait", "arguments": {"ms": 1}}]);
    let sixb = project(Fault::Hangs, script, |agent| agent);
    let request = RunRequest::new("a", "x").timeout(Duration::from_millis(200));
    let outcome = sixb
        .run(request)
        .await
        .expect("run")
        .finish()
        .await
        .expect("outcome");
    assert!(
        matches!(outcome.status, RunStatus::TimedOut { limit_ms: 200, .. }),
        "{outcome:?}"
    );
    assert_eq!(outcome.text, "So far.");
    assert!(
        outcome.status.to_string().contains("cut in step 2"),
        "{}",
        outcome.status
    );
}

#[tokio::test]
async fn cancelling_in_the_middle_of_a_tool_stores_the_call_as_cancelled() {
    let sixb = project(
        Fault::Hangs,
        json!({"steps": [waits(&[1, 60_000]), {"text": "never"}]}),
        |agent| agent,
    );
    let mut run = start(&sixb).await;
    let begun = Instant::now();
    let mut statuses = Vec::new();
    let mut outcome = None;
    while let Some(event) = run.next().await {
        match event {
            RunEvent::ToolCallFinished {
                call_id, status, ..
            } => {
                statuses.push((call_id, serde_json::to_value(status).expect("json")));
                run.cancel();
            }
            RunEvent::Finished { outcome: last } => outcome = Some(last),
            _ => {}
        }
    }
    assert_eq!(
        statuses,
        [
            ("call_1_1".to_owned(), json!("ok")),
            ("call_1_2".to_owned(), json!("cancelled"))
        ]
    );
    let status = outcome.expect("outcome").status;
    assert_eq!(
        status,
        RunStatus::Cancelled {
            cut: "cancelled in step 1; without a result: wait (call_1_2)".into()
        }
    );
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_slow_reader_slows_the_run_down_but_not_its_end() {
    let text = "word ".repeat(2_000);
    let sixb = project(Fault::Hangs, json!({"steps": [{"text": text}]}), |agent| {
        agent
    });
    let (events, outcome) = follow(start(&sixb).await).await;
    assert_eq!(
        of_type(&events, "textDelta").len(),
        2_000,
        "nothing is lost"
    );
    assert_eq!(outcome.text, text);

    let request = RunRequest::new("a", "x").timeout(Duration::from_millis(100));
    let run = sixb.run(request).await.expect("run");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let outcome = run.finish().await.expect("outcome");
    assert!(
        matches!(outcome.status, RunStatus::TimedOut { .. }),
        "{:?}",
        outcome.status
    );
}

#[tokio::test]
async fn a_dropped_run_ends_and_close_waits_for_it() {
    let sixb = project(
        Fault::Hangs,
        json!({"steps": [waits(&[60_000])]}),
        |agent| agent,
    );
    let begun = Instant::now();
    drop(start(&sixb).await);
    let kept = start(&sixb).await;
    sixb.close().await;
    let outcome = kept.finish().await.expect("outcome");
    assert!(matches!(outcome.status, RunStatus::Cancelled { .. }));
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn many_runs_at_once_all_complete() {
    let sixb = project(
        Fault::Hangs,
        json!({"steps": [waits(&[5, 5]), {"text": "done"}]}),
        |agent| agent,
    );
    let runs =
        futures::future::join_all((0..200).map(|_| async { start(&sixb).await.finish().await }))
            .await;
    assert!(
        runs.iter()
            .flatten()
            .all(|outcome| outcome.completed() && outcome.text == "done")
    );
    assert_eq!(runs.len(), 200);
}
