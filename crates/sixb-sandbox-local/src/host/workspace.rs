//! Which host folder becomes the working directory, and under which user it is used.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use sixb_sandbox::{Result, SandboxError, Workspace};

use crate::plan::{HostUser, Tree};

/// The folder behind a working directory.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) read_only: bool,
    /// As root: file calls are made as the folder's owner, so that they may do just what that user may.
    pub(super) act_as: Option<HostUser>,
    id_map: Option<HostUser>,
}

impl Folder {
    /// Makes or opens the folder.
    pub(super) fn prepare(
        workspace: Option<&Workspace>,
        lease: &Path,
        state: &Path,
        drop_to: Option<HostUser>,
    ) -> Result<Self> {
        match workspace {
            None | Some(Workspace::Empty) => Self::empty(&lease.join("workspace"), drop_to)
                .map_err(|error| SandboxError::io("make the working directory", error)),
            Some(Workspace::HostFolder { path, read_only }) => {
                Self::open(path, *read_only, state, drop_to)
            }
            Some(other) => Err(SandboxError::InvalidInput {
                field: "workspace",
                value: format!("{other:?}"),
                reason: "is not known to the local sandbox".into(),
            }),
        }
    }

    fn empty(path: &Path, drop_to: Option<HostUser>) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(path)?;
        if let Some(user) = drop_to {
            std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid))?;
        }
        Ok(Self {
            path: path.to_owned(),
            read_only: false,
            act_as: drop_to,
            id_map: None,
        })
    }

    fn open(path: &Path, read_only: bool, state: &Path, drop_to: Option<HostUser>) -> Result<Self> {
        let invalid = |reason: String| SandboxError::InvalidInput {
            field: "workspace",
            value: path.display().to_string(),
            reason,
        };
        let real = fs::canonicalize(path).map_err(|error| {
            invalid(format!("cannot be used: {error}; name an existing folder"))
        })?;
        let metadata =
            fs::metadata(&real).map_err(|error| invalid(format!("cannot be used: {error}")))?;
        if !metadata.is_dir() {
            return Err(invalid("is not a folder".into()));
        }
        if real == Path::new("/") {
            return Err(invalid("is the whole host: name a folder below it".into()));
        }
        // What is kept there of all sandboxes, leases and whole outputs, would be in the guest's hands.
        let state = fs::canonicalize(state)
            .map_err(|error| SandboxError::io("look at the state folder", error))?;
        if state.starts_with(&real) || real.starts_with(&state) {
            return Err(invalid(format!(
                "shares files with the state folder of all sandboxes, {}: use another folder, or keep the state elsewhere \
                 (XDG_STATE_HOME, or LocalSandboxFactory::state_dir)",
                state.display()
            )));
        }
        let owner = HostUser {
            uid: metadata.uid(),
            gid: metadata.gid(),
        };
        Ok(Self {
            path: real,
            read_only,
            act_as: drop_to.and((owner.uid != 0).then_some(owner)),
            id_map: drop_to.filter(|user| user.uid != owner.uid).map(|_| owner),
        })
    }

    pub(super) fn tree(&self) -> Result<Tree> {
        tree(&self.path, self.read_only, self.id_map)
    }
}

/// An extra folder of the host.
pub(super) fn extra(
    path: &Path,
    read_only: bool,
    state: &Path,
    drop_to: Option<HostUser>,
) -> Result<Tree> {
    let folder = Folder::open(path, read_only, state, drop_to)?;
    // What is only read needs no map: the folder's own permissions decide.
    tree(
        &folder.path,
        read_only,
        folder.id_map.filter(|_| !read_only),
    )
}

fn tree(path: &Path, read_only: bool, owned_by: Option<HostUser>) -> Result<Tree> {
    let source = path.to_str().ok_or_else(|| SandboxError::InvalidInput {
        field: "workspace",
        value: path.display().to_string(),
        reason: "is not valid UTF-8: rename the folder".into(),
    })?;
    Ok(Tree {
        source: source.to_owned(),
        read_only,
        owned_by,
    })
}
