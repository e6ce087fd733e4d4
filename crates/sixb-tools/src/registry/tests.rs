//! The promises of a registry: what it takes, what it checks, and how a call ends.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::AgentTool;

mod build;
mod calls;
mod input;
mod results;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn cx() -> ToolContext {
    ToolContext::builder("call_1").build()
}

fn of(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> ToolRegistry {
    ToolRegistry::builder()
        .tools(tools)
        .build()
        .expect("registry")
}

fn refusal(tools: Vec<Arc<dyn Tool>>) -> String {
    ToolRegistry::builder()
        .tools(tools)
        .build()
        .expect_err("refused")
        .to_string()
}

/// A tool whose handler never matters.
fn idle<I>(name: &str, title: &str, description: &str) -> Result<Arc<dyn Tool>, ToolBuildError>
where
    I: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
{
    AgentTool::new(name)
        .title(title)
        .description(description)
        .run(|_, _: I| async { Ok(1) })
}

/// A tool that gives back the JSON that it was asked for.
fn giving(value: Value) -> ToolRegistry {
    let tool = AgentTool::new("give")
        .description("Gives.")
        .run(move |_, _: Nothing| std::future::ready(Ok(value.clone())));
    of([tool.expect("tool")])
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
