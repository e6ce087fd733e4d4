//! A typed tool, what a model is told of it, and what it answers to good and bad calls.
//!
//! `cargo run -p sixb-tools --example typed_tool`

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sixb_tools::{AgentTool, ToolContext, ToolError, ToolErrorKind, ToolRegistry, schema};

#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// The amount.
    amount: f64,
    /// The unit of `amount`.
    from: Unit,
    /// The unit wanted.
    to: Unit,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Unit {
    Metre,
    Foot,
    Fathom,
}

impl Unit {
    fn metres(self) -> f64 {
        match self {
            Self::Metre => 1.0,
            Self::Foot => 0.3048,
            Self::Fathom => 1.8288,
        }
    }
}

#[derive(Serialize)]
struct Converted {
    amount: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let convert = AgentTool::new("convert_length")
        .title("Convert a length")
        .description("Converts a length from one unit to another.")
        .run(|_cx: ToolContext, input: Convert| async move {
            if input.amount < 0.0 {
                return Err(ToolError::new(
                    ToolErrorKind::InvalidInput,
                    "a length is not negative",
                ));
            }
            Ok(Converted {
                amount: input.amount * input.from.metres() / input.to.metres(),
            })
        })?;
    let tools = ToolRegistry::builder().tool(convert).build()?;

    for spec in tools.specs() {
        println!("{}", serde_json::to_string_pretty(&schema::openai(spec))?);
    }
    for (name, arguments) in [
        (
            "convert_length",
            r#"{"amount": 20000, "from": "fathom", "to": "metre"}"#,
        ),
        (
            "convert_length",
            r#"{"amount": 1e308, "from": "fathom", "to": "foot"}"#,
        ),
        (
            "convert_length",
            r#"{"amount": -1, "from": "foot", "to": "metre"}"#,
        ),
        (
            "convert_length",
            r#"{"amount": "one", "from": "league", "to": "metre"}"#,
        ),
        ("convert_length", r#"{"amount": 1, "#),
        ("convert", "{}"),
    ] {
        let cx = ToolContext::builder("call_1")
            .deadline(Instant::now() + Duration::from_secs(5))
            .build();
        let answer = match tools.call_json(name, cx, arguments).await {
            Ok(output) => output.to_json(),
            Err(error) => error.to_json(),
        };
        println!("{name} {arguments}\n  {answer}");
    }
    Ok(())
}
