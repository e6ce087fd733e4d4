//! Runs that go on after their process died.

use std::{fs::OpenOptions, io::Write, path::Path};

use serde_json::{Value, json};
use sixb_agent::{
    RunRequest, RunStatus, Sixb,
    model::Message,
    transcript::{Reader, Replay},
};

use crate::support::{Fault, follow, of_type, project};

fn steps() -> Value {
    json!({"steps": [
        {"text": "One.", "toolCalls": [{"id": "a", "name": "wait", "arguments": {"ms": 1}}, {"id": "b", "name": "wait", "arguments": {"ms": 2}}]},
        {"text": "Two.", "toolCalls": [{"id": "c", "name": "wait", "arguments": {"ms": 3}}]},
        {"text": "Done: ${calls.a.result}"},
    ]})
}

async fn run(sixb: &Sixb, folder: &Path) -> String {
    let request = RunRequest::new("a", "do it").transcripts(folder);
    sixb.run(request)
        .await
        .expect("run")
        .finish()
        .await
        .expect("outcome")
        .run_id
}

fn lines(folder: &Path, run: &str) -> Vec<String> {
    let text = read(&folder.join(run).join("transcript.jsonl"));
    text.lines().map(str::to_owned).collect()
}

#[expect(clippy::disallowed_methods, reason = "tests damage the file")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("transcript")
}

/// Leaves the first `keep` lines and half of the next one, as a killed process might.
#[expect(clippy::disallowed_methods, reason = "tests damage the file")]
fn cut(folder: &Path, run: &str, keep: usize) {
    let lines = lines(folder, run);
    let mut left: String = lines[..keep]
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect();
    if let Some(next) = lines.get(keep) {
        left.push_str(&next[..next.len() / 2]);
    }
    let mut file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(folder.join(run).join("transcript.jsonl"))
        .expect("open");
    file.write_all(left.as_bytes()).expect("write");
}

