//! `read` in a real sandbox: pages, refusals, spooled output.

use serde_json::json;
use sixb_tools::ToolErrorKind;

use crate::tools_lab::Lab;

/// Reads all pages as a model would, and returns the file and how many pages it took.
async fn pages(lab: &Lab, path: &str, limit: u64) -> (String, usize) {
    let (mut input, mut file) = (json!({"path": path, "limit": limit}), String::new());
    for count in 1..1_000 {
        let page = lab.ok("r", "read", input).await;
        file.push_str(page["content"].as_str().expect("content"));
        if page["truncated"] == false {
            assert_eq!(
                (page.get("nextOffset"), page.get("nextColumn")),
                (None, None)
            );
            return (file, count);
        }
        input = json!({"path": path, "limit": limit, "offset": page["nextOffset"], "column": page.get("nextColumn")});
    }
    panic!("no end");
}

#[tokio::test]
async fn case_33_a_character_at_a_buffer_edge_is_text() {
    let lab = Lab::new();
    for pad in [8_190, 51_198, 51_199, 65_535] {
        let text = format!("{}가나다\n끝\n", "a".repeat(pad));
        lab.write("edge.txt", text.clone()).await;
        assert_eq!(pages(&lab, "edge.txt", 2_000).await.0, text, "{pad}");
    }
    lab.end().await;
}

#[tokio::test]
async fn case_35_a_binary_file_is_named_with_the_way_out() {
    let lab = Lab::new();
    for (name, bytes, parts) in [
        (
            "a.xlsx",
            b"PK\x03\x04\x14\0\x06\0".to_vec(),
            ["application/zip, 8 bytes", "bash"],
        ),
        (
            "a.png",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(),
            ["image/png", "view_file"],
        ),
        (
            "latin1.txt",
            b"caf\xe9\n".to_vec(),
            ["application/octet-stream, 5 bytes", "bash"],
        ),
        ("nul.txt", b"a\0b\n".to_vec(), ["binary", "bash"]),
        (
            "wide.txt",
            b"\xff\xfeh\0i\0\n\0".to_vec(),
            ["UTF-16 (little-endian)", "iconv"],
        ),
    ] {
        lab.write(name, bytes).await;
        let error = lab
            .call("r", "read", json!({"path": name}))
            .await
            .expect_err(name);
        assert_eq!(error.kind(), ToolErrorKind::InvalidInput);
        assert!(
            parts.iter().all(|part| error.model_text().contains(part)),
            "{name}: {error}"
        );
    }
    lab.end().await;
}

#[tokio::test]
async fn case_36_one_huge_line_can_be_paged_through() {
    let lab = Lab::new();
    let text = format!("{}END", "x".repeat(1_000_000));
    lab.write("line.txt", text.clone()).await;
    let first = lab.ok("r", "read", json!({"path": "line.txt"})).await;
    assert_eq!(first["content"].as_str().map(str::len), Some(51_200));
    assert_eq!(
        (&first["nextOffset"], &first["nextColumn"]),
        (&json!(1), &json!(51_200))
    );
    assert_eq!(
        (&first["startLine"], &first["endLine"], &first["totalBytes"]),
        (&json!(1), &json!(1), &json!(1_000_003))
    );
    let last = lab
        .ok("r", "read", json!({"path": "line.txt", "column": 999_990}))
        .await;
    assert_eq!(
        (&last["content"], &last["truncated"]),
        (&json!("xxxxxxxxxxEND"), &json!(false))
    );
    assert_eq!(pages(&lab, "line.txt", 2_000).await, (text, 20));
    for (column, part) in [
        (1_000_003, "past the end of line 1, which has 1000003 bytes"),
        (u64::MAX, "past the end"),
    ] {
        let error = lab
            .call("r", "read", json!({"path": "line.txt", "column": column}))
            .await
            .expect_err("past");
        assert!(error.model_text().contains(part), "{error}");
    }
    lab.write("wide.txt", "가나\nnext\n").await;
    let error = lab
        .call("r", "read", json!({"path": "wide.txt", "column": 1}))
        .await
        .expect_err("inside");
    assert!(error.model_text().contains("inside a character"), "{error}");
    let error = lab
        .call("r", "read", json!({"path": "wide.txt", "column": 7}))
        .await
        .expect_err("next line");
    assert!(error.model_text().contains("which has 7 bytes"), "{error}");
    lab.end().await;
}

#[tokio::test]
async fn case_42_links_that_leave_are_denied_and_others_followed() {
    let lab = Lab::new();
    let setup = lab
        .sh("echo inside >real; ln -s real good; ln -s /etc/passwd leak; ln -s / root; mkdir d; ln -s ../../etc d/up; ln -s . self")
        .await;
    assert_eq!(setup["exitCode"], 0, "{setup}");
    for path in ["good", "self/self/real", "d/../real"] {
        assert_eq!(
            lab.ok("r", "read", json!({"path": path})).await["content"],
            "inside\n",
            "{path}"
        );
    }
    for path in ["leak", "root/etc/passwd", "d/up/passwd"] {
        let error = lab
            .call("r", "read", json!({"path": path}))
            .await
            .expect_err(path);
        assert!(error.is_refusal(), "{path}: {error:?}");
        assert!(!error.model_text().contains("root:"), "{path}: {error}");
    }
    lab.end().await;
}

#[tokio::test]
async fn case_44_paths_that_leave_are_denied() {
    let lab = Lab::new();
    for path in [
        "..",
        "a/..//../b",
        "../etc/passwd",
        "/etc/passwd",
        "/workspace/../etc/passwd",
    ] {
        let error = lab
            .call("r", "read", json!({"path": path}))
            .await
            .expect_err(path);
        assert_eq!(
            error.kind(),
            ToolErrorKind::PermissionDenied,
            "{path}: {error:?}"
        );
    }
    lab.end().await;
}

