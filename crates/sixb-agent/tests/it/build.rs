//! What `build()` and `run()` refuse.

use serde_json::json;
use sixb_agent::{Agent, AgentBuilder, BuildError, RunRequest, ScriptedModel, Sixb};
use sixb_tools::{AgentTool, ToolContext, ToolError};

use crate::support::{Fault, Wait, project, wait};

fn agent(id: &str) -> AgentBuilder {
    Agent::builder(id).model(ScriptedModel::from_json(r#"{"steps":[{}]}"#).expect("script"))
}

fn refused(agents: impl IntoIterator<Item = AgentBuilder>) -> BuildError {
    let builder = Sixb::builder("p").sandboxes(Fault::Refuses);
    agents
        .into_iter()
        .fold(builder, |builder, agent| builder.agent(agent))
        .build()
        .expect_err("refused")
}

#[test]
fn no_sandbox_factory_names_the_crates() {
    let error = Sixb::builder("p")
        .agent(agent("a"))
        .build()
        .expect_err("refused")
        .to_string();
    assert!(
        error.contains("sixb-sandbox-local") && error.contains("sixb-sandbox-smolvm"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_with_an_agent_is_named() {
    let reserved = AgentTool::new("bash")
        .description("Mine.")
        .run(|_: ToolContext, input: Wait| async move { Ok::<_, ToolError>(input.ms) })
        .expect("tool");
    for (agents, expect) in [
        (vec![], "no agent"),
        (vec![agent("a"), agent("a")], "two agents have the id `a`"),
        (vec![agent("../a")], "agent id \"../a\""),
        (vec![Agent::builder("a")], "agent `a` has no model"),
        (vec![agent("a").max_steps(0)], "agent `a`: max_steps is 0"),
        (
            vec![agent("a").timeout(std::time::Duration::ZERO)],
            "agent `a`: timeout is 0",
        ),
        (
            vec![agent("a").tool(wait()).tool(wait())],
            "two tools are called `wait`",
        ),
        (vec![agent("a").tool(reserved)], "`bash` is reserved"),
    ] {
        let error = refused(agents).to_string();
        assert!(error.contains(expect), "{error}");
    }
}

#[tokio::test]
async fn a_run_that_cannot_start_says_why() {
    let sixb = project(Fault::Refuses, json!({"steps": [{}]}), |agent| agent);
    for (request, expect) in [
        (
            RunRequest::new("b", "x"),
            "no agent has the id `b`; known agents: a",
        ),
        (RunRequest::new("a", " \n"), "the task is blank"),
        (
            RunRequest::new("a", "x".repeat((1 << 20) + 1)),
            "the task has 1048577 bytes",
        ),
        (
            RunRequest::new("a", "x").transcripts("/proc/nowhere"),
            "transcript /proc/nowhere/run_",
        ),
        (
            RunRequest::new("a", "x").outputs("/proc/nowhere"),
            "output folder /proc/nowhere: ",
        ),
    ] {
        let error = sixb.run(request).await.expect_err("refused").to_string();
        assert!(error.contains(expect), "{error}");
    }
    sixb.close().await;
    let error = sixb
        .run(RunRequest::new("a", "x"))
        .await
        .expect_err("closed")
        .to_string();
    assert!(error.contains("closed"), "{error}");
}
