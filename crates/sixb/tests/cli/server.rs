//! A model server on loopback: answers each request with the next recorded stream, word by word.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

pub(crate) struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

/// A step of a recorded answer.
pub(crate) enum Step {
    Say(&'static str),
    /// Name and arguments.
    Call(&'static str, Value),
}

impl Server {
    /// Each answer takes `pause` before each of its words. The thread ends with the test's process.
    pub(crate) fn start(answers: Vec<Step>, pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = listener.local_addr().expect("address").port();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let requests = seen.clone();
        thread::spawn(move || {
            for (answer, stream) in answers.iter().zip(listener.incoming()) {
                let mut stream = stream.expect("connection");
                requests.lock().expect("seen").push(read(&mut stream));
                // A client may go away in the middle.
                let _ = write(&mut stream, answer, pause);
            }
        });
        Self { port, seen }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Requests, head and body.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("seen").clone()
    }
}

fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 64 << 10];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let len = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse::<usize>()
                        .ok()
                })
                .unwrap_or(0);
            if body.len() >= len {
                return text;
            }
        }
        let read = stream.read(&mut piece).expect("request");
        assert!(read > 0, "the request ended early: {text}");
        bytes.extend_from_slice(&piece[..read]);
    }
}

fn write(stream: &mut TcpStream, answer: &Step, pause: Duration) -> std::io::Result<()> {
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    )?;
    match answer {
        Step::Say(text) => {
            for word in text.split_inclusive([' ', '\n']) {
                thread::sleep(pause);
                stream.write_all(chunk(json!({"content": word}), Value::Null).as_bytes())?;
            }
            stream.write_all(chunk(json!({}), json!("stop")).as_bytes())?;
        }
        Step::Call(name, arguments) => {
            let call = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
            stream.write_all(chunk(json!({"tool_calls": [call]}), Value::Null).as_bytes())?;
            stream.write_all(chunk(json!({}), json!("tool_calls")).as_bytes())?;
        }
    }
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}});
    stream.write_all(format!("data: {usage}\n\ndata: [DONE]\n\n").as_bytes())
}
