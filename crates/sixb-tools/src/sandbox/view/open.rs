//! Reads a file of the sandbox whole: a regular one, reached by no link of its own, that does not change meanwhile.

use bytes::{Bytes, BytesMut};
use sixb_sandbox::{ByteRange, DirEntry, FileKind, FileSource, ListOptions, Sandbox, SandboxPath};

use crate::{ToolError, ToolErrorKind, sandbox::tool_error};

/// Read at a time, in bytes.
const PIECE: usize = 4 << 20;
/// Entries of the folder that a file is looked for in.
const MAX_LISTED: usize = 100_000;

/// The bytes of `path`, at most `limit`. `shown` is the path as the model wrote it.
pub(super) async fn read(
    sandbox: &dyn Sandbox,
    path: &SandboxPath,
    shown: &str,
    limit: u64,
) -> Result<Bytes, ToolError> {
    let found = entry(sandbox, path, shown).await?;
    let refused = |problem: String| ToolError::invalid_input(format!("{shown:?} {problem}"));
    match found.stat.kind {
        FileKind::File => {}
        FileKind::Symlink => {
            let text = format!(
                "{shown:?} is a symbolic link, which view_file does not follow: give the path that it leads to"
            );
            return Err(ToolError::new(ToolErrorKind::PermissionDenied, text));
        }
        FileKind::Directory => {
            return Err(refused(
                "is a directory, not a file; list it with bash: ls".into(),
            ));
        }
        other => return Err(refused(format!("is a {other}, not a file"))),
    }
    let (size, version) = (found.stat.size, found.stat.version);
    if size > limit {
        let text = format!(
            "{shown:?} has {size} bytes; view_file shows at most {limit}. Take a part of it, or make it smaller, with bash"
        );
        return Err(ToolError::new(ToolErrorKind::LimitExceeded, text));
    }
    let changed = || {
        ToolError::new(
            ToolErrorKind::Provider,
            format!("{shown:?} changed while it was read: call again when it is complete"),
        )
    };
    let source = FileSource::Path(path.clone());
    // As large as the file says, and no byte more: it may grow.
    let mut bytes = BytesMut::with_capacity(usize::try_from(size).unwrap_or_default());
    while (bytes.len() as u64) < size {
        let left = usize::try_from(size).unwrap_or(PIECE) - bytes.len();
        let range = ByteRange::new(bytes.len() as u64, left.min(PIECE));
        let piece = sandbox
            .read_range(&source, range)
            .await
            .map_err(tool_error)?;
        if piece.is_empty() {
            return Err(changed());
        }
        bytes.extend_from_slice(&piece);
    }
    let now = entry(sandbox, path, shown).await?.stat;
    if now.kind != FileKind::File || now.version != version || now.size != size {
        return Err(changed());
    }
    Ok(bytes.freeze())
}

/// What stands under the name itself: `stat` would follow a link.
async fn entry(
    sandbox: &dyn Sandbox,
    path: &SandboxPath,
    shown: &str,
) -> Result<DirEntry, ToolError> {
    let Some(parent) = path.parent() else {
        return Err(ToolError::invalid_input(format!(
            "{shown:?} is the working directory, not a file; list it with bash: ls"
        )));
    };
    let siblings = sandbox
        .list(&parent, ListOptions::default().limit(MAX_LISTED))
        .await;
    let found = siblings
        .map_err(tool_error)?
        .into_iter()
        .find(|entry| entry.path == *path);
    found.ok_or_else(|| {
        ToolError::new(
            ToolErrorKind::NotFound,
            format!("there is no file {shown:?}"),
        )
    })
}
