//! A scripted run with a tool of one's own, all events as JSON lines: `cargo run -p sixb-agent --example scripted_run`.
//!
//! The tool needs no sandbox, so neither does this example: its factory only says that there is none.

use std::{fmt, sync::Arc};

use futures::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sixb_agent::{Agent, RunRequest, ScriptedModel, Sixb};
use sixb_sandbox::{
    Capabilities, CreateOptions, Result, Sandbox, SandboxError, SandboxFactory, SandboxRecord,
};
use sixb_tools::{AgentTool, ToolContext, ToolError};

#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// Degrees Celsius.
    celsius: f64,
}

const SCRIPT: &str = r#"{"steps": [
    {"text": "Two conversions at once.",
     "toolCalls": [{"id": "ice", "name": "to_fahrenheit", "arguments": {"celsius": 0}},
                   {"id": "tea", "name": "to_fahrenheit", "arguments": {"celsius": 95}}]},
    {"text": "Ice melts at ${calls.ice.result.fahrenheit} °F, tea is best at ${calls.tea.result.fahrenheit} °F."}
]}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let convert = AgentTool::new("to_fahrenheit")
        .description("Converts degrees Celsius to Fahrenheit.")
        .run(|_cx: ToolContext, input: Convert| async move {
            Ok::<_, ToolError>(json!({"fahrenheit": input.celsius * 1.8 + 32.0}))
        })?;
    let agent = Agent::builder("thermometer")
        .model(ScriptedModel::from_json(SCRIPT)?)
        .tool(convert)
        .without_sandbox_tools();
    let sixb = Sixb::builder("example")
        .sandboxes(NoSandboxes)
        .agent(agent)
        .build()?;

    let mut run = sixb
        .run(RunRequest::new("thermometer", "How warm is tea?"))
        .await?;
    while let Some(event) = run.next().await {
        println!("{}", serde_json::to_string(&event)?);
    }
    sixb.close().await;
    Ok(())
}

/// Real programs use `sixb_sandbox_local::LocalSandboxFactory`.
#[derive(Debug)]
struct NoSandboxes;

impl fmt::Display for NoSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no sandboxes")
    }
}

#[sixb_tools::async_trait]
impl SandboxFactory for NoSandboxes {
    fn provider(&self) -> &'static str {
        "none"
    }

    async fn create(&self, options: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        options.cancel.cancelled().await;
        Err(SandboxError::Cancelled { op: "create" })
    }

    async fn probe(&self) -> Result<Capabilities> {
        Err(SandboxError::provider(
            "probe",
            "there are no sandboxes here",
            None,
        ))
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        Ok(Vec::new())
    }

    async fn sweep(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}
