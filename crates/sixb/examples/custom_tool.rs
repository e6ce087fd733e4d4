//! A tool of one's own beside `bash`, in a real sandbox: `cargo run -p sixb --example custom_tool`.
//!
//! The model's part is played by a script, so that this runs without a key. For a real one, see `model` below.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sixb_agent::{Agent, Model, RunRequest, ScriptedModel, Sixb};
use sixb_sandbox_local::LocalSandboxFactory;
use sixb_tools::{AgentTool, Tool, ToolContext, ToolError, ToolErrorKind};

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// What the model has to give; it reads the comments.
#[derive(Deserialize, JsonSchema)]
struct Price {
    /// Article number, such as `A-100`.
    article: String,
    /// How many pieces.
    #[schemars(range(min = 1))]
    pieces: u32,
}

/// What it gets back.
#[derive(Serialize)]
struct Quote {
    euros: f64,
    discount: bool,
}

fn price() -> Result<Arc<dyn Tool>> {
    let tool = AgentTool::new("price")
        .description("Gives the price of an article.")
        .run(|cx: ToolContext, input: Price| async move {
            cx.note(format!("looking up {}", input.article));
            let each = match input.article.as_str() {
                "A-100" => 2.5,
                "A-200" => 19.0,
                // A text for the model, so that it can correct the call.
                other => {
                    return Err(ToolError::new(
                        ToolErrorKind::NotFound,
                        format!("no article `{other}`; there are A-100 and A-200"),
                    ));
                }
            };
            let discount = input.pieces >= 10;
            let factor = if discount { 0.9 } else { 1.0 };
            Ok(Quote {
                euros: each * f64::from(input.pieces) * factor,
                discount,
            })
        })?;
    Ok(tool)
}

const SCRIPT: &str = r#"{"steps": [
    {"toolCalls": [
        {"id": "few", "name": "price", "arguments": {"article": "A-200", "pieces": 2}},
        {"id": "many", "name": "price", "arguments": {"article": "A-100", "pieces": 40}},
        {"id": "day", "name": "bash", "arguments": {"command": "date -u -d @0 +%A"}}]},
    {"text": "2 pieces cost ${calls.few.result.euros} €, 40 pieces ${calls.many.result.euros} €. It all began on a ${calls.day.result.stdout}"}
]}"#;

/// For a real model: `OpenAiModel::from_env("openai/gpt-5.5")`, with AI_GATEWAY_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL.
fn model() -> Result<Arc<dyn Model>> {
    Ok(Arc::new(ScriptedModel::from_json(SCRIPT)?))
}

/// Runs the agent and returns its answer.
pub(crate) async fn answer() -> Result<String> {
    let agent = Agent::builder("sales").model(model()?).tool(price()?);
    let sixb = Sixb::builder("shop")
        .sandboxes(LocalSandboxFactory::default())
        .agent(agent)
        .build()?;
    let run = sixb
        .run(RunRequest::new("sales", "What do 2 and 40 pieces cost?"))
        .await?;
    let outcome = run
        .finish()
        .await
        .ok_or("the run was read to its end already")?;
    sixb.close().await;
    match outcome.completed() {
        true => Ok(outcome.text),
        false => Err(outcome.status.to_string().into()),
    }
}

fn main() -> Result<()> {
    // First of all: sandboxes start from this program, in a process of their own.
    sixb_sandbox_local::init();
    let runtime = tokio::runtime::Runtime::new()?;
    println!("{}", runtime.block_on(answer())?);
    Ok(())
}
