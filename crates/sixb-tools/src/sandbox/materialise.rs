//! Artifacts written into the run's sandbox.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use sixb_artifacts::store::{BoxError, Materialise};
use sixb_sandbox::{FileWrite, LazySandbox, SandboxPath};

/// Where an [`ArtifactStore`](sixb_artifacts::store::ArtifactStore) writes its files: into this sandbox, whose boot they
/// await.
pub fn materialise_in(sandbox: LazySandbox) -> Arc<dyn Materialise> {
    Arc::new(SandboxFiles(sandbox))
}

struct SandboxFiles(LazySandbox);

#[async_trait]
impl Materialise for SandboxFiles {
    async fn materialise(&self, path: &str, bytes: Bytes) -> Result<String, BoxError> {
        let path = SandboxPath::parse(path)?;
        let sandbox = self.0.get().await?;
        let absolute = format!(
            "{}/{path}",
            sandbox.working_directory().trim_end_matches('/')
        );
        sandbox
            .write_files(vec![FileWrite::new(path, bytes)])
            .await?;
        Ok(absolute)
    }
}

impl fmt::Debug for SandboxFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SandboxFiles")
    }
}
