//! Agents behind HTTP: an axum handler that streams the events of a run as server-sent events.
//!
//! `cargo run -p sixb --example axum_events`, then in another terminal:
//! `curl -N -d 'Count to three.' http://127.0.0.1:8787/runs`
//!
//! A client that goes away drops the stream, the stream drops the run, and a dropped run is cancelled and cleans up. Who
//! may call this is not decided here: a service that others reach puts its own authentication in front.

use std::convert::Infallible;

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::sse::{Event, KeepAlive, Sse},
    routing::post,
};
use futures::{Stream, StreamExt};
use sixb_agent::{Agent, RunRequest, ScriptedModel, Sixb};
use sixb_sandbox_local::LocalSandboxFactory;
use tokio::net::TcpListener;

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

const SCRIPT: &str = r#"{"steps": [
    {"text": "Let me count. ", "toolCalls": [{"id": "n", "name": "bash", "arguments": {"command": "seq 3 | paste -sd ' '"}}]},
    {"text": "${calls.n.result.stdout}"}
]}"#;

/// The project, made once.
pub(crate) fn project() -> Result<Sixb> {
    let agent = Agent::builder("counter").model(ScriptedModel::from_json(SCRIPT)?);
    let sixb = Sixb::builder("service")
        .sandboxes(LocalSandboxFactory::default())
        .agent(agent)
        .build()?;
    Ok(sixb)
}

/// `POST /runs`: the body is the task, the answer its events, each named by its type.
pub(crate) fn router(sixb: Sixb) -> Router {
    Router::new().route("/runs", post(run)).with_state(sixb)
}

type Events = Sse<
    axum::response::sse::KeepAliveStream<
        futures::stream::BoxStream<'static, Result<Event, Infallible>>,
    >,
>;

async fn run(State(sixb): State<Sixb>, task: String) -> Result<Events, (StatusCode, String)> {
    let refused = |error: sixb_agent::RunError| (StatusCode::BAD_REQUEST, error.to_string());
    let run = sixb
        .run(RunRequest::new("counter", task))
        .await
        .map_err(refused)?;
    Ok(Sse::new(events(run).boxed()).keep_alive(KeepAlive::default()))
}

fn events(run: sixb_agent::Run) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    run.map(|event| {
        let event = serde_json::to_value(&event).unwrap_or_default();
        let name = event["type"].as_str().unwrap_or("event").to_owned();
        Ok(Event::default().event(name).data(event.to_string()))
    })
}

fn main() -> Result<()> {
    sixb_sandbox_local::init();
    tokio::runtime::Runtime::new()?.block_on(async {
        let sixb = project()?;
        let listener = TcpListener::bind("127.0.0.1:8787").await?;
        println!("curl -N -d 'Count to three.' http://127.0.0.1:8787/runs");
        let stop = async {
            let _ = tokio::signal::ctrl_c().await;
        };
        axum::serve(listener, router(sixb.clone()))
            .with_graceful_shutdown(stop)
            .await?;
        // Runs that still go on are cancelled, and their sandboxes gone, before the process ends.
        sixb.close().await;
        Ok(())
    })
}
