//! The promises of `ToolRegistry::call`, as a table where they are alike.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::AgentTool;

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
    ToolRegistry::builder()
        .tool(tool.expect("tool"))
        .tool(typed.expect("tool"))
        .build()
        .expect("registry")
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn cx() -> ToolContext {
    ToolContext::builder("call_1").build()
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
            "the input does not fit",
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

/// Ends by itself once cancelled, with what it has.
#[derive(Debug)]
struct Partial(ToolSpec);

#[async_trait::async_trait]
impl Tool for Partial {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, cx: ToolContext, _: Value) -> Result<ToolOutput, ToolError> {
        cx.cancel().cancelled().await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok(ToolOutput::Json("half".into()))
    }
    fn cancel_grace(&self) -> Duration {
        Duration::from_millis(20)
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_with_grace_returns_what_it_has() {
    let spec = ToolSpec::new("partial", "Partial.", json!({})).expect("spec");
    let registry = ToolRegistry::builder()
        .tool(Arc::new(Partial(spec)))
        .build()
        .expect("registry");
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

fn named(name: &str, title: &str) -> Arc<dyn Tool> {
    AgentTool::new(name)
        .title(title)
        .description("x")
        .run(|_, _: Nothing| async { Ok(1) })
        .expect("tool")
}

#[test]
fn both_offenders_of_a_name_are_named() {
    let build = |tools: Vec<Arc<dyn Tool>>| {
        ToolRegistry::builder()
            .tools(tools)
            .build()
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        build(vec![
            named("a", "First"),
            named("b", "Other"),
            named("a", "Second")
        ]),
        "two tools are called `a`: tool 1 of the list (\"First\") and tool 3 of the list (\"Second\"); rename one"
    );
    assert_eq!(
        build(vec![named("bash", "Mine")]),
        "`bash` is reserved for the `bash` of sixb-tools, but tool 1 of the list (\"Mine\") uses it; rename the custom tool"
    );
}

#[cfg(feature = "sandbox-tools")]
#[test]
fn the_tools_of_this_crate_may_carry_their_names() {
    let registry = ToolRegistry::builder()
        .tools(crate::sandbox_tools())
        .tool(named("x", "X"))
        .build()
        .expect("registry");
    let names: Vec<_> = registry.specs().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["bash", "read", "x"]);
    let clash = ToolRegistry::builder()
        .tools(crate::sandbox_tools())
        .tool(named("read", "Mine"))
        .build();
    let text = clash.expect_err("reserved").to_string();
    assert!(
        text.contains("tool 2 of the list (\"Read a file\")")
            && text.contains("tool 3 of the list (\"Mine\")"),
        "{text}"
    );
}

#[test]
fn a_tool_that_cannot_be_shown_is_refused() {
    let blank = AgentTool::new("a")
        .description(" ")
        .run(|_, _: Nothing| async { Ok(1) });
    assert!(
        blank
            .expect_err("blank")
            .to_string()
            .contains("`a` has no description")
    );
    let name = AgentTool::new("a b")
        .description("x")
        .run(|_, _: Nothing| async { Ok(1) });
    assert!(
        name.expect_err("name")
            .to_string()
            .contains("\"a b\" has a wrong character")
    );
    let list = AgentTool::new("a")
        .description("x")
        .run(|_, _: Vec<u8>| async { Ok(1) });
    assert!(
        list.expect_err("list")
            .to_string()
            .contains("its type is \"array\"")
    );
    let mut spec = ToolSpec::new("a", "x", json!({})).expect("spec");
    spec.input_schema =
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}});
    let open = ToolRegistry::builder()
        .tool(Arc::new(Partial(spec)))
        .build();
    assert!(
        open.expect_err("not flat")
            .to_string()
            .contains("is not flat")
    );
}

/// serde buffers these through its own value type, where arbitrary-precision numbers have broken before.
#[tokio::test]
async fn numbers_reach_tagged_untagged_and_flattened_types() {
    #[derive(Deserialize, JsonSchema)]
    struct Deep {
        shape: Shape,
        #[serde(flatten)]
        more: More,
        exact: Value,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "kind")]
    enum Shape {
        Circle { radius: f64 },
    }
    #[derive(Deserialize, JsonSchema)]
    struct More {
        either: Either,
    }
    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Either {
        Number(f32),
        Text(String),
    }
    let tool = AgentTool::new("deep")
        .description("x")
        .run(|_, input: Deep| async move {
            let Shape::Circle { radius } = input.shape;
            let either = match input.more.either {
                Either::Number(number) => number.to_string(),
                Either::Text(text) => text,
            };
            Ok(json!([radius, either, input.exact]))
        });
    let registry = ToolRegistry::builder()
        .tool(tool.expect("tool"))
        .build()
        .expect("registry");
    let call = |arguments: &'static str| registry.call_json("deep", cx(), arguments);
    let exact = "12345678901234567890123.10";
    let arguments =
        r#"{"shape":{"kind":"Circle","radius":2},"either":1.5,"exact":12345678901234567890123.10}"#;
    let output = call(arguments).await.expect("numbers").to_json();
    assert_eq!(output.to_string(), format!("[2.0,\"1.5\",{exact}]"));
    let error = call(r#"{"shape":{"kind":"Circle","radius":2},"either":[],"exact":1}"#)
        .await
        .expect_err("neither");
    assert!(
        error
            .model_text()
            .contains("at `/either`: [] fits none of the forms: [] is not of type \"number\", or"),
        "{error}"
    );
}
