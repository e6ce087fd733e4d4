//! A server on loopback that answers each connection with bytes, as they are written down here. No HTTP library between
//! the test and the wire: what is broken on purpose stays broken.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use sixb_connector_exa::{Exa, ExaOptions, SecretString};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinSet,
};

/// The key of all tests: it is looked for in everything that is shown.
pub(crate) const KEY: &str = "sk-planted-000";

/// A piece of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    /// Keeps the connection open and says nothing more.
    Hang,
    /// Repeats so often, or until the client goes away.
    Repeat(Vec<u8>, usize),
}

pub(crate) type Answer = Vec<Piece>;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Value,
}

#[derive(Debug, Default)]
struct State {
    seen: Mutex<Vec<Seen>>,
    connections: Mutex<usize>,
    /// A request came.
    came: Notify,
    /// A client went away before its answer was over, after so many bytes of it.
    gone: Notify,
    written: Mutex<usize>,
}

/// Answers the n-th request with the n-th answer, and all later ones with the last.
#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let port = listener.local_addr().expect("address").port();
        let state = Arc::<State>::default();
        let answers = Arc::new(answers.into_iter().collect::<Vec<_>>());
        let mut tasks = JoinSet::new();
        let shared = state.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                *shared.connections.lock().expect("state") += 1;
                connections.spawn(serve(stream, answers.clone(), shared.clone()));
            }
        });
        Self {
            port,
            state,
            _tasks: tasks,
        }
    }

    /// One that answers with this JSON, always.
    pub(crate) async fn json(value: Value) -> Self {
        Self::start([answer("200 OK", "", value.to_string())]).await
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// An address where nobody listens.
    pub(crate) fn nobody(&self) -> String {
        format!("http://127.0.0.2:{}", self.port)
    }

    pub(crate) fn options(&self) -> ExaOptions {
        ExaOptions::new(SecretString::from(KEY)).base_url(self.base_url())
    }

    pub(crate) fn exa(&self) -> Exa {
        Exa::new(self.options()).expect("client")
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().expect("state").clone()
    }

    /// The one request that came.
    pub(crate) fn only(&self) -> Seen {
        let mut seen = self.seen();
        assert_eq!(seen.len(), 1, "one request a call: {seen:?}");
        seen.remove(0)
    }

    pub(crate) fn connections(&self) -> usize {
        *self.state.connections.lock().expect("state")
    }

    /// Resolves when a request came.
    pub(crate) async fn came(&self) {
        self.state.came.notified().await;
    }

    /// Resolves when a client went away in the middle of an answer; how much of the body it was sent by then.
    pub(crate) async fn gone(&self) -> usize {
        self.state.gone.notified().await;
        *self.state.written.lock().expect("state")
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
    state.came.notify_one();
    let answer = answers.get(nth).or(answers.last()).cloned();
    for piece in answer.unwrap_or_default() {
        let written = match piece {
            Piece::Bytes(bytes) => stream.write_all(&bytes).await,
            Piece::Hang => {
                // Ends when the client closes.
                let _ = stream.read(&mut [0]).await;
                state.gone.notify_one();
                return;
            }
            Piece::Repeat(bytes, times) => {
                let mut written = Ok(());
                for _ in 0..times {
                    written = stream.write_all(&bytes).await;
                    if written.is_err() {
                        break;
                    }
                    *state.written.lock().expect("state") += bytes.len();
                }
                written
            }
        };
        if written.is_err() {
            state.gone.notify_one();
            return;
        }
    }
    let _ = stream.flush().await;
}

async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let len = header(&head, "content-length").and_then(|len| len.parse::<usize>().ok());
            while bytes.len() < end + 4 + len.unwrap_or(0) {
                if stream.read_buf(&mut bytes).await.ok()? == 0 {
                    return None;
                }
            }
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
            return Some(Seen { head, body });
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A header of a head.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// An answer with headers (each ending in `\r\n`) and a whole body.
pub(crate) fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    vec![Piece::Bytes([head.as_bytes(), body].concat())]
}

/// The head of an answer whose body ends with the connection.
pub(crate) fn head() -> Piece {
    Piece::Bytes(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n".to_vec(),
    )
}
