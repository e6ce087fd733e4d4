//! Files that a run brings into its sandbox at the boot: from the store, before any tool runs.

use serde_json::{Map, Value};
use std::sync::Arc;

use sixb_artifacts::store::BlobStore;
use sixb_sandbox::{FileWrite, Result, Sandbox, SandboxPath};

use super::layout;
use crate::files::{Placed, origin};

/// Bytes that are on their way into the sandbox at the same time.
const BATCH: u64 = 32 << 20;

/// What to bring, and from where.
#[derive(Clone)]
pub(crate) struct PlacedFiles {
    pub(crate) blobs: BlobStore,
    pub(crate) files: Vec<Placed>,
    /// Told of a file that cannot be brought.
    pub(crate) lost: Arc<dyn Fn(String) + Send + Sync>,
}

impl PlacedFiles {
    /// The folders that they lie in, which may be new in a workspace that was there before.
    pub(super) fn folders(&self, root: &str) -> Vec<SandboxPath> {
        let mut folders: Vec<SandboxPath> = Vec::new();
        for placed in &self.files {
            let path = SandboxPath::parse_guest(&placed.path, root).ok();
            if let Some(folder) = path.and_then(|path| path.parent())
                && !folders.contains(&folder)
            {
                folders.push(folder);
            }
        }
        folders
    }
}

impl PlacedFiles {
    /// Writes `batch` and all of them, some at a time. A file that cannot be read is left out, which is told, and the manifest
    /// does not list it.
    pub(super) async fn write(
        &self,
        sandbox: &dyn Sandbox,
        mut batch: Vec<FileWrite>,
    ) -> Result<()> {
        let root = sandbox.working_directory();
        let mut size = 0;
        let mut entries = Vec::new();
        for placed in &self.files {
            let path = SandboxPath::parse_guest(&placed.path, root)?;
            let bytes = match self.blobs.read(&placed.file).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    (self.lost)(format!("{path} is not in the sandbox: {error}"));
                    continue;
                }
            };
            entries.push(entry(placed, &layout::absolute(root, &path.to_string())));
            if size + placed.file.size() > BATCH {
                sandbox.write_files(std::mem::take(&mut batch)).await?;
                size = 0;
            }
            size += placed.file.size();
            batch.push(FileWrite::new(path, bytes));
        }
        let manifest = format!("{:#}\n", Value::Array(entries));
        batch.push(FileWrite::new(
            layout::path(layout::ATTACHMENTS_JSON),
            manifest,
        ));
        sandbox.write_files(batch).await
    }
}

/// One file in `attachments.json`.
fn entry(placed: &Placed, path: &str) -> Value {
    let mut entry = Map::new();
    entry.insert("path".into(), path.into());
    if let Some(name) = placed.file.file_name() {
        entry.insert("fileName".into(), name.as_str().into());
    }
    if let Some(media_type) = placed.file.media_type() {
        entry.insert("mediaType".into(), media_type.as_str().into());
    }
    entry.insert("sizeBytes".into(), placed.file.size().into());
    entry.insert("blobId".into(), placed.file.blob_id().into());
    entry.insert("from".into(), origin(placed.provenance).into());
    entry.insert("runId".into(), placed.run_id.clone().into());
    Value::Object(entry)
}
