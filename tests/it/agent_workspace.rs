//! Runs in a folder of the user's own.
#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at the host's side"
)]

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::json;

use crate::agent_lab::{AgentLab, bash, codes, in_folder};

/// Everything below a folder.
fn tree(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("folder") {
            let path = entry.expect("entry").path();
            found.insert(
                path.strip_prefix(root)
                    .expect("below")
                    .to_string_lossy()
                    .into_owned(),
            );
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("parent")).expect("folder");
    fs::write(path, text).expect("write");
}

#[tokio::test]
async fn what_a_run_adds_for_itself_is_gone_and_its_work_stays() {
    let folder = tempfile::tempdir().expect("folder");
    write(&folder.path().join("data.csv"), "a\nb\n");
    let lab = AgentLab::new(
        json!([bash("c", "wc -l < data.csv > count.txt; cp count.txt $SIXB_OUTPUT_DIR/"), {"text": "done"}]),
        |agent| agent,
    );
    let outcome = lab
        .play(lab.request().sandbox(in_folder(folder.path(), false)))
        .await;
    assert!(outcome.completed(), "{outcome:?}");
    assert_eq!(outcome.files.len(), 1);
    assert_eq!(
        tree(folder.path()),
        ["count.txt", "data.csv"].map(str::to_owned).into()
    );
}

#[tokio::test]
async fn an_unused_sandbox_leaves_the_folder_clean_too() {
    let folder = tempfile::tempdir().expect("folder");
    let lab = AgentLab::new(json!([{"text": "done", "delayMs": 500}]), |agent| agent);
    lab.play(lab.request().sandbox(in_folder(folder.path(), false)))
        .await;
    assert_eq!(tree(folder.path()), BTreeSet::new());
    // Given up in the middle of the boot.
    let lab = AgentLab::new(json!([{"text": "done"}]), |agent| agent);
    lab.play(lab.request().sandbox(in_folder(folder.path(), false)))
        .await;
    assert_eq!(tree(folder.path()), BTreeSet::new());
}

#[tokio::test]
async fn what_was_there_before_stays_and_is_not_taken_for_an_output() {
    let folder = tempfile::tempdir().expect("folder");
    write(&folder.path().join(".sixb/blobs/x"), "x");
    write(
        &folder.path().join(".sixb/agent/outputs/published/old.md"),
        "old",
    );
    write(
        &folder
            .path()
            .join(".sixb/agent/outputs/published/edited.md"),
        "old",
    );
    let before = tree(folder.path());
    let lab = AgentLab::new(
        json!([bash("c", "cd $SIXB_OUTPUT_DIR; ls; echo new >> edited.md; echo new > new.md"), {"text": "done"}]),
        |agent| agent,
    );
    let outcome = lab
        .play(lab.request().sandbox(in_folder(folder.path(), false)))
        .await;
    let paths: Vec<_> = outcome
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(paths, ["edited.md", "new.md"], "{outcome:?}");
    let mut expect = before;
    expect.insert(".sixb/agent/outputs/published/new.md".to_owned());
    assert_eq!(tree(folder.path()), expect);
}

#[tokio::test]
async fn a_read_only_folder_is_read_and_left_alone() {
    let folder = tempfile::tempdir().expect("folder");
    write(&folder.path().join("data.csv"), "a\nb\n");
    let lab = AgentLab::new(
        json!([
            bash("c", "wc -l < data.csv; touch x 2>/dev/null || echo denied; echo ${SIXB_OUTPUT_DIR:-none} $SIXB_RUN_ID"),
            {"text": "${calls.c.result.stdout}"},
        ]),
        |agent| agent,
    );
    let outcome = lab
        .play(lab.request().sandbox(in_folder(folder.path(), true)))
        .await;
    assert!(outcome.completed(), "{outcome:?}");
    assert_eq!(
        outcome.text,
        format!("2\ndenied\nnone {}\n", outcome.run_id)
    );
    assert_eq!(codes(&outcome), [("workspace_read_only", None)]);
    assert_eq!(tree(folder.path()), ["data.csv".to_owned()].into());
}

#[tokio::test]
async fn a_second_run_in_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let lab = AgentLab::new(
        json!([bash("c", "echo kept > $SIXB_OUTPUT_DIR/kept"), {"text": "done"}]),
        |agent| agent,
    );
    let request = || lab.request().sandbox(in_folder(folder.path(), false));
    let first = lab.start(request()).await;
    let refused = lab
        .sixb
        .run(request())
        .await
        .expect_err("refused")
        .to_string();
    assert!(
        refused.contains(first.id()) && refused.contains(&folder.path().display().to_string()),
        "{refused}"
    );
    let outcome = first.finish().await.expect("outcome");
    assert_eq!(outcome.files.len(), 1, "{outcome:?}");
    assert!(lab.play(request()).await.completed(), "free again");
    // Reading is not writing.
    let read_only = || lab.request().sandbox(in_folder(folder.path(), true));
    let (one, other) = (lab.start(read_only()).await, lab.start(read_only()).await);
    assert!(one.finish().await.is_some() && other.finish().await.is_some());
}

#[tokio::test]
async fn a_transcript_that_the_guest_could_change_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let lab = AgentLab::new(json!([{"text": "done"}]), |agent| agent);
    let request = lab.request().transcripts(folder.path().join("deep/runs"));
    let writable = request.clone().sandbox(in_folder(folder.path(), false));
    let refused = lab
        .sixb
        .run(writable)
        .await
        .expect_err("refused")
        .to_string();
    assert!(
        refused.contains("transcripts") && refused.contains("deep/runs"),
        "{refused}"
    );
    assert_eq!(tree(folder.path()), BTreeSet::new());
    let read_only = request.sandbox(in_folder(folder.path(), true));
    assert!(lab.play(read_only).await.transcript.is_some());
}
