use serde_json::json;

use super::*;
use crate::{
    model::Usage,
    outputs::place::Place,
    run::{CallStatus, Diagnostic},
    transcript::{RecordBody, Writer},
};

fn bodies() -> Vec<RecordBody> {
    vec![
        RecordBody::User {
            text: "line\nbreak".into(),
        },
        RecordBody::Assistant {
            step: 1,
            text: String::new(),
            partial: true,
            scripted: true,
        },
        RecordBody::ToolCall {
            step: 1,
            call_id: "c".into(),
            name: "bash".into(),
            arguments: json!({"n": 1.50, "big": 12345678901234567890_u64}),
        },
        RecordBody::ToolResult {
            step: 1,
            call_id: "c".into(),
            name: "bash".into(),
            status: CallStatus::Ok,
            result: Some(json!({"exitCode": 0})),
            error: None,
        },
        RecordBody::Usage {
            step: 1,
            usage: Usage::new(3, 4),
        },
        RecordBody::Diagnostic {
            diagnostic: Diagnostic::warning("output", "output_symlink", "x").path("a"),
        },
    ]
}

fn place(folder: &Path) -> Place {
    Place::find(folder, None).expect("place")
}

fn written(folder: &Path) -> PathBuf {
    let mut writer = Writer::create(&place(folder), folder, "run_1").expect("create");
    for body in bodies() {
        writer.append(body).expect("append");
    }
    writer.sync().expect("sync");
    writer.path().to_owned()
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().expect("folder");
    let mut reader = Reader::open(written(folder.path())).expect("open");
    let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert!(!reader.torn());
    assert_eq!(
        records
            .iter()
            .map(|record| record.body.clone())
            .collect::<Vec<_>>(),
        bodies()
    );
    assert_eq!(
        records.iter().map(|record| record.seq).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5]
    );
    assert!(
        records
            .iter()
            .all(|record| record.run_id == "run_1" && record.at.ends_with('Z'))
    );
}

#[test]
fn a_torn_last_line_is_told_and_costs_only_itself() {
    let folder = tempfile::tempdir().expect("folder");
    let path = written(folder.path());
    let whole = std::fs::read(&path).expect("read");
    let last = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .expect("lines")
        + 1;
    for len in last + 1..whole.len() {
        std::fs::write(&path, &whole[..len]).expect("cut");
        let mut reader = Reader::open(&path).expect("open");
        assert_eq!(
            reader.by_ref().map(Result::unwrap).count(),
            bodies().len() - 1,
            "cut at {len}"
        );
        assert!(reader.torn(), "cut at {len}");
    }
}

#[test]
fn damage_in_the_middle_is_an_error_that_names_the_line() {
    let folder = tempfile::tempdir().expect("folder");
    let path = written(folder.path());
    let text = std::fs::read_to_string(&path).expect("read").replacen(
        "\"type\":\"assistant\"",
        "\"type\":\"??\"",
        1,
    );
    std::fs::write(&path, text).expect("write");
    let results: Vec<_> = Reader::open(&path).expect("open").collect();
    assert_eq!(results.len(), 2, "it stops there");
    let error = results[1].as_ref().expect_err("damaged").to_string();
    assert!(error.contains("line 2 is no record"), "{error}");
}

#[test]
fn a_transcript_is_never_overwritten() {
    let folder = tempfile::tempdir().expect("folder");
    written(folder.path());
    assert!(Writer::create(&place(folder.path()), folder.path(), "run_1").is_err());
}
