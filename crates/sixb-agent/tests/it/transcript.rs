//! What a transcript holds.

use serde_json::{Value, json};
use sixb_agent::{
    RunRequest,
    transcript::{Reader, RecordBody},
};

use crate::support::{Fault, project};

#[tokio::test]
async fn a_transcript_tells_the_whole_run_and_is_labelled() {
    let script = json!({"steps": [
        {"text": "One.", "toolCalls": [{"id": "w", "name": "wait", "arguments": {"ms": 1}}, {"id": "n", "name": "nope"}]},
        {"text": "Two."},
    ]});
    let sixb = project(Fault::Hangs, script, |agent| agent);
    let folder = tempfile::tempdir().expect("folder");
    let request = RunRequest::new("a", "do it")
        .transcripts(folder.path())
        .thread("t1");
    let outcome = sixb
        .run(request)
        .await
        .expect("run")
        .finish()
        .await
        .expect("outcome");
    let path = outcome.transcript.expect("transcript");
    assert_eq!(
        path,
        folder.path().join(&outcome.run_id).join("transcript.jsonl")
    );

    let mut reader = Reader::open(&path).expect("open");
    let records: Vec<_> = reader.by_ref().collect::<Result<_, _>>().expect("records");
    assert!(!reader.torn());
    let lines: Vec<Value> = records
        .iter()
        .map(|record| serde_json::to_value(record).expect("json"))
        .collect();
    let shape: Vec<_> = lines
        .iter()
        .map(|line| line["type"].as_str().expect("type"))
        .collect();
    assert_eq!(
        shape,
        [
            "state",
            "user",
            "state",
            "state",
            "assistant",
            "tool-call",
            "tool-call",
            "tool-result",
            "tool-result",
            "state",
            "assistant",
            "state"
        ]
    );
    assert_eq!(
        lines[0]["state"]["model"],
        json!({"name": "scripted", "scripted": true})
    );
    assert_eq!(lines[0]["state"]["threadId"], "t1");
    assert_eq!(lines[4]["scripted"], true);
    let results: Vec<_> = records
        .iter()
        .filter_map(|record| match &record.body {
            RecordBody::ToolResult {
                call_id,
                result,
                error,
                ..
            } => Some((
                call_id.as_str(),
                result.clone(),
                error.as_ref().map(|failure| failure.kind.as_str()),
            )),
            _ => None,
        })
        .collect();
    assert!(
        results.contains(&("w", Some(json!(1)), None)),
        "{results:?}"
    );
    assert!(
        results.contains(&("n", None, Some("not_found"))),
        "{results:?}"
    );
    let seqs: Vec<_> = records.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (0..lines.len() as u64).collect::<Vec<_>>());
    assert!(records.iter().all(|record| record.run_id == outcome.run_id));
}
