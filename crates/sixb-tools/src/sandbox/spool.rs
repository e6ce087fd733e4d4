//! The paths under which a model finds spooled output. They look like files of the working directory, but lead to the
//! spool outside it, which no command can reach.

use sixb_sandbox::{FileSource, OutputId, OutputStream, SandboxPath};

const ROOT: &str = ".sixb/agent/spool";

/// The path that `read` takes for a stream.
pub(crate) fn spool_path(id: &OutputId, stream: OutputStream) -> String {
    format!("{ROOT}/{id}/{}", stream.as_str())
}

/// The stream that a path stands for, if it is such a path.
pub(crate) fn spool_source(path: &SandboxPath) -> Option<FileSource> {
    let (id, stream) = path
        .as_str()?
        .strip_prefix(ROOT)?
        .strip_prefix('/')?
        .split_once('/')?;
    let stream = [OutputStream::Stdout, OutputStream::Stderr]
        .into_iter()
        .find(|known| known.as_str() == stream)?;
    // An id that is not safe as it stands was never handed out.
    Some(OutputId::for_call(id))
        .filter(|known| known.as_str() == id)
        .map(|id| FileSource::Output(id, stream))
}
