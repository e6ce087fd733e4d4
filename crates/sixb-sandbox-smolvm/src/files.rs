//! File calls, served by the guest's program.

use std::{collections::BTreeMap, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use sixb_sandbox::{
    ByteRange, DirEntry, FileContents, FileStat, FileWrite, LinePosition, ListOptions, Result,
    SandboxError, SandboxPath, SeekLine, Snapshot, SnapshotOptions,
};

use crate::{
    link::{Conversation, Link, kind},
    wire,
};

fn broken(op: &'static str) -> SandboxError {
    SandboxError::provider(op, "the guest broke the protocol", None)
}

fn failed(op: &'static str) -> impl Fn(std::io::Error) -> SandboxError {
    move |error| SandboxError::io(op, error)
}

/// Writes one file in pieces. When the future is dropped or fails, the file is as it was.
pub(crate) async fn write(link: &Link, file: FileWrite) -> Result<()> {
    const OP: &str = "write a file";
    let path = file.path;
    let mut talk = link
        .ask(
            wire::WRITE,
            &[path.as_bytes(), (file.mode & 0o777).to_string().as_bytes()],
        )
        .await
        .map_err(failed(OP))?;
    taken(&mut talk, &path).await?;
    match file.contents {
        FileContents::Bytes(bytes) => send(&mut talk, &path, &bytes).await?,
        FileContents::Stream(mut chunks) => {
            while let Some(chunk) = chunks.next().await {
                let bytes = chunk.map_err(|error| {
                    SandboxError::io("read the contents of a file to write", error)
                })?;
                send(&mut talk, &path, &bytes).await?;
            }
        }
        _ => {
            return Err(SandboxError::provider(
                OP,
                "this kind of contents is not known to the smolvm sandbox",
                None,
            ));
        }
    }
    talk.to.send(wire::OK, &[]).await.map_err(failed(OP))?;
    taken(&mut talk, &path).await
}

async fn send(talk: &mut Conversation, path: &SandboxPath, bytes: &[u8]) -> Result<()> {
    for piece in bytes.chunks(wire::CHUNK) {
        // A refusal comes before the pipe is full, or the write fails: either way the guest's own words are wanted.
        let sent = talk.to.send(wire::DATA, piece).await;
        taken(talk, path).await?;
        sent.map_err(failed("write a file"))?;
    }
    Ok(())
}

async fn taken(talk: &mut Conversation, path: &SandboxPath) -> Result<()> {
    match talk.answer("write a file", path).await? {
        (wire::OK, _) => Ok(()),
        _ => Err(broken("write a file")),
    }
}

pub(crate) async fn read_range(link: &Link, path: &SandboxPath, range: ByteRange) -> Result<Bytes> {
    const OP: &str = "read a file";
    let fields = [
        path.as_bytes().to_vec(),
        range.offset.to_string().into_bytes(),
        range.len.to_string().into_bytes(),
    ];
    let mut talk = link.ask(wire::READ, &fields).await.map_err(failed(OP))?;
    let mut bytes = BytesMut::new();
    loop {
        match talk.answer(OP, path).await? {
            (wire::OK, _) => return Ok(bytes.freeze()),
            (wire::DATA, piece) if bytes.len() + piece.len() <= range.len => {
                bytes.extend_from_slice(&piece)
            }
            _ => return Err(broken(OP)),
        }
    }
}

pub(crate) async fn stat(link: &Link, path: &SandboxPath) -> Result<FileStat> {
    const OP: &str = "describe a file";
    let mut talk = link
        .ask(wire::STAT, &[path.as_bytes()])
        .await
        .map_err(failed(OP))?;
    match talk.answer(OP, path).await? {
        (wire::OK, payload) => {
            let fields = wire::unpack(&payload).map_err(failed(OP))?;
            describe(&fields).ok_or_else(|| broken(OP))
        }
        _ => Err(broken(OP)),
    }
}

fn describe(fields: &[Vec<u8>]) -> Option<FileStat> {
    let [name, size, mode, seconds, nanos, version] = fields else {
        return None;
    };
    let number = |field: &[u8]| wire::number(field).ok();
    Some(FileStat::new(
        kind(std::str::from_utf8(name).ok()?),
        number(size)?,
        u32::try_from(number(mode)?).ok()? & 0o7777,
        Duration::new(
            number(seconds)?,
            u32::try_from(number(nanos)?).ok()?.min(999_999_999),
        ),
        number(version)?,
    ))
}

pub(crate) async fn list(
    link: &Link,
    path: &SandboxPath,
    options: ListOptions,
) -> Result<Vec<DirEntry>> {
    let depth = if options.recursive { "all" } else { "one" };
    let mut entries = Vec::new();
    walk(
        link,
        path,
        [depth, "everything"],
        options.limit,
        &[],
        |entry| entries.push(entry),
    )
    .await?;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

pub(crate) async fn snapshot(link: &Link, options: &SnapshotOptions) -> Result<Snapshot> {
    let mut files = BTreeMap::new();
    walk(
        link,
        &SandboxPath::root(),
        ["all", "files"],
        options.limit,
        &options.skip,
        |entry| {
            files.insert(entry.path, entry.stat);
        },
    )
    .await?;
    Ok(Snapshot::new(files))
}

async fn walk(
    link: &Link,
    path: &SandboxPath,
    how: [&str; 2],
    limit: usize,
    skip: &[String],
    mut each: impl FnMut(DirEntry),
) -> Result<()> {
    const OP: &str = "list files";
    let limit_text = limit.to_string();
    let mut fields = vec![
        path.as_bytes(),
        how[0].as_bytes(),
        how[1].as_bytes(),
        limit_text.as_bytes(),
    ];
    fields.extend(skip.iter().map(|name| name.as_bytes()));
    let mut talk = link.ask(wire::LIST, &fields).await.map_err(failed(OP))?;
    let (mut count, mut empty) = (0, 0);
    loop {
        let payload = match talk.answer(OP, path).await? {
            (wire::OK, _) => return Ok(()),
            (wire::DATA, payload) => payload,
            _ => return Err(broken(OP)),
        };
        // Only the last piece may be empty: a guest that sends nothing for ever is not listened to.
        empty += usize::from(payload.is_empty());
        if empty > 1 {
            return Err(broken(OP));
        }
        for entry in wire::unpack(&payload).map_err(failed(OP))?.chunks(7) {
            count += 1;
            let (Some((name, fields)), true) = (entry.split_first(), count <= limit) else {
                return Err(broken(OP));
            };
            // A name that is no path of ours is none of Linux either: the guest made it up.
            let Ok(path) = SandboxPath::parse(name) else {
                continue;
            };
            each(DirEntry::new(
                path,
                describe(fields).ok_or_else(|| broken(OP))?,
            ));
        }
    }
}

pub(crate) async fn remove(link: &Link, path: &SandboxPath) -> Result<()> {
    const OP: &str = "remove a file";
    if path.is_root() {
        return Err(SandboxError::InvalidInput {
            field: "path",
            value: path.to_string(),
            reason: "is the working directory itself: remove what is in it".into(),
        });
    }
    let mut talk = link
        .ask(wire::REMOVE, &[path.as_bytes()])
        .await
        .map_err(failed(OP))?;
    match talk.answer(OP, path).await? {
        (wire::OK, _) => Ok(()),
        _ => Err(broken(OP)),
    }
}

pub(crate) async fn seek_line(
    link: &Link,
    path: &SandboxPath,
    seek: SeekLine,
) -> Result<LinePosition> {
    const OP: &str = "find a line";
    let fields = [
        path.as_bytes().to_vec(),
        seek.line.to_string().into_bytes(),
        seek.from.0.to_string().into_bytes(),
        seek.from.1.to_string().into_bytes(),
    ];
    let mut talk = link.ask(wire::SEEK, &fields).await.map_err(failed(OP))?;
    let (wire::OK, payload) = talk.answer(OP, path).await? else {
        return Err(broken(OP));
    };
    let fields = wire::unpack(&payload).map_err(failed(OP))?;
    let [what, value] = fields.as_slice() else {
        return Err(broken(OP));
    };
    let value = wire::number(value).map_err(failed(OP))?;
    match what.as_slice() {
        b"at" => Ok(LinePosition::At { offset: value }),
        b"end" => Ok(LinePosition::PastEnd { total_lines: value }),
        _ => Err(broken(OP)),
    }
}
