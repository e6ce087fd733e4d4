//! Connectors of a project, as its tools see them.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::SeqCst},
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sixb_agent::{Agent, RunRequest, ScriptedModel, Sixb};
use sixb_tools::{AgentTool, Connector, ConnectorHandle, Tool, ToolContext, ToolError};

use crate::support::Fault;

struct Crm;

const CRM: ConnectorHandle<Crm> = ConnectorHandle::new("crm");

#[derive(Debug, Deserialize, JsonSchema)]
struct Nothing {}

fn lookup() -> Arc<dyn Tool> {
    AgentTool::new("lookup")
        .description("Looks a customer up.")
        .run(|cx: ToolContext, _: Nothing| async move {
            cx.connector(&CRM).await?;
            Ok::<_, ToolError>("found")
        })
        .expect("tool")
}

fn project(
    connectors: impl IntoIterator<Item = Connector>,
) -> Result<Sixb, sixb_agent::BuildError> {
    let script = json!({"steps": [
        {"toolCalls": [{"id": "a", "name": "lookup"}, {"id": "b", "name": "lookup"}]},
        {"text": "${calls.a.result} ${calls.b.result}"}]});
    let model = ScriptedModel::from_json(&script.to_string()).expect("script");
    let agent = Agent::builder("a")
        .model(model)
        .tool(lookup())
        .groups(["sales", "sales"]);
    let builder = Sixb::builder("p")
        .sandboxes(Fault::Hangs)
        .blobs(sixb_artifacts::store::BlobStore::memory())
        .agent(agent);
    connectors
        .into_iter()
        .fold(builder, |builder, connector| builder.connector(connector))
        .build()
}

#[tokio::test]
async fn a_project_shares_one_client_among_all_its_runs() {
    let made = Arc::new(AtomicU32::new(0));
    let counter = made.clone();
    let connector = Connector::new(&CRM, move || {
        counter.fetch_add(1, SeqCst);
        async { Ok(Crm) }
    });
    let sixb = project([connector]).expect("project");
    assert_eq!(sixb.agent("a").expect("agent").groups(), ["sales"]);
    assert_eq!(made.load(SeqCst), 0, "made when it is needed");
    for _ in 0..3 {
        let outcome = sixb
            .run(RunRequest::new("a", "go"))
            .await
            .expect("run")
            .finish()
            .await;
        assert_eq!(outcome.expect("outcome").text, "found found");
    }
    assert_eq!(made.load(SeqCst), 1);
}

#[tokio::test]
async fn a_connector_that_is_not_set_up_is_named() {
    let outcome = project([])
        .expect("project")
        .run(RunRequest::new("a", "go"))
        .await
        .expect("run")
        .finish()
        .await;
    let reason = outcome.expect("outcome").status.to_string();
    assert!(
        reason.contains("The connector `crm` is not set up in this project."),
        "{reason}"
    );
}

#[test]
fn two_connectors_of_one_name_do_not_build() {
    let connector = || Connector::new(&CRM, || async { Ok(Crm) });
    let error = project([connector(), connector()]).expect_err("twice");
    assert_eq!(
        error.to_string(),
        "two connectors are called `crm`: rename one"
    );
}
