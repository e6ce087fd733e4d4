//! A tool that makes an image, which the model then sees: `cargo run -p sixb --example image_tool`.
//!
//! The model's part is played by a script, so that this runs without a key. The image is a file of the run: it is kept in
//! the store, lies in the sandbox, goes to the model as an image, and comes with the answer.

use std::{io::Cursor, sync::Arc};

use image::{ImageFormat, Rgb, RgbImage};
use schemars::JsonSchema;
use serde::Deserialize;
use sixb_agent::{Agent, Model, Outcome, RunRequest, ScriptedModel, Sixb};
use sixb_artifacts::store::BlobStore;
use sixb_sandbox_local::LocalSandboxFactory;
use sixb_tools::{AgentTool, Tool, ToolContext, ToolError, ToolOutput};

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// What the model has to give; it reads the comments.
#[derive(Deserialize, JsonSchema)]
struct Swatch {
    /// Red, green and blue, each from 0 to 255.
    colour: [u8; 3],
}

fn swatch() -> Result<Arc<dyn Tool>> {
    let tool = AgentTool::new("swatch")
        .description("Paints a small picture of one colour, and shows it to you.")
        .run(|cx: ToolContext, input: Swatch| async move {
            let mut png = Cursor::new(Vec::new());
            RgbImage::from_pixel(64, 64, Rgb(input.colour)).write_to(&mut png, ImageFormat::Png)?;
            // At most 25 MiB a file and 100 MiB a run. The name is for people; the bytes give the type.
            let kept = cx
                .artifacts()?
                .put(png.into_inner(), "swatch.png", None)
                .await?;
            // A file in the result is shown: an image as an image, of text the start.
            Ok::<_, ToolError>(ToolOutput::file(kept.file))
        })?;
    Ok(tool)
}

const SCRIPT: &str = r#"{"steps": [
    {"toolCalls": [{"id": "paint", "name": "swatch", "arguments": {"colour": [38, 84, 124]}}]},
    {"toolCalls": [{"id": "size", "name": "bash", "arguments": {"command": "wc -c < .sixb/agent/artifacts/*/*-swatch.png"}}]},
    {"text": "A calm blue, in ${calls.size.result.stdout}bytes."}
]}"#;

/// For a real model: `OpenAiModel::from_env("openai/gpt-5.5")`, with AI_GATEWAY_API_KEY, OPENAI_API_KEY or OPENAI_BASE_URL.
fn model() -> Result<Arc<dyn Model>> {
    Ok(Arc::new(ScriptedModel::from_json(SCRIPT)?))
}

/// Runs the agent and returns its answer and the files that come with it.
pub(crate) async fn answer() -> Result<Outcome> {
    let agent = Agent::builder("painter").model(model()?).tool(swatch()?);
    let sixb = Sixb::builder("studio")
        .sandboxes(LocalSandboxFactory::default())
        // For files that last: `BlobStore::local(folder)`, or `open_url` for S3 and others.
        .blobs(BlobStore::memory())
        .agent(agent)
        .build()?;
    let run = sixb
        .run(RunRequest::new("painter", "Show me a calm blue."))
        .await?;
    let outcome = run
        .finish()
        .await
        .ok_or("the run was read to its end already")?;
    sixb.close().await;
    match outcome.completed() {
        true => Ok(outcome),
        false => Err(outcome.status.to_string().into()),
    }
}

fn main() -> Result<()> {
    // First of all: sandboxes start from this program, in a process of their own.
    sixb_sandbox_local::init();
    let outcome = tokio::runtime::Runtime::new()?.block_on(answer())?;
    println!("{}", outcome.text);
    for file in outcome.files {
        println!("{} ({} bytes)", file.path, file.size_bytes);
    }
    Ok(())
}
