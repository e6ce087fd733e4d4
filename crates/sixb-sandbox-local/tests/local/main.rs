//! What is special to the local backend; the contract itself is checked in `conformance.rs`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out and look at host folders"
)]

mod creation;
mod folders;
mod processes;
mod unisolated;
mod view;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    sync::Arc,
    time::Duration,
};

use sixb_sandbox::{
    Command, CreateOptions, FileSource, FileWrite, Isolation, NetworkPolicy, Sandbox, SandboxError,
    SandboxExt, SandboxFactory, SandboxPath, Workspace,
};
use sixb_sandbox_local::LocalSandboxFactory;
use tempfile::TempDir;

pub(crate) struct Fixture {
    pub(crate) factory: LocalSandboxFactory,
    pub(crate) state: TempDir,
}

pub(crate) fn fixture() -> Fixture {
    let state = tempfile::tempdir().expect("state folder");
    Fixture {
        factory: LocalSandboxFactory::default().state_dir(state.path()),
        state,
    }
}

pub(crate) async fn sandbox(fixture: &Fixture, options: CreateOptions) -> Arc<dyn Sandbox> {
    fixture.factory.create(options).await.expect("sandbox")
}

pub(crate) async fn sh(sandbox: &Arc<dyn Sandbox>, script: &str) -> String {
    let output = sandbox.sh(script).await.expect("command");
    format!("{}{}", output.stdout.text(), output.stderr.text())
}

pub(crate) fn path(text: &str) -> SandboxPath {
    SandboxPath::parse(text).expect("path")
}

pub(crate) fn host_folder(path: &Path, read_only: bool) -> CreateOptions {
    CreateOptions::default().workspace(Workspace::HostFolder {
        path: path.to_owned(),
        read_only,
    })
}

pub(crate) fn runs_as_root() -> bool {
    fs::metadata("/proc/self").expect("proc").uid() == 0
}
