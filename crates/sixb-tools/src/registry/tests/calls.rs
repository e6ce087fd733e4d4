//! How a call ends, as a table where the ends are alike.

use tokio_util::sync::CancellationToken;

use super::*;

#[derive(Deserialize, JsonSchema)]
struct Input {
    /// What to do.
    act: Act,
    #[serde(default)]
    n: u32,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Act {
    Echo,
    Fail,
    Panic,
    Hang,
    Large,
    NotANumber,
    Rich,
}

fn registry() -> ToolRegistry {
    let tool = AgentTool::new("act")
        .description("Acts.")
        .run(|_cx, input: Input| async move {
            match input.act {
                Act::Echo => Ok(ToolOutput::Json(json!({"n": input.n}))),
                Act::Fail => Err(std::io::Error::other("secret detail"))?,
                Act::Panic => panic!("at the disco"),
                Act::Hang => std::future::pending().await,
                Act::Large => Ok(ToolOutput::Json("x".repeat(300_000).into())),
                Act::NotANumber => Err(ToolError::of(ToolErrorKind::RateLimited)),
                Act::Rich => Ok(ToolOutput::text("hello")),
            }
        });
    let typed = AgentTool::new("mean")
        .description("Mean of no numbers.")
        .run(|_cx, _: Nothing| async move { Ok(vec![f64::NAN]) });
    of([tool.expect("tool"), typed.expect("tool")])
}

#[tokio::test]
async fn each_end_of_a_call_has_its_kind_and_text() {
    use ToolErrorKind as Kind;
    let registry = registry();
    for (name, arguments, kind, part) in [
        (
            "nope",
            "{}",
            Kind::NotFound,
            "no tool is called `nope`; use one of: act, mean",
        ),
        (
            "act",
            "{\"act\": ",
            Kind::InvalidInput,
            "EOF while parsing a value at line 1 column 8 (of 8 bytes)",
        ),
        (
            "act",
            "{\"act\": \"echo\"} {}",
            Kind::InvalidInput,
            "trailing characters at line 1 column 17",
        ),
        ("act", "", Kind::InvalidInput, "property \"act\" is missing"),
        (
            "act",
            "[]",
            Kind::InvalidInput,
            "[] is not of type \"object\"",
        ),
        (
            "act",
            r#"{"act":"dance"}"#,
            Kind::InvalidInput,
            "at `/act`: \"dance\" is not one of",
        ),
        (
            "act",
            r#"{"act":"echo","n":"5"}"#,
            Kind::InvalidInput,
            "at `/n`: \"5\" is not of type \"integer\"",
        ),
        (
            "act",
            r#"{"act":"echo","n":-1}"#,
            Kind::InvalidInput,
            "less than the minimum of 0",
        ),
        (
            "act",
            r#"{"act":"echo","n":5000000000}"#,
            Kind::InvalidInput,
            "at `/n`: 5000000000 is out of range: expected an integer from 0 to 4294967295",
        ),
        (
            "act",
            r#"{"act":"echo","m":1}"#,
            Kind::InvalidInput,
            "unknown property m; this tool knows act, n",
        ),
        (
            "act",
            r#"{"act":"fail"}"#,
            Kind::Internal,
            "An error occurred.",
        ),
        (
            "act",
            r#"{"act":"panic"}"#,
            Kind::Internal,
            "An error occurred.",
        ),
        (
            "act",
            r#"{"act":"large"}"#,
            Kind::LimitExceeded,
            "300002 bytes",
        ),
        (
            "act",
            r#"{"act":"not_a_number"}"#,
            Kind::RateLimited,
            "Too many requests",
        ),
        ("mean", "", Kind::Internal, "NaN at `/0`"),
    ] {
        let error = registry
            .call_json(name, cx(), arguments)
            .await
            .expect_err(arguments);
        assert_eq!(error.kind(), kind, "{name} {arguments}: {error}");
        assert!(
            error.model_text().contains(part),
            "{name} {arguments}: {error}"
        );
    }
    let output = registry
        .call_json("act", cx(), r#"{"act":"echo","n":7}"#)
        .await
        .expect("echo");
    assert_eq!(output, ToolOutput::Json(json!({"n": 7})));
    let output = registry
        .call("act", cx(), json!({"act": "rich"}))
        .await
        .expect("rich");
    assert_eq!(output.to_json()["kind"], "agentToolResult");
}

#[tokio::test]
async fn a_panic_is_told_to_the_operator_and_harms_no_other_call() {
    let registry = registry();
    let calls =
        ["echo", "panic", "echo"].map(|act| registry.call("act", cx(), json!({"act": act})));
    let ends = futures::future::join_all(calls).await;
    assert!(ends[0].is_ok() && ends[2].is_ok());
    assert!(
        ends[1]
            .as_ref()
            .expect_err("panic")
            .operator_text()
            .contains("at the disco")
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_is_dropped() {
    let registry = registry();
    let hang = || json!({"act": "hang"});
    let token = CancellationToken::new();
    let cancelled = registry.call(
        "act",
        ToolContext::builder("c").cancel(token.clone()).build(),
        hang(),
    );
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        token.cancel();
    };
    let (cancelled, ()) = tokio::join!(cancelled, cancel);
    assert_eq!(
        cancelled.expect_err("cancelled").kind(),
        ToolErrorKind::Cancelled
    );

    let late = ToolContext::builder("c")
        .deadline(Instant::now() + Duration::from_secs(60))
        .build();
    assert_eq!(
        registry
            .call("act", late, hang())
            .await
            .expect_err("late")
            .kind(),
        ToolErrorKind::Timeout
    );

    let over = ToolContext::builder("c").cancel(token).build();
    let error = registry
        .call("act", over, json!({"act": "echo"}))
        .await
        .expect_err("cancelled before it began");
    assert_eq!(error.kind(), ToolErrorKind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_grace_returns_what_it_has() {
    let spec = ToolSpec::new("partial", "Partial.", json!({})).expect("spec");
    let registry = of([Arc::new(Partial(spec)) as Arc<dyn Tool>]);
    let token = CancellationToken::new();
    let call = registry.call(
        "partial",
        ToolContext::builder("c").cancel(token.clone()).build(),
        json!({}),
    );
    let (result, ()) = tokio::join!(call, async {
        tokio::task::yield_now().await;
        token.cancel();
    });
    assert_eq!(result.expect("partial"), ToolOutput::Json("half".into()));
}
