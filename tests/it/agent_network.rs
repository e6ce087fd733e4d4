//! A run whose sandbox reaches for what it may not: the model's command sees the refusal, people see it in the run.

use serde_json::json;
use sixb_agent::{RunRequest, RunStatus};
use sixb_sandbox::{CreateOptions, NetworkPolicy};

use crate::agent_lab::{AgentLab, bash};

#[tokio::test]
async fn case_63_a_refusal_is_seen_inside_and_listed_in_the_run() {
    let lab = AgentLab::new(
        json!([
            bash("plain", "curl -sS -m 5 -D - http://unlisted.test/"),
            bash("tls", "curl -sS -m 5 -D - https://unlisted.test/; echo"),
            {"text": "${calls.plain.result.stdout}"},
        ]),
        |agent| agent,
    );
    let sandbox = CreateOptions::default().network(NetworkPolicy::Restricted(Vec::new()));
    let request: RunRequest = lab.request().sandbox(sandbox);
    let outcome = lab.play(request).await;
    assert_eq!(outcome.status, RunStatus::Completed, "{outcome:?}");
    let seen = outcome.text.to_lowercase();
    assert!(
        seen.contains("403") && seen.contains("x-sixb-denied: origin"),
        "{seen}"
    );
    for target in ["http://unlisted.test:80", "unlisted.test:443"] {
        assert!(
            outcome
                .diagnostics
                .iter()
                .any(|diagnostic| diagnostic.code == "network_denied"
                    && diagnostic.message.contains(target)),
            "{target} in {:?}",
            outcome.diagnostics
        );
    }
}
