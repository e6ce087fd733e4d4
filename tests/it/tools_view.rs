//! `view_file` in a real sandbox: what becomes one of the run's files, and what is refused.

use serde_json::{Value, json};
use sixb_artifacts::{FileRef, Provenance, RunFile};
use sixb_tools::ToolErrorKind;

use crate::tools_lab::Lab;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0";

/// The reference in a result that holds one file and nothing else.
fn file(result: &Value) -> FileRef {
    assert_eq!(result["kind"], "agentToolResult", "{result}");
    assert_eq!(
        result["content"].as_array().map(Vec::len),
        Some(1),
        "{result}"
    );
    serde_json::from_value(result["content"][0]["fileRef"].clone()).expect("a file")
}

fn media_type(file: &FileRef) -> &str {
    file.media_type()
        .map_or("", |media_type| media_type.as_str())
}

#[tokio::test]
async fn a_file_of_the_sandbox_is_kept_once_and_read_again() {
    let lab = Lab::new();
    lab.write("made/a.png", PNG).await;
    let first = lab
        .ok("v1", "view_file", json!({"path": "made/a.png"}))
        .await;
    let kept = file(&first);
    assert_eq!((kept.size(), media_type(&kept)), (16, "image/png"));
    assert_eq!(kept.file_name().map(|name| name.as_str()), Some("a.png"));
    for path in ["/workspace/made/a.png", "./made//x/../a.png"] {
        assert_eq!(
            file(&lab.ok("v2", "view_file", json!({"path": path})).await),
            kept
        );
    }
    assert_eq!(lab.artifacts.budget().used(), 16, "charged once");
    assert_eq!(lab.artifacts.blobs().read(&kept).await.expect("kept"), PNG);

    lab.sh("printf x >> made/a.png").await;
    let edited = file(
        &lab.ok("v3", "view_file", json!({"path": "made/a.png"}))
            .await,
    );
    assert_eq!(edited.size(), 17, "an edit shows");
    assert_eq!(lab.artifacts.budget().used(), 16 + 17);
    let provenance: Vec<_> = lab
        .artifacts
        .files()
        .all()
        .iter()
        .map(|file| file.provenance)
        .collect();
    assert!(
        provenance.iter().all(|how| *how == Provenance::Viewed),
        "{provenance:?}"
    );
    lab.end().await;
}

#[tokio::test]
async fn known_files_give_their_reference_without_being_read() {
    let lab = Lab::new();
    let cx = lab.cx("c1").build();
    let made = cx
        .artifacts()
        .expect("lent")
        .put(PNG, "chart.png", None)
        .await
        .expect("put");
    assert!(
        made.path.starts_with("/workspace/.sixb/agent/artifacts/"),
        "{made:?}"
    );
    let stat = lab
        .sh(&format!(
            "wc -c < '{}'; echo overwritten > '{}'",
            made.path, made.path
        ))
        .await;
    assert_eq!(stat["stdout"], "16\n", "it lies in the sandbox");
    let viewed = lab.ok("v", "view_file", json!({"path": made.path})).await;
    assert_eq!(file(&viewed), made.file);

    let attached = FileRef::of(b"of the user").with_file_name("a.txt".parse().expect("name"));
    let path = ".sixb/agent/attachments/m1/a.txt";
    lab.artifacts
        .files()
        .add(RunFile::new(attached.clone(), Provenance::Attached).at(path));
    for path in [path.to_owned(), format!("/workspace/{path}")] {
        assert_eq!(
            file(&lab.ok("v", "view_file", json!({"path": path})).await),
            attached
        );
    }
    let read = lab.ok("r", "read", json!({"path": made.path})).await;
    assert_eq!(
        read["content"], "overwritten\n",
        "read takes the path that was handed out"
    );
    lab.end().await;
}

#[tokio::test]
async fn the_bytes_give_the_type() {
    let lab = Lab::new();
    for (name, bytes, expect) in [
        ("case_46.png", JPEG, "image/jpeg"),
        ("case_46_text.png", b"hello\n".as_slice(), "text/plain"),
        (
            "case_50.svg",
            br#"<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>"#,
            "image/svg+xml",
        ),
        (
            "case_50.png",
            br#"<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>"#,
            "image/svg+xml",
        ),
        ("case_48.png", b"", "text/plain"),
        ("table.csv", b"a,b\n", "text/csv"),
        ("raw", b"\xff\0\xfe", "application/octet-stream"),
    ] {
        lab.write(name, bytes).await;
        let kept = file(&lab.ok("v", "view_file", json!({"path": name})).await);
        // An empty file is of no type that its bytes could show: whatever it is called, it is no image.
        if bytes.is_empty() {
            assert!(kept.size() == 0, "{kept:?}");
            continue;
        }
        assert_eq!(media_type(&kept), expect, "{name}");
    }
    lab.end().await;
}

#[tokio::test]
async fn what_is_no_plain_file_of_the_workspace_is_refused() {
    use ToolErrorKind as Kind;
    let lab = Lab::new();
    lab.write("inside/real.txt", "x").await;
    lab.write("case_54.pdf", "%PDF-1.7\n").await;
    lab.sh(
        "ln -s inside/real.txt link; ln -s /etc etc; ln -s inside dir; mkfifo pipe; mkdir folder; \
         truncate -s 26214401 large; ln -s /etc/passwd passwd; touch 'new\nline'",
    )
    .await;
    for (path, kind, part) in [
        ("link", Kind::PermissionDenied, "symbolic link"),
        ("passwd", Kind::PermissionDenied, "symbolic link"),
        ("etc/passwd", Kind::PermissionDenied, "etc"),
        ("../etc/passwd", Kind::PermissionDenied, "leaves"),
        ("/etc/passwd", Kind::PermissionDenied, "absolute"),
        ("/workspace-evil/x", Kind::PermissionDenied, "absolute"),
        ("pipe", Kind::InvalidInput, "FIFO"),
        ("folder", Kind::InvalidInput, "directory"),
        (".", Kind::InvalidInput, "working directory"),
        ("none", Kind::NotFound, "\"none\""),
        ("none/at/all", Kind::NotFound, "none"),
        ("large", Kind::LimitExceeded, "26214401"),
        ("case_54.pdf", Kind::InvalidInput, "PDF is malformed"),
        ("new\nline", Kind::InvalidInput, "name"),
        ("", Kind::InvalidInput, "path"),
    ] {
        let error = lab
            .call("v", "view_file", json!({"path": path}))
            .await
            .expect_err(path);
        assert_eq!(error.kind(), kind, "{path}: {error:?}");
        assert!(error.model_text().contains(part), "{path}: {error}");
    }
    let through = file(
        &lab.ok("v", "view_file", json!({"path": "dir/real.txt"}))
            .await,
    );
    assert_eq!(through.size(), 1, "a folder link that stays inside is fine");
    assert_eq!(
        lab.artifacts.files().all().len(),
        1,
        "nothing else was kept"
    );
    lab.end().await;
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_an_error() {
    let lab = Lab::new();
    lab.sh("head -c 20000000 /dev/zero > grows").await;
    // Rewritten the whole time: two looks at it, some milliseconds apart, cannot agree.
    let input = json!({"command": "while :; do printf x >> grows; done", "background": true});
    lab.ok("w", "bash", input).await;
    let error = lab
        .call("v", "view_file", json!({"path": "grows"}))
        .await
        .expect_err("changes");
    assert!(
        error.model_text().contains("changed while it was read"),
        "{error:?}"
    );
    assert_eq!(lab.artifacts.budget().used(), 0);
    lab.end().await;
}
