//! Other systems have no Linux namespaces: a clear error instead of a weaker sandbox.

use std::{fmt, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use sixb_sandbox::{
    Capabilities, CreateOptions, Result, Sandbox, SandboxError, SandboxFactory, SandboxRecord,
};

/// Does nothing here.
pub fn init() {}

/// Only Linux has local sandboxes; every call says so.
#[derive(Debug, Clone, Default)]
pub struct LocalSandboxFactory {}

impl LocalSandboxFactory {
    /// As on Linux.
    pub fn defaults(self, _: CreateOptions) -> Self {
        self
    }
    /// As on Linux.
    pub fn state_dir(self, _: impl Into<PathBuf>) -> Self {
        self
    }
    /// As on Linux.
    pub fn helper(self, _: impl Into<PathBuf>) -> Self {
        self
    }
    /// As on Linux.
    pub fn gateway(self, _: std::net::SocketAddr) -> Self {
        self
    }
    /// As on Linux.
    pub fn read_only_path(self, _: impl Into<PathBuf>, _: impl Into<String>) -> Self {
        self
    }
    /// As on Linux.
    pub fn read_write_path(self, _: impl Into<PathBuf>, _: impl Into<String>) -> Self {
        self
    }
}

fn unavailable() -> SandboxError {
    SandboxError::IsolationUnavailable {
        what: format!("local sandboxes need Linux namespaces, and this is {}", std::env::consts::OS),
        remedy: "Run on Linux (a virtual machine or WSL 2 will do), or use another sandbox provider such as smolvm".into(),
    }
}

impl fmt::Display for LocalSandboxFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("local sandboxes (not available on this system)")
    }
}

#[async_trait]
impl SandboxFactory for LocalSandboxFactory {
    fn provider(&self) -> &'static str {
        "local"
    }
    async fn create(&self, _: CreateOptions) -> Result<Arc<dyn Sandbox>> {
        Err(unavailable())
    }
    async fn probe(&self) -> Result<Capabilities> {
        Err(unavailable())
    }
    async fn list(&self) -> Result<Vec<SandboxRecord>> {
        Ok(Vec::new())
    }
    async fn sweep(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}
