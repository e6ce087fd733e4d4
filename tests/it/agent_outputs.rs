//! What of the output directory reaches the host.
#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at the host's side"
)]

use std::fs;

use serde_json::json;
use sixb_agent::RunRequest;

use crate::agent_lab::{AgentLab, bash, codes, in_folder, play};

/// Runs one command and gives the paths saved, the diagnostics and the lab.
async fn saved(command: &str) -> (AgentLab, sixb_agent::Outcome, Vec<String>) {
    let (lab, outcome) = play(json!([bash("c", command), {"text": "done"}])).await;
    assert!(outcome.completed(), "{outcome:?}");
    let paths = outcome.files.iter().map(|file| file.path.clone()).collect();
    (lab, outcome, paths)
}

#[tokio::test]
async fn regular_files_are_saved_whole_and_nested() {
    let (lab, outcome, paths) = saved(
        "cd $SIXB_OUTPUT_DIR; echo report > report.md; mkdir -p a/b; head -c 9000000 /dev/zero > a/b/zero; : > empty; echo x > \"odd \n name\"",
    )
    .await;
    assert_eq!(paths, ["a/b/zero", "empty", "odd \\n name", "report.md"]);
    assert_eq!(codes(&outcome), []);
    let folder = lab.out.path().join(&outcome.run_id);
    for file in &outcome.files {
        let path = file.host_path.as_ref().expect("on the host");
        assert!(path.starts_with(&folder), "{file:?}");
        assert_eq!(
            std::fs::metadata(path).expect("saved").len(),
            file.size_bytes
        );
    }
    assert_eq!(
        std::fs::read_to_string(folder.join("report.md")).expect("report"),
        "report\n"
    );
    let left: Vec<_> = std::fs::read_dir(lab.out.path()).expect("folder").collect();
    assert_eq!(left.len(), 1, "no partial folder is left: {left:?}");
}

#[tokio::test]
async fn links_special_files_and_keep_are_left_out() {
    let (_lab, outcome, paths) = saved(
        "cd $SIXB_OUTPUT_DIR; ln -s /etc/passwd link; ln -s . dir; mkfifo pipe; mkdir d; : > d/.keep; echo ok > ok",
    )
    .await;
    assert_eq!(paths, ["ok"]);
    assert_eq!(
        codes(&outcome),
        [
            ("output_symlink", Some("dir")),
            ("output_symlink", Some("link")),
            ("output_special_file", Some("pipe")),
        ]
    );
}

#[tokio::test]
async fn too_large_and_too_many_are_told() {
    let (_lab, outcome, paths) = saved(
        "cd $SIXB_OUTPUT_DIR; truncate -s 26214401 big; truncate -s 26214400 fits; for n in $(seq -w 1 30); do echo $n > n$n; done",
    )
    .await;
    assert_eq!(paths.len(), 20);
    assert_eq!((paths[0].as_str(), paths[19].as_str()), ("fits", "n19"));
    let codes = codes(&outcome);
    assert_eq!(codes[0], ("output_too_large", Some("big")));
    assert_eq!(codes.len(), 12, "{codes:?}");
    assert!(
        codes[1..]
            .iter()
            .all(|(code, _)| *code == "output_too_many")
    );
}

#[tokio::test]
async fn an_output_directory_that_became_a_link_is_refused() {
    let (_lab, outcome, paths) = saved("rm -r $SIXB_OUTPUT_DIR; ln -s /etc $SIXB_OUTPUT_DIR").await;
    assert_eq!(paths, [""; 0]);
    assert_eq!(codes(&outcome), [("output_unreadable", None)]);
}

#[tokio::test]
async fn an_output_directory_that_is_gone_is_an_empty_one() {
    let (_lab, outcome, paths) = saved("rm -r $SIXB_CONTEXT_DIR").await;
    assert_eq!((paths.len(), codes(&outcome)), (0, vec![]));
}

#[tokio::test]
async fn a_file_that_keeps_changing_is_skipped() {
    // On a busy machine one writer may get no turn while its file is read: four hardly ever.
    let (_lab, outcome, paths) = saved(
        "cd $SIXB_OUTPUT_DIR; echo ok > ok; for n in 1 2 3 4; do head -c 25000000 /dev/zero > moving$n; \
         (while :; do echo x >> moving$n; done) > /dev/null 2>&1 & done; sleep 0.2",
    )
    .await;
    assert!(paths.contains(&"ok".to_owned()), "{paths:?}");
    let codes = codes(&outcome);
    assert_eq!(paths.len() + codes.len(), 5, "{codes:?}");
    assert!(
        !codes.is_empty() && codes.iter().all(|(code, _)| *code == "output_changed"),
        "{codes:?}"
    );
}

