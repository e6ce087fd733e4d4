//! What a custom tool may give back.

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
            Err("at `/content/0`: this run published no such file"),
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
