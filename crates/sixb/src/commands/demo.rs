//! `sixb demo`: a scripted turn on real data, in a real sandbox.
//!
//! Only the model is played: the sandbox, the commands, the files and the Rust tool are what every run uses.

mod chart;
mod percentiles;

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use sixb_agent::{Agent, Model, RunRequest, ScriptedModel, Sixb};
use sixb_sandbox::{
    Capabilities, CreateOptions, FileWrite, Sandbox, SandboxFactory, SandboxPath, SandboxRecord,
};

use super::run::{Output, follow};
use crate::{blobs, cli::DemoArgs, config::Config, factory, failure::Exit, interrupt, terminal};

/// What the model says and calls, step by step.
const SCRIPT: &str = include_str!("../../demo/script.json");
/// Orders of a shop that does not exist, made once with a fixed seed.
const ORDERS: &[u8] = include_bytes!("../../demo/orders.csv");

const TASK: &str = "How did the orders in orders.csv go this year? Write a report.";

pub(super) async fn run(args: DemoArgs) -> Result<Exit> {
    let cancel = interrupt::watch()?;
    terminal::note(
        "this turn is scripted: the model's part is played; sandbox, commands, files and tools are real",
    );
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::from_json(SCRIPT)?.named("demo"));
    let project = Sixb::builder("sixb-demo")
        .blobs(blobs::store(&args.blobs, &Config::default())?)
        .sandboxes(WithOrders(factory::local()))
        .agent(
            Agent::builder("analyst")
                .model(model)
                .tools([percentiles::tool()?, chart::tool()?]),
        )
        .build()?;
    let output = Output {
        folder: args.out,
        transcripts: args.transcripts,
        dump_requests: args.dump_requests,
        json: args.json,
        starting: "starting the sandbox".into(),
    };
    follow(&project, RunRequest::new("analyst", TASK), output, &cancel).await
}

/// A factory whose sandboxes have the data in their working directory.
#[derive(Debug)]
struct WithOrders(Arc<dyn SandboxFactory>);

impl std::fmt::Display for WithOrders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl SandboxFactory for WithOrders {
    fn provider(&self) -> &'static str {
        self.0.provider()
    }

    async fn create(&self, options: CreateOptions) -> sixb_sandbox::Result<Arc<dyn Sandbox>> {
        let sandbox = self.0.create(options).await?;
        let orders = FileWrite::new(SandboxPath::parse("orders.csv")?, ORDERS);
        match sandbox.write_files(vec![orders]).await {
            Ok(()) => Ok(sandbox),
            Err(error) => {
                // Nothing may be left of a creation that failed; that it failed is the error to tell.
                let _ = sandbox.destroy().await;
                Err(error)
            }
        }
    }

    async fn probe(&self) -> sixb_sandbox::Result<Capabilities> {
        self.0.probe().await
    }

    async fn list(&self) -> sixb_sandbox::Result<Vec<SandboxRecord>> {
        self.0.list().await
    }

    async fn sweep(&self) -> sixb_sandbox::Result<Vec<String>> {
        self.0.sweep().await
    }
}