#[tokio::test]
async fn what_is_no_file_is_never_opened() {
    let lab = Lab::new();
    let made = lab
        .sh("mkdir dir; mkfifo pipe; echo x >shut; chmod 000 shut")
        .await;
    assert_eq!(made["exitCode"], 0, "{made}");
    for (path, kind, part) in [
        (
            "dir",
            ToolErrorKind::InvalidInput,
            "is a directory, not a file; list it with bash",
        ),
        (".", ToolErrorKind::InvalidInput, "is a directory"),
        ("pipe", ToolErrorKind::InvalidInput, "named pipe"),
        ("none", ToolErrorKind::NotFound, "none"),
        (
            ".sixb/agent/spool/never/stdout",
            ToolErrorKind::NotFound,
            "nothing is spooled",
        ),
        ("a\0b", ToolErrorKind::InvalidInput, "NUL"),
    ] {
        let error = lab
            .call("r", "read", json!({"path": path}))
            .await
            .expect_err(path);
        assert_eq!(error.kind(), kind, "{path:?}: {error:?}");
        assert!(error.model_text().contains(part), "{path:?}: {error}");
    }
    let error = lab
        .call("r", "read", json!({"path": "shut"}))
        .await
        .expect_err("unreadable");
    assert_eq!(error.kind(), ToolErrorKind::PermissionDenied, "{error:?}");
    lab.end().await;
}

#[tokio::test]
async fn pages_say_where_they_are_and_together_are_the_file() {
    let lab = Lab::new();
    let text: String = (1..=5_000)
        .map(|n| format!("line {n}\r\n"))
        .collect::<String>()
        + "last";
    let text = format!("\u{feff}{text}");
    lab.write("pages.txt", text.clone()).await;
    let first = lab.ok("r", "read", json!({"path": "pages.txt"})).await;
    assert_eq!(
        (&first["startLine"], &first["endLine"], &first["nextOffset"]),
        (&json!(1), &json!(2_000), &json!(2_001))
    );
    assert_eq!(
        (&first["totalBytes"], first.get("totalLines")),
        (&json!(text.len()), None)
    );
    assert_eq!(pages(&lab, "pages.txt", 2_000).await, (text.clone(), 3));
    assert_eq!(pages(&lab, "pages.txt", 700).await.0, text);
    let end = lab
        .ok("r", "read", json!({"path": "pages.txt", "offset": 5_001}))
        .await;
    let expect = json!({
        "path": "pages.txt", "content": "last", "startLine": 5_001, "endLine": 5_001, "truncated": false,
        "totalBytes": text.len(), "totalLines": 5_001,
    });
    assert_eq!(end, expect);
    let error = lab
        .call("r", "read", json!({"path": "pages.txt", "offset": 5_002}))
        .await
        .expect_err("past");
    assert_eq!(
        error.model_text(),
        "`offset` 5002 is past the end of \"pages.txt\", which has 5001 lines"
    );

    lab.write("empty", "").await;
    let empty = lab.ok("r", "read", json!({"path": "empty"})).await;
    let expect = json!({
        "path": "empty", "content": "", "startLine": 0, "endLine": 0, "truncated": false, "totalBytes": 0, "totalLines": 0,
    });
    assert_eq!(empty, expect);
    let error = lab
        .call("r", "read", json!({"path": "empty", "offset": 2}))
        .await
        .expect_err("past");
    assert!(error.model_text().contains("which has 0 lines"), "{error}");

    lab.write("one", "a\n").await;
    let error = lab
        .call("r", "read", json!({"path": "one", "offset": 2}))
        .await
        .expect_err("past");
    assert!(error.model_text().contains("which has 1 line"), "{error}");
    lab.end().await;
}

#[tokio::test]
async fn a_changed_file_is_read_anew() {
    let lab = Lab::new();
    lab.write("f", "1\n2\n3\n4\n").await;
    let second = json!({"path": "f", "offset": 3, "limit": 1});
    assert_eq!(lab.ok("r", "read", second.clone()).await["content"], "3\n");
    lab.write("f", "one\ntwo\nthree\nfour\n").await;
    assert_eq!(
        lab.ok("r", "read", second.clone()).await["content"],
        "three\n"
    );
    lab.sh("echo 'longer first line' >f; seq 2 9 >>f").await;
    assert_eq!(lab.ok("r", "read", second).await["content"], "3\n");
    lab.end().await;
}

#[tokio::test]
async fn pages_late_in_a_large_file_follow_each_other() {
    let lab = Lab::new();
    let made = lab
        .sh("seq -f 'line %09.0f of a large file ...................' 1 2000000 >large")
        .await;
    assert_eq!(made["exitCode"], 0, "{made}");
    let mut next = 1_000_000;
    for _ in 0..5 {
        let input = json!({"path": "large", "offset": next, "limit": 1_000});
        let page = lab.ok("r", "read", input).await;
        assert!(
            page["content"]
                .as_str()
                .is_some_and(|text| text.starts_with(&format!("line {next:09} "))),
            "{page}"
        );
        next = page["nextOffset"].as_u64().expect("more");
    }
    let error = lab
        .call("r", "read", json!({"path": "large", "offset": 1.0}))
        .await
        .expect_err("no integer");
    assert!(
        error
            .model_text()
            .contains("at `/offset`: 1.0 is not written as an integer"),
        "{error}"
    );
    lab.end().await;
}