#[tokio::test]
async fn the_transcript_is_never_replaced_by_an_output() {
    let (lab, outcome, paths) = saved("echo forged > $SIXB_OUTPUT_DIR/transcript.jsonl").await;
    assert_eq!(paths, ["transcript.jsonl"]);
    assert_eq!(outcome.files[0].host_path, None, "in the store alone");
    assert_eq!(
        codes(&outcome),
        [("output_name_taken", Some("transcript.jsonl"))]
    );
    let transcript = lab
        .out
        .path()
        .join(&outcome.run_id)
        .join("transcript.jsonl");
    assert!(
        !std::fs::read_to_string(transcript)
            .expect("transcript")
            .starts_with("forged")
    );
}

#[tokio::test]
async fn without_a_folder_outputs_are_in_the_store_alone() {
    let lab = AgentLab::new(
        json!([bash("c", "echo x > $SIXB_OUTPUT_DIR/x"), {"text": "done"}]),
        |agent| agent,
    );
    let outcome = lab.play(RunRequest::new("a", "x")).await;
    assert_eq!(codes(&outcome), []);
    let [file] = &outcome.files[..] else {
        panic!("{outcome:?}");
    };
    assert_eq!((file.path.as_str(), &file.host_path), ("x", &None));
    assert_eq!(file.file_ref.as_ref().map(|file| file.size()), Some(2));
}

/// The folder of outputs lies in the workspace, as with `sixb run --workspace .`: whatever the guest does to its name,
/// nothing is written outside, and what it wrote honestly is saved.
#[tokio::test]
async fn outputs_in_the_guests_own_folder_never_leave_it() {
    for (attack, command, saved) in [
        ("none", "true", true),
        (
            "a link at the run's folder",
            "mkdir -p sixb-out && ln -s VICTIM sixb-out/$SIXB_RUN_ID",
            false,
        ),
        (
            "a link at the output folder",
            "ln -s VICTIM sixb-out",
            false,
        ),
        (
            "a relative link at the output folder",
            "ln -s ../victim sixb-out",
            false,
        ),
        (
            "a folder made beforehand",
            "mkdir -p sixb-out/$SIXB_RUN_ID && ln -s VICTIM sixb-out/$SIXB_RUN_ID/deep",
            false,
        ),
        (
            "a process that waits for the folder and swaps it",
            "(while :; do for f in sixb-out/* sixb-out; do test -d $f && ! test -L $f && mv $f gone$RANDOM && \
             ln -s VICTIM $f; done; done) > /dev/null 2>&1 &",
            true,
        ),
    ] {
        let root = tempfile::tempdir().expect("folder");
        let (work, victim) = (root.path().join("work"), root.path().join("victim"));
        for folder in [&work, &victim] {
            fs::create_dir(folder).expect("folder");
        }
        let command = command.replace("VICTIM", victim.to_str().expect("path"));
        let script = format!(
            "mkdir $SIXB_OUTPUT_DIR/deep; echo report > $SIXB_OUTPUT_DIR/deep/report.md; {command}"
        );
        let lab = AgentLab::new(json!([bash("c", &script), {"text": "done"}]), |agent| agent);
        let request = lab.request().sandbox(in_folder(&work, false));
        let outcome = lab.play(request.outputs(work.join("sixb-out"))).await;
        assert!(outcome.completed(), "{attack}: {outcome:?}");
        let on_host = outcome
            .files
            .iter()
            .filter_map(|file| file.host_path.as_ref());
        assert_eq!(
            on_host.clone().count(),
            usize::from(saved),
            "{attack}: {outcome:?}"
        );
        assert_eq!(
            codes(&outcome).len(),
            usize::from(!saved),
            "{attack}: {outcome:?}"
        );
        for path in on_host {
            let text = fs::read_to_string(path).expect("saved");
            assert_eq!(text, "report\n", "{attack}");
        }
        let found: Vec<_> = fs::read_dir(&victim).expect("victim").collect();
        assert!(found.is_empty(), "{attack}: {found:?}");
        assert!(!work.join(".sixb").exists(), "{attack}");
    }
}

/// What an earlier guest left is there before the run.
#[tokio::test]
async fn a_link_that_waits_in_the_guests_folder_is_refused_before_the_run() {
    let root = tempfile::tempdir().expect("folder");
    let work = root.path().join("work");
    fs::create_dir(&work).expect("folder");
    std::os::unix::fs::symlink(root.path(), work.join("sixb-out")).expect("link");
    let lab = AgentLab::new(json!([{"text": "done"}]), |agent| agent);
    for request in [
        lab.request().outputs(work.join("sixb-out")),
        lab.request().outputs(work.join("sixb-out/deeper")),
    ] {
        let request = request.sandbox(in_folder(&work, false));
        let error = lab
            .sixb
            .run(request)
            .await
            .expect_err("refused")
            .to_string();
        assert!(error.contains("sixb-out is a link"), "{error}");
    }
}
