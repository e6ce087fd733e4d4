//! A server on loopback that answers each connection with bytes, as they are written down here. No HTTP library between
//! the test and the wire: what is broken on purpose stays broken.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
};

/// A piece of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Keeps the connection open and says nothing more.
    Hang,
    /// Repeats until the client goes away.
    Forever(Vec<u8>),
}

pub(crate) type Answer = Vec<Piece>;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Value,
    pub(crate) at: Instant,
}

#[derive(Debug, Default)]
struct State {
    seen: Mutex<Vec<Seen>>,
    /// A connection ended before its answer was over.
    gone: Notify,
}

/// Answers the n-th request with the n-th answer, and all later ones with the last.
#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let port = listener.local_addr().expect("address").port();
        let state = Arc::<State>::default();
        let mut tasks = JoinSet::new();
        let shared = state.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            let answers = Arc::new(answers);
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, answers.clone(), shared.clone()));
            }
        });
        Self {
            port,
            state,
            _tasks: tasks,
        }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().expect("state").clone()
    }

    /// Resolves when a client went away in the middle of an answer.
    pub(crate) async fn gone(&self) {
        self.state.gone.notified().await;
    }
}

async fn serve(mut stream: TcpStream, answers: Arc<Vec<Answer>>, state: Arc<State>) {
    let Some(seen) = read(&mut stream).await else {
        return;
    };
    let nth = {
        let mut all = state.seen.lock().expect("state");
        all.push(seen);
        all.len() - 1
    };
    let answer = answers.get(nth).or(answers.last()).cloned();
    for piece in answer.unwrap_or_default() {
        let written = match piece {
            Piece::Bytes(bytes) => stream.write_all(&bytes).await,
            Piece::Pause(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Piece::Hang => {
                // Ends when the client closes.
                let mut byte = [0];
                let _ = stream.read(&mut byte).await;
                state.gone.notify_one();
                return;
            }
            Piece::Forever(bytes) => loop {
                if stream.write_all(&bytes).await.is_err() {
                    state.gone.notify_one();
                    return;
                }
            },
        };
        if written.is_err() {
            state.gone.notify_one();
            return;
        }
        let _ = stream.flush().await;
    }
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let len = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")
                        .map(str::to_owned)
                })
                .and_then(|len| len.parse::<usize>().ok())
                .unwrap_or(0);
            while bytes.len() < end + 4 + len {
                if stream.read_buf(&mut bytes).await.ok()? == 0 {
                    return None;
                }
            }
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
            return Some(Seen {
                head,
                body,
                at: Instant::now(),
            });
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// An answer with headers and a whole body.
pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    vec![Piece::Bytes([head.as_bytes(), body].concat())]
}

/// The head of an event stream that ends with the connection.
pub(crate) fn stream_head() -> Piece {
    Piece::Bytes(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n"
            .to_vec(),
    )
}

/// An event stream of these pieces.
pub(crate) fn events(pieces: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Answer {
    std::iter::once(stream_head())
        .chain(pieces.into_iter().map(|piece| Piece::Bytes(piece.into())))
        .collect()
}

/// One event of the wire.
pub(crate) fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

pub(crate) fn text(text: &str) -> String {
    data(
        &serde_json::json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"content": text}, "logprobs": null, "finish_reason": null}]}),
    )
}

pub(crate) fn finish(reason: &str) -> String {
    data(
        &serde_json::json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {}, "logprobs": null, "finish_reason": reason}]}),
    )
}

pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A short whole answer.
pub(crate) fn hello() -> Answer {
    events([text("Hello"), finish("stop"), DONE.to_owned()])
}
