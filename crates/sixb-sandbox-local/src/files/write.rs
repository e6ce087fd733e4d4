//! Writing: beside the target first, then one rename.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use bytes::Bytes;
use futures::StreamExt;
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use sixb_sandbox::{FileContents, FileKind, FileWrite, Result, SandboxError, SandboxPath};

use super::{Files, identity::Acting, named, resolve::beneath, wrong_kind};

/// Writes one file. When the future is dropped or fails, the file is as it was.
pub(crate) async fn write(
    files: Arc<Files>,
    file: FileWrite,
    check: impl Fn() -> Result<()>,
) -> Result<()> {
    check()?;
    let FileWrite {
        path,
        contents,
        mode,
        ..
    } = file;
    match contents {
        FileContents::Bytes(bytes) => {
            on_thread(move || {
                let mut draft = Draft::begin(&files, &path)?;
                draft.append(&bytes)?;
                draft.publish(mode)
            })
            .await
        }
        FileContents::Stream(mut chunks) => {
            let mut draft = on_thread({
                let (files, path) = (files.clone(), path.clone());
                move || Draft::begin(&files, &path)
            })
            .await?;
            while let Some(chunk) = chunks.next().await {
                check()?;
                let bytes: Bytes = chunk.map_err(|error| {
                    SandboxError::io("read the contents of a file to write", error)
                })?;
                draft = on_thread(move || draft.append(&bytes).map(|()| draft)).await?;
            }
            check()?;
            on_thread(move || draft.publish(mode)).await
        }
        _ => Err(SandboxError::provider(
            "write a file",
            "this kind of contents is not known to the local sandbox",
            None,
        )),
    }
}

async fn on_thread<T: Send + 'static>(
    call: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(call)
        .await
        .unwrap_or_else(|error| Err(SandboxError::provider("write a file", error, None)))
}

/// A file that is being written under another name in the folder of its target. Removed unless published.
struct Draft {
    path: SandboxPath,
    folder: OwnedFd,
    draft: String,
    target: Vec<u8>,
    file: File,
    act_as: Option<crate::plan::HostUser>,
    published: bool,
}

impl Draft {
    fn begin(files: &Files, path: &SandboxPath) -> Result<Self> {
        files.check_writable(path)?;
        let target = path
            .file_name()
            .ok_or_else(|| wrong_kind(path, FileKind::Directory, FileKind::File))?
            .to_vec();
        let _acting = files.acting()?;
        let folder = files.make_parents(path)?;
        let draft = format!(".sixb-{}", ulid::Ulid::new());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, &draft, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| named(path, error.into()))?;
        Ok(Self {
            path: path.clone(),
            folder,
            draft,
            target,
            file: file.into(),
            act_as: files.act_as,
            published: false,
        })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all(bytes)
            .map_err(|error| named(&self.path, error))
    }

    fn publish(mut self, mode: u32) -> Result<()> {
        let path = self.path.clone();
        let acting = Acting::begin(self.act_as).map_err(|error| named(&path, error))?;
        let result =
            rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode & 0o777)).and_then(|()| {
                rustix::fs::renameat(
                    &self.folder,
                    &self.draft,
                    &self.folder,
                    self.target.as_slice(),
                )
            });
        drop(acting);
        match result {
            Ok(()) => {
                self.published = true;
                Ok(())
            }
            Err(
                rustix::io::Errno::ISDIR | rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST,
            ) => Err(wrong_kind(&path, FileKind::Directory, FileKind::File)),
            Err(error) => Err(named(&path, error.into())),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published
            && let Ok(_acting) = Acting::begin(self.act_as)
        {
            let _ = rustix::fs::unlinkat(&self.folder, &self.draft, AtFlags::empty());
        }
    }
}

impl Files {
    /// The folder that `path` lies in, made where it is missing. Links on the way are followed as long as they stay
    /// inside. The caller acts as the owner.
    fn make_parents(&self, path: &SandboxPath) -> Result<OwnedFd> {
        let parent = path.parent().unwrap_or_default();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        match self.resolve(&parent, flags) {
            Err(SandboxError::NotFound { .. }) => {}
            result => return result,
        }
        let mut here = SandboxPath::root();
        let mut folder = self.resolve(&here, flags)?;
        for part in parent.components() {
            here = here.join(part)?;
            folder = match self.resolve(&here, flags) {
                Err(SandboxError::NotFound { .. }) => {
                    match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                        Err(error) => return Err(named(path, error.into())),
                    }
                    // A link that points nowhere, or a file where a folder must be, ends here.
                    beneath(
                        folder.as_fd(),
                        part,
                        flags,
                        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
                    )
                    .map_err(|error| match io::Error::from(error) {
                        error if error.raw_os_error() == Some(libc::ENOTDIR) => {
                            wrong_kind(&here, FileKind::File, FileKind::Directory)
                        }
                        error => named(path, error),
                    })?
                }
                result => result?,
            };
        }
        Ok(folder)
    }
}
