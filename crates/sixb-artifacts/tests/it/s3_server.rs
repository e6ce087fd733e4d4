//! A real S3 wire for tests: moto, from PyPI, in a folder below `target/`; and a faulty line to it.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};

use sixb_artifacts::{Digest, store::BlobStore};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const REQUIREMENTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/it/s3_server/requirements.txt"
);
const SERVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/s3_server/serve.py");
pub(crate) const BUCKET: &str = "artifacts";

/// A server with one empty bucket. It ends when dropped, and also when the test process is killed: its input ends then.
pub(crate) struct S3Server {
    child: Child,
    pub(crate) port: u16,
}

impl S3Server {
    pub(crate) async fn start() -> Self {
        let server = tokio::task::spawn_blocking(Self::spawn)
            .await
            .expect("no panic");
        let made = request(server.port, &format!("PUT /{BUCKET}"), "").await;
        assert!(made.starts_with("HTTP/1.1 200"), "{made}");
        server
    }

    fn spawn() -> Self {
        let packages = packages();
        let mut child = Command::new("python3")
            .arg(SERVE)
            .env("PYTHONPATH", &packages)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the S3 server starts");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_line(&mut line).expect("a line");
        let port = line.trim().parse().unwrap_or_else(|_| {
            panic!(
                "the S3 server gave no port: remove {} and run again",
                packages.display()
            )
        });
        Self { child, port }
    }

    /// The store, by its own URL, as a user opens it.
    pub(crate) fn blobs(&self) -> BlobStore {
        open(self.port)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn options(port: u16) -> Vec<(&'static str, String)> {
    vec![
        ("endpoint", format!("http://127.0.0.1:{port}")),
        ("region", "us-east-1".into()),
        ("allow_http", "true".into()),
        ("access_key_id", "test".into()),
        ("secret_access_key", "test".into()),
    ]
}

pub(crate) fn open(port: u16) -> BlobStore {
    BlobStore::open_url(&format!("s3://{BUCKET}/runs"), options(port)).expect("store")
}

/// One plain HTTP request; the whole answer as text.
pub(crate) async fn request(port: u16, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("connected");
    let head = format!(
        "{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("answered");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The server's packages, installed once for these requirements and this Python. Tests in other processes wait for
/// whoever installs them. Into a folder by pip alone: `venv` is a package of its own on Debian.
fn packages() -> PathBuf {
    let mut key = fs::read(REQUIREMENTS).expect("requirements");
    let version = Command::new("python3")
        .arg("-VV")
        .output()
        .expect("python3 starts");
    key.extend(version.stdout);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("s3-server-{}", &Digest::of(&key).hex()[..12]));
    let ready = folder.join("ready");
    if ready.exists() {
        return folder;
    }
    let lock = File::create(folder.with_extension("lock")).expect("lock file");
    lock.lock().expect("locked");
    if ready.exists() {
        return folder;
    }
    let _ = fs::remove_dir_all(&folder);
    let arguments = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-warn-script-location",
    ];
    let mut pip = Command::new("python3");
    pip.args(arguments)
        .arg("--target")
        .arg(&folder)
        .args(["--requirement", REQUIREMENTS]);
    if let Err(problem) = run(&mut pip) {
        panic!(
            "the tests of S3 need a server from PyPI, and installing it failed:\n{problem}\nInstall it by hand:\n\
             sudo apt-get install -y python3-pip && python3 -m pip install --target {0} --requirement {REQUIREMENTS} && \
             touch {0}/ready",
            folder.display()
        );
    }
    File::create(&ready).expect("marked as ready");
    folder
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{command:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// What the line does with the next connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing: it passes all bytes on.
    None,
    /// It passes so many bytes of the client on and is cut then.
    CutAfter(usize),
    /// It passes so many bytes of the client on and then no more, but stays open.
    StallAfter(usize),
    /// It answers so many requests with 500 by itself.
    ServerError(usize),
}

/// A line to the server on a port of its own, with a fault that can be changed.
pub(crate) struct Line {
    pub(crate) port: u16,
    fault: Arc<Mutex<Fault>>,
    task: tokio::task::JoinHandle<()>,
}

impl Line {
    pub(crate) async fn to(server: &S3Server, fault: Fault) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("bound");
        let port = listener.local_addr().expect("address").port();
        let (fault, target) = (Arc::new(Mutex::new(fault)), server.port);
        let shared = fault.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let fault = {
                    let mut fault = shared.lock().expect("lock");
                    let now = *fault;
                    *fault = match now {
                        Fault::ServerError(0 | 1) => Fault::None,
                        Fault::ServerError(left) => Fault::ServerError(left - 1),
                        other => other,
                    };
                    now
                };
                tokio::spawn(pass(client, target, fault));
            }
        });
        Self { port, fault, task }
    }

    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock().expect("lock") = fault;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(mut client: TcpStream, target: u16, fault: Fault) {
    if matches!(fault, Fault::ServerError(1..)) {
        drain_request(&mut client).await;
        let _ = client.write_all(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
        return;
    }
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", target)).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let (mut passed, mut buffer) = (0, vec![0; 16 * 1024]);
        loop {
            let room = match fault {
                Fault::CutAfter(most) | Fault::StallAfter(most) => {
                    (most - passed).min(buffer.len())
                }
                _ => buffer.len(),
            };
            if room == 0 {
                if matches!(fault, Fault::StallAfter(_)) {
                    std::future::pending::<()>().await;
                }
                return;
            }
            match from_client.read(&mut buffer[..room]).await {
                Ok(read @ 1..) if to_server.write_all(&buffer[..read]).await.is_ok() => {
                    passed += read
                }
                _ => return,
            }
        }
    };
    let down = tokio::io::copy(&mut from_server, &mut to_client);
    // Whichever ends first ends both: the sockets are dropped.
    tokio::select! {
        () = up => {}
        _ = down => {}
    }
}

/// Reads a request with its body, so that the client is ready for the answer.
async fn drain_request(client: &mut TcpStream) {
    let (mut request, mut buffer) = (Vec::new(), vec![0; 16 * 1024]);
    loop {
        if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| {
                line.strip_prefix("content-length:")?
                    .trim()
                    .parse::<usize>()
                    .ok()
            });
            if request.len() >= end + 4 + length.unwrap_or(0) {
                return;
            }
        }
        match client.read(&mut buffer).await {
            Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
}
