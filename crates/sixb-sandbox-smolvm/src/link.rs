//! The host's end of the words in `guest/wire.rs`: one connection for each request, every length and wait bounded.

use std::{io, path::PathBuf, time::Duration};

use sixb_sandbox::{FileKind, Result, SandboxError, SandboxPath};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use crate::wire;

/// A guest that says nothing for this long, where it has something to say, is broken.
const ANSWER: Duration = Duration::from_secs(120);

/// Where a guest is reached.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    socket: PathBuf,
}

impl Link {
    pub(crate) fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
        }
    }

    /// Begins a request.
    pub(crate) async fn ask<T: AsRef<[u8]>>(
        &self,
        kind: u8,
        fields: &[T],
    ) -> io::Result<Conversation> {
        let payload = wire::pack(fields);
        if payload.len() > wire::MAX_FRAME {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the request is larger than 4 MiB",
            ));
        }
        let (from, to) = UnixStream::connect(&self.socket).await?.into_split();
        let mut to = Sender(to);
        to.send(kind, &payload).await?;
        Ok(Conversation {
            from: Receiver(from),
            to,
        })
    }

    /// Whether the guest's program answers, and is ours.
    pub(crate) async fn hello(&self) -> io::Result<()> {
        let mut talk = self.ask::<&[u8]>(wire::HELLO, &[]).await?;
        match talk.from.receive().await? {
            (wire::OK, payload)
                if wire::unpack(&payload)?
                    .first()
                    .is_some_and(|version| version == wire::VERSION.as_bytes()) =>
            {
                Ok(())
            }
            _ => Err(wire::broken()),
        }
    }
}

/// One request under way.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) from: Receiver,
    pub(crate) to: Sender,
}

#[derive(Debug)]
pub(crate) struct Receiver(pub(crate) OwnedReadHalf);

#[derive(Debug)]
pub(crate) struct Sender(pub(crate) OwnedWriteHalf);

impl Sender {
    pub(crate) async fn send(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        self.0.write_all(&wire::frame(kind, payload)).await
    }
}

impl Receiver {
    /// The next frame, however long it takes.
    pub(crate) async fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut first = [0; 5];
        self.0.read_exact(&mut first).await?;
        let (kind, length) = wire::header(first)?;
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).await?;
        Ok((kind, payload))
    }
}

impl Conversation {
    /// The next frame of a file call; a failure that the guest tells becomes an error that names `path`.
    pub(crate) async fn answer(
        &mut self,
        op: &'static str,
        path: &SandboxPath,
    ) -> Result<(u8, Vec<u8>)> {
        let frame = timeout(ANSWER, self.from.receive())
            .await
            .map_err(|_| SandboxError::Timeout { op, after: ANSWER })?
            .map_err(|error| SandboxError::io(op, error))?;
        match frame {
            (wire::ERROR, payload) => {
                let fields = wire::unpack(&payload).map_err(|error| SandboxError::io(op, error))?;
                Err(told(op, path, &fields))
            }
            frame => Ok(frame),
        }
    }
}

/// What the guest says of a failure. Its words are shown, never believed.
fn told(op: &'static str, path: &SandboxPath, fields: &[Vec<u8>]) -> SandboxError {
    let text = |at: usize| {
        fields
            .get(at)
            .map(|field| String::from_utf8_lossy(field).into_owned())
            .unwrap_or_default()
    };
    let (name, detail) = (text(0), text(1));
    let path = path.to_string();
    let (first, second) = detail.split_once('/').unwrap_or((&detail, ""));
    match name.as_str() {
        wire::error::NOT_FOUND => SandboxError::NotFound {
            what: "file",
            name: path,
        },
        wire::error::ESCAPE => SandboxError::PathEscape {
            path,
            reason: detail,
        },
        wire::error::KIND => SandboxError::WrongKind {
            path,
            found: kind(first),
            expected: kind(second),
        },
        wire::error::DENIED => SandboxError::PermissionDenied {
            path: if detail.contains("read-only") {
                format!("{path} (the working directory is read-only)")
            } else {
                path
            },
        },
        wire::error::LIMIT => SandboxError::LimitExceeded {
            what: first.to_owned(),
            limit: second.parse().unwrap_or(0),
            actual: None,
        },
        _ => SandboxError::provider(op, format!("{path}: {detail}"), None),
    }
}

pub(crate) fn kind(name: &str) -> FileKind {
    match name {
        "file" => FileKind::File,
        "directory" => FileKind::Directory,
        "symlink" => FileKind::Symlink,
        "fifo" => FileKind::Fifo,
        "socket" => FileKind::Socket,
        "device" => FileKind::Device,
        _ => FileKind::Other,
    }
}
