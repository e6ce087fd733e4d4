//! Searches the web and reads the first page that was found, by the tools that an agent would use:
//! `EXA_API_KEY=… cargo run -p sixb-connector-exa --features agent-tools --example researcher -- "who maintains tokio?"`.
//!
//! It asks Exa for real and costs about a cent. Where an agent's model would choose, this takes the first result.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sixb_connector_exa::{
    ApiKey, ApiKeyError, DomainPolicy, EXA, ExaOptions, SecretString, WebBudget, WebFetchOptions,
    WebSearchOptions, exa_connector, exa_web_fetch, exa_web_search,
};
use sixb_tools::{Connectors, ToolContext, ToolError, ToolRegistry};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Asked at each request: a program that runs for months would ask its vault here.
async fn key() -> Result<SecretString, ApiKeyError> {
    match std::env::var("EXA_API_KEY") {
        Ok(key) if !key.trim().is_empty() => Ok(key.trim().into()),
        _ => Err(ApiKeyError::new("set EXA_API_KEY")),
    }
}

async fn call(
    tools: &ToolRegistry,
    connectors: &Connectors,
    name: &str,
    input: Value,
) -> Result<Value> {
    let cx = ToolContext::builder("call")
        .extension(connectors.clone())
        .deadline(Instant::now() + Duration::from_secs(30))
        .build();
    let output = tools.call(name, cx, input).await;
    // An operator reads here, not a model: the whole story.
    let output = output.map_err(|error: ToolError| format!("{name}: {}", error.operator_text()))?;
    Ok(output.to_json())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let query = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "who maintains tokio?".to_owned());
    let policy = DomainPolicy::default().deny(["*.pinterest.com"])?;
    let budget = WebBudget::default().max_calls(5).max_cost_dollars(0.10);
    let search = WebSearchOptions::default()
        .num_results(3)
        .policy(policy.clone())
        .budget(budget.clone());
    let fetch = WebFetchOptions::default()
        .max_characters(1_500)
        .policy(policy)
        .budget(budget);
    let tools = ToolRegistry::builder()
        .tool(exa_web_search(&EXA, search)?)
        .tool(exa_web_fetch(&EXA, fetch)?)
        .build()?;
    let connectors =
        Connectors::new([exa_connector(&EXA, ExaOptions::new(ApiKey::provider(key)))])?;

    let found = call(&tools, &connectors, "web_search", json!({"query": query})).await?;
    println!("{found:#}");
    let first = found["results"][0]["url"]
        .as_str()
        .ok_or("nothing was found")?;
    let page = call(&tools, &connectors, "web_fetch", json!({"url": first})).await?;
    println!("{page:#}");
    Ok(())
}
