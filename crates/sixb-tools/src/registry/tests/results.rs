//! What a custom tool may give back.

use sixb_artifacts::{FileRef, Provenance, RunFile, RunFiles};

use super::*;

#[tokio::test]
async fn json_that_calls_itself_rich_content_is_read_as_such() {
    for (content, expect) in [
        (json!([{"type": "text", "text": "hi"}]), Ok("hi")),
        (json!([]), Err("at `/content`: there is no part in it")),
        (json!("hi"), Err("at `/content`: expected a list of parts")),
        (
            json!([{"type": "text", "text": "hi"}, 7]),
            Err("at `/content/1`: expected an object with `type`"),
        ),
        (
            json!([{"type": "text"}]),
            Err("at `/content/0`: `text` is missing or no string"),
        ),
        (
            json!([{"type": "text", "text": "hi", "bold": true}]),
            Err("at `/content/0`: unknown property \"bold\""),
        ),
        (
            json!([{"type": "image", "url": "x"}]),
            Err("at `/content/0`: no part has the type \"image\""),
        ),
        (
            json!([{"type": "file", "fileRef": {"id": "forged"}}]),
            Err("at `/content/0/fileRef`: unknown field `id`"),
        ),
        (
            json!([{"type": "file", "path": "/etc/passwd"}]),
            Err("at `/content/0`: unknown property \"path\""),
        ),
        (
            json!([{"type": "file", "fileRef": FileRef::of(b"of another run")}]),
            Err("is no file of this run"),
        ),
    ] {
        let rich = json!({"kind": "agentToolResult", "content": content});
        let result = giving(rich).call("give", cx(), json!({})).await;
        match expect {
            Ok(text) => assert_eq!(result.expect(text), ToolOutput::text(text)),
            Err(part) => {
                let error = result.expect_err(part);
                assert_eq!(error.kind(), ToolErrorKind::Internal, "{content}");
                assert!(error.model_text().contains(part), "{content}: {error}");
            }
        }
    }
    let result = |value: Value| async { giving(value).call("give", cx(), json!({})).await };
    let error = result(json!({"kind": "agentToolResult"})).await;
    assert!(
        error
            .expect_err("no content")
            .model_text()
            .contains("at `/content`: expected a list of parts")
    );
    let more =
        json!({"kind": "agentToolResult", "content": [{"type": "text", "text": "x"}], "more": 1});
    let error = result(more).await.expect_err("not closed");
    assert!(
        error.model_text().contains("unknown property \"more\""),
        "{error}"
    );
    let other = json!({"kind": "other", "content": []});
    assert_eq!(
        result(other.clone()).await.expect("plain JSON"),
        ToolOutput::Json(other)
    );
}

#[tokio::test]
async fn only_files_that_the_run_knows_stand_in_a_result() {
    let (known, other) = (FileRef::of(b"known"), FileRef::of(b"of another run"));
    let files = RunFiles::default();
    files.add(RunFile::new(known.clone(), Provenance::Created));
    let call = |output: Value| {
        let cx = ToolContext::builder("c").extension(files.clone()).build();
        async move { giving(output).call("give", cx, json!({})).await }
    };
    let rich = |file: &FileRef| json!({"kind": "agentToolResult", "content": [{"type": "file", "fileRef": file}]});
    let labelled = known
        .clone()
        .with_file_name("renamed.txt".parse().expect("name"));
    assert_eq!(
        call(rich(&labelled)).await.expect("known"),
        ToolOutput::file(labelled)
    );
    let resized = FileRef::new(known.digest(), 6);
    for forged in [&other, &resized] {
        let error = call(rich(forged)).await.expect_err("forged");
        assert_eq!(error.kind(), ToolErrorKind::Internal);
        assert!(error.model_text().contains(&forged.blob_id()), "{error}");
    }
}
