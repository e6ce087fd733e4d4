//! A tool that reaches an outside service by a connector: `cargo run -p sixb --example connector_tool`.
//!
//! The client is made once per process, when a call first needs it. Address and key stay here, with the host: neither the
//! model nor the sandbox sees them. The service of this example is a stand-in.

use std::{collections::BTreeMap, sync::Arc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sixb_agent::{Agent, RunRequest, ScriptedModel, Sixb};
use sixb_sandbox_local::LocalSandboxFactory;
use sixb_tools::{
    AgentTool, Connector, ConnectorHandle, Credential, CredentialError, CredentialProvider,
    ExposeSecret, SecretString, Tool, ToolContext, ToolError, ToolErrorKind, async_trait,
};

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// How tools name the service, and what they get.
const CRM: ConnectorHandle<Crm> = ConnectorHandle::new("crm");

/// A client of a customer database.
struct Crm {
    key: Credential,
    customers: BTreeMap<&'static str, u32>,
}

impl Crm {
    async fn connect(key: Credential) -> Result<Self, ToolError> {
        // A real one opens its connection here. A failure is not kept: the next call connects again.
        Ok(Self {
            key,
            customers: [("Ada", 12), ("Grace", 7)].into(),
        })
    }

    async fn orders(&self, customer: &str) -> Result<u32, ToolError> {
        // Resolved for each request, so that keys can rotate.
        let key = self.key.resolve().await?;
        if key.expose_secret().is_empty() {
            return Err(ToolError::of(ToolErrorKind::PermissionDenied));
        }
        self.customers.get(customer).copied().ok_or_else(|| {
            ToolError::new(ToolErrorKind::NotFound, format!("no customer `{customer}`"))
        })
    }
}

/// Where keys come from: a vault, a token endpoint, a file that is rewritten.
struct Vault;

#[async_trait]
impl CredentialProvider for Vault {
    async fn resolve(&self) -> Result<SecretString, CredentialError> {
        Ok("key-of-the-hour".into())
    }
}

#[derive(Deserialize, JsonSchema)]
struct Customer {
    /// First name.
    name: String,
}

fn orders() -> Result<Arc<dyn Tool>> {
    let tool = AgentTool::new("count_orders")
        .description("Counts the orders of a customer.")
        .run(|cx: ToolContext, input: Customer| async move {
            let crm = cx.connector(&CRM).await?;
            Ok::<Value, ToolError>(json!({"orders": crm.orders(&input.name).await?}))
        })?;
    Ok(tool)
}

const SCRIPT: &str = r#"{"steps": [
    {"toolCalls": [
        {"id": "ada", "name": "count_orders", "arguments": {"name": "Ada"}},
        {"id": "bob", "name": "count_orders", "arguments": {"name": "Bob"}}]},
    {"text": "Ada ordered ${calls.ada.result.orders} times; Bob: ${calls.bob.error.message}."}
]}"#;

/// Runs the agent and returns its answer.
pub(crate) async fn answer() -> Result<String> {
    let agent = Agent::builder("support")
        .model(ScriptedModel::from_json(SCRIPT)?)
        .tool(orders()?);
    let sixb = Sixb::builder("shop")
        .sandboxes(LocalSandboxFactory::default())
        .connector(Connector::new(&CRM, || {
            Crm::connect(Credential::provider(Vault))
        }))
        .agent(agent)
        .build()?;
    let run = sixb
        .run(RunRequest::new("support", "How often did they order?"))
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
    sixb_sandbox_local::init();
    let runtime = tokio::runtime::Runtime::new()?;
    println!("{}", runtime.block_on(answer())?);
    Ok(())
}
