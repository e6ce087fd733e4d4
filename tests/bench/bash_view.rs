//! What the tool `bash` does to large output before a model sees it.

use std::time::Instant;

use serde_json::json;
use sixb_sandbox::{CreateOptions, LazySandbox, Workspace};
use sixb_sandbox_local::LocalSandboxFactory;
use sixb_tools::{ToolContext, ToolRegistry, sandbox::sandbox_tools};

use crate::figure::{Report, median, ms};

pub(crate) async fn run(report: &mut Report) {
    if !report.wants("bash") {
        return;
    }
    let (state, folder) = (
        tempfile::tempdir().expect("folder"),
        tempfile::tempdir().expect("folder"),
    );
    // 5 MB of JSON that fits nowhere: the array is cut to whole elements.
    let row = json!({"id": 123_456, "name": "a name with \"quotes\"", "values": [1.25, 2.5e10, null, true]});
    let text = format!("[\n  {}\n]", vec![row.to_string(); 60_000].join(",\n  "));
    assert!(text.len() > 5_000_000);
    std::fs::write(folder.path().join("big.json"), &text).expect("file");
    std::fs::write(folder.path().join("big.bin"), "x".repeat(text.len())).expect("file");
    let options = CreateOptions::default().workspace(Workspace::HostFolder {
        path: folder.path().to_owned(),
        read_only: true,
    });
    let factory = LocalSandboxFactory::default().state_dir(state.path());
    let sandbox = LazySandbox::boot(std::sync::Arc::new(factory), options);
    let tools = ToolRegistry::builder()
        .tools(sandbox_tools())
        .build()
        .expect("tools");
    let mut number = 0;
    let mut cat = async |file: &str| {
        number += 1;
        let context = ToolContext::builder(format!("call-{number}"))
            .extension(sandbox.clone())
            .build();
        let begin = Instant::now();
        let result = tools
            .call("bash", context, json!({"command": format!("cat {file}")}))
            .await
            .expect("bash");
        (ms(begin.elapsed()), result.to_json())
    };
    let mut extra = Vec::new();
    for round in 0..25 {
        let (plain, _) = cat("big.bin").await;
        let (json, result) = cat("big.json").await;
        assert_eq!(result["stdoutTruncated"], true);
        assert!(
            serde_json::from_str::<serde_json::Value>(result["stdout"].as_str().expect("text"))
                .is_ok()
        );
        if round >= 5 {
            extra.push(json - plain);
        }
    }
    report.value(
        "bash: 5 MB of JSON more than 5 MB of text",
        "ms",
        median(extra.into_iter()),
        10.0,
    );
    sandbox.destroy().await.expect("destroyed");
}