/// Ids of the calls in a conversation, each with whether it has a result.
fn calls(replay: &Replay) -> Vec<(String, Option<bool>)> {
    let result = |id: &str| {
        replay.messages.iter().find_map(|message| match message {
            Message::Tool(result) if result.call_id == id => Some(result.result.is_ok()),
            _ => None,
        })
    };
    let calls = replay.messages.iter().filter_map(|message| match message {
        Message::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    calls
        .flatten()
        .map(|call| (call.id.clone(), result(&call.id)))
        .collect()
}

#[tokio::test]
async fn a_run_that_was_killed_after_any_record_goes_on_without_repeating_a_call() {
    let sixb = project(Fault::Hangs, steps(), |agent| agent);
    let whole = tempfile::tempdir().expect("folder");
    let id = run(&sixb, whole.path()).await;
    let all = lines(whole.path(), &id);
    // The first two are one write: without them there is nothing to resume.
    for keep in 2..all.len() {
        let folder = tempfile::tempdir().expect("folder");
        copy(whole.path(), folder.path(), &id);
        cut(folder.path(), &id, keep);
        let past = Replay::read(folder.path(), &id).expect("replay");
        assert!(past.torn && past.status.is_none(), "{keep}: {past:?}");
        let with_result: Vec<_> = all[..keep]
            .iter()
            .filter(|line| line.contains("\"tool-result\""))
            .collect();

        let request = RunRequest::resume(&past, folder.path());
        let (events, outcome) = follow(sixb.run(request).await.expect("run")).await;
        assert_eq!(outcome.run_id, id);
        let ended = of_type(&events, "toolCallFinished");
        for line in &with_result {
            let done: Value = serde_json::from_str(line).expect("record");
            assert!(
                ended.iter().all(|event| event["callId"] != done["callId"]),
                "{keep}: {done} again"
            );
        }
        // A script whose text needs the result of an interrupted call cannot go on; a model can.
        let interrupted = past.interrupted.iter().any(|call| call.id == "a");
        assert_eq!(
            outcome.status == RunStatus::Completed,
            !interrupted,
            "{keep}: {:?}",
            outcome.status
        );
        if !interrupted {
            // Also where the answer was the last thing that was written: it stands.
            assert_eq!(outcome.text, "Done: 1", "{keep}");
        }

        let mut reader =
            Reader::open(folder.path().join(&id).join("transcript.jsonl")).expect("open");
        let seqs: Vec<_> = reader
            .by_ref()
            .map(|record| record.expect("whole").seq)
            .collect();
        assert_eq!(
            seqs,
            (0..seqs.len() as u64).collect::<Vec<_>>(),
            "{keep}: no gaps"
        );
        let after = Replay::read(folder.path(), &id).expect("replay");
        assert!(!after.torn && after.interrupted.is_empty());
        let calls = calls(&after);
        assert_eq!(
            calls.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
            ["a", "b", "c"],
            "{keep}"
        );
        assert!(
            calls.iter().all(|(_, result)| result.is_some()),
            "{keep}: {calls:?}"
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "tests copy the file")]
fn copy(from: &Path, to: &Path, run: &str) {
    std::fs::create_dir_all(to.join(run)).expect("folder");
    let name = format!("{run}/transcript.jsonl");
    std::fs::copy(from.join(&name), to.join(&name)).expect("copy");
}

#[tokio::test]
async fn a_cancelled_answer_is_asked_for_again_and_the_model_is_told() {
    let mut script = steps();
    script["steps"][2]["delayMs"] = json!(60_000);
    let sixb = project(Fault::Hangs, script, |agent| agent);
    let folder = tempfile::tempdir().expect("folder");
    let request = RunRequest::new("a", "do it")
        .transcripts(folder.path())
        .timeout(std::time::Duration::from_millis(300));
    let outcome = sixb
        .run(request)
        .await
        .expect("run")
        .finish()
        .await
        .expect("outcome");
    assert!(
        matches!(outcome.status, RunStatus::TimedOut { .. }),
        "{outcome:?}"
    );

    let sixb = project(Fault::Hangs, steps(), |agent| agent);
    let past = Replay::read(folder.path(), &outcome.run_id).expect("replay");
    assert_eq!((past.status.as_deref(), past.steps), (Some("timed-out"), 3));
    let outcome = sixb
        .run(RunRequest::resume(&past, folder.path()))
        .await
        .expect("run")
        .finish()
        .await
        .expect("outcome");
    assert_eq!((outcome.text.as_str(), outcome.steps), ("Done: 1", 4));
    let after = Replay::read(folder.path(), &outcome.run_id).expect("replay");
    let told = after.messages.iter().any(|message| matches!(message, Message::User { text, .. } if text.contains("files that were not published are gone")));
    assert!(told && after.completed(), "{after:?}");
}

#[tokio::test]
async fn what_cannot_be_resumed_is_said() {
    let sixb = project(Fault::Hangs, steps(), |agent| agent);
    let folder = tempfile::tempdir().expect("folder");
    let id = run(&sixb, folder.path()).await;
    let past = Replay::read(folder.path(), &id).expect("replay");
    assert!(past.completed());
    let refused = |request: RunRequest| {
        let sixb = &sixb;
        async move { sixb.run(request).await.expect_err("refused").to_string() }
    };
    let error = refused(RunRequest::resume(&past, folder.path())).await;
    assert!(error.contains("it is completed"), "{error}");
    let error = refused(RunRequest::resume(&past, folder.path().join("nowhere"))).await;
    assert!(error.contains("cannot open"), "{error}");
    for id in ["", "../x", ".", "a/b"] {
        assert!(
            Replay::read(folder.path(), id)
                .expect_err(id)
                .to_string()
                .contains("no run id")
        );
    }

    let script = json!({"steps": [{"toolCalls": [{"name": "wait", "arguments": {"ms": 60_000}}]}]});
    let sixb = project(Fault::Hangs, script, |agent| agent);
    let running = sixb
        .run(RunRequest::new("a", "do it").transcripts(folder.path()))
        .await
        .expect("run");
    let past = Replay::read(folder.path(), running.id()).expect("replay");
    let error = sixb
        .run(RunRequest::resume(&past, folder.path()))
        .await
        .expect_err("busy")
        .to_string();
    assert!(error.contains("goes on in another process"), "{error}");
    sixb.close().await;
}
