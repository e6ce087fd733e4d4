//! Runs that use their sandbox: context, variables, live output, cancellation.
#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at the host's side"
)]

use std::time::{Duration, Instant};

use futures::StreamExt;
use serde_json::{Value, json};
use sixb_agent::{RunEvent, RunRequest, RunStatus};
use sixb_sandbox::SandboxFactory;
use sixb_sandbox_local::LocalSandboxFactory;

use crate::agent_lab::{AgentLab, bash, play};

#[tokio::test]
async fn results_flow_from_call_to_call() {
    let (_lab, outcome) = play(json!([
        bash("make", "seq 1 1000 > n.txt; wc -l < n.txt"),
        {"toolCalls": [{"id": "page", "name": "read", "arguments": {"path": "n.txt", "offset": 999}}]},
        {"text": "${calls.make.result.exitCode} ${calls.make.result.stdout}${calls.page.result.content}"},
    ]))
    .await;
    assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
    assert_eq!(outcome.text, "0 1000\n999\n1000\n");
}

#[tokio::test]
async fn context_files_and_variables_are_there_before_the_first_call() {
    let lab = AgentLab::new(
        json!([
            bash("env", "env | grep ^SIXB_ | sort; test -d $SIXB_OUTPUT_DIR && test -d $SIXB_OUTPUT_STAGING_DIR && echo dirs"),
            {"toolCalls": [
                {"id": "run", "name": "bash", "arguments": {"command": "cat $SIXB_RUN_CONTEXT"}},
                {"id": "files", "name": "bash", "arguments": {"command": "cat $SIXB_ATTACHMENTS"}},
            ]},
            {"text": "${calls.env.result.stdout}${calls.run.result.stdout}${calls.files.result.stdout}"},
        ]),
        |agent| agent,
    );
    let outcome = lab.play(lab.request().thread("t7")).await;
    let text = &outcome.text;
    for expect in [
        "SIXB_AGENT_ID=a\n",
        "SIXB_CONTEXT_DIR=/workspace/.sixb/agent\n",
        "SIXB_OUTPUT_DIR=/workspace/.sixb/agent/outputs/published\n",
        "SIXB_PROJECT_ID=acme\n",
        "SIXB_THREAD_ID=t7\n",
        "dirs\n",
        "\"outputStagingDir\": \"/workspace/.sixb/agent/outputs/staging\"",
        "\n[]\n",
    ] {
        assert!(text.contains(expect), "{expect:?} in {text}");
    }
    assert!(
        text.contains(&format!("\"runId\": \"{}\"", outcome.run_id)),
        "{text}"
    );
    assert!(
        !text.contains("SIXB_API_BASE_URL") && !text.contains("apiBaseUrl"),
        "no gateway: {text}"
    );
}

#[tokio::test]
async fn the_sandbox_boots_while_the_model_is_asked() {
    let mut first = bash("c", "true");
    first["delayMs"] = json!(2_000);
    let lab = AgentLab::new(json!([first, {"text": "done"}]), |agent| agent);
    let events: Vec<RunEvent> = lab.start(lab.request()).await.collect().await;
    let order: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            RunEvent::State { state } => serde_json::to_value(state).expect("json")["name"]
                .as_str()
                .map(str::to_owned),
            RunEvent::ToolCallStarted { .. } => Some("call".to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(
        order,
        [
            "started",
            "booting",
            "step",
            "sandbox-ready",
            "call",
            "step",
            "collecting",
            "finished"
        ]
    );
}

/// Each of four commands waits for all the others: one after the other the first would wait for ever.
#[tokio::test]
async fn commands_of_one_step_run_side_by_side() {
    let command = |n| {
        format!("touch here{n}; until test $(ls here* | wc -l) = 4; do sleep 0.05; done; echo {n}")
    };
    let calls: Vec<_> = (0..4)
        .map(|n| json!({"id": format!("c{n}"), "name": "bash", "arguments": {"command": command(n), "timeoutMs": 50_000}}))
        .collect();
    let (_lab, outcome) = play(json!([
        {"toolCalls": calls},
        {"text": "${calls.c0.result.stdout}${calls.c1.result.stdout}${calls.c2.result.stdout}${calls.c3.result.stdout}"},
    ]))
    .await;
    assert_eq!(outcome.text, "0\n1\n2\n3\n");
}

#[tokio::test]
async fn cancelling_in_the_middle_of_a_command_keeps_its_output_and_the_files() {
    let lab = AgentLab::new(
        json!([
            {"text": "On it.", "toolCalls": [
                {"id": "c", "name": "bash", "arguments": {"command": "echo draft > $SIXB_OUTPUT_DIR/draft.txt; echo begun; sleep 60"}},
            ]},
            {"text": "never"},
        ]),
        |agent| agent,
    );
    let mut run = lab.start(lab.request()).await;
    let mut seen = Vec::new();
    let mut outcome = None;
    let mut cancelled_at = Instant::now();
    while let Some(event) = run.next().await {
        match &event {
            RunEvent::ToolCallOutput { text, .. } if text.contains("begun") => {
                cancelled_at = Instant::now();
                run.cancel();
            }
            RunEvent::Finished { outcome: last } => outcome = Some(last.clone()),
            _ => {}
        }
        seen.push(serde_json::to_value(&event).expect("json"));
    }
    assert!(
        cancelled_at.elapsed() < Duration::from_secs(10),
        "{:?}",
        cancelled_at.elapsed()
    );
    let outcome = outcome.expect("outcome");
    assert!(
        matches!(outcome.status, RunStatus::Cancelled { .. }),
        "{outcome:?}"
    );
    assert_eq!(outcome.text, "On it.");
    assert_eq!(outcome.files.len(), 1, "{outcome:?}");
    let ended: Vec<&Value> = seen
        .iter()
        .filter(|event| event["type"] == "toolCallFinished")
        .collect();
    assert_eq!(ended.len(), 1);
    assert!(
        ended[0].to_string().contains("begun") || ended[0]["status"] == "cancelled",
        "{}",
        ended[0]
    );
}

#[tokio::test]
async fn the_time_limit_ends_a_command() {
    let lab = AgentLab::new(json!([bash("c", "sleep 60"), {"text": "never"}]), |agent| {
        agent
    });
    let begun = Instant::now();
    let outcome = lab
        .play(lab.request().timeout(Duration::from_secs(1)))
        .await;
    assert!(
        matches!(
            outcome.status,
            RunStatus::TimedOut {
                limit_ms: 1_000,
                ..
            }
        ),
        "{outcome:?}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn nothing_is_left_when_the_stream_has_ended() {
    let lab = AgentLab::new(
        json!([bash("c", "sleep 300 & echo on"), {"text": "done"}]),
        |agent| agent,
    );
    let run = lab.start(lab.request()).await;
    let id = run.id().to_owned();
    let events: Vec<RunEvent> = run.collect().await;
    let sandbox =
        events
            .iter()
            .find_map(|event| match serde_json::to_value(event).expect("json") {
                event if event["state"]["name"] == "sandbox-ready" => {
                    event["state"]["id"].as_str().map(str::to_owned)
                }
                _ => None,
            });
    let sandbox = sandbox.expect("the sandbox was up");
    let left = LocalSandboxFactory::default().list().await.expect("list");
    assert!(left.iter().all(|record| record.id != sandbox), "{left:?}");
    assert!(lab.out.path().join(id).join("transcript.jsonl").is_file());
}

#[tokio::test]
async fn a_run_without_calls_needs_no_sandbox_and_collects_nothing() {
    let lab = AgentLab::new(json!([{"text": "hi"}]), |agent| agent);
    let outcome = lab
        .play(RunRequest::new("a", "hi").outputs(lab.out.path()))
        .await;
    assert_eq!(
        (outcome.status.as_str(), outcome.text.as_str()),
        ("completed", "hi")
    );
    assert!(
        std::fs::read_dir(lab.out.path())
            .expect("folder")
            .next()
            .is_none(),
        "no folder is made for nothing"
    );
}
