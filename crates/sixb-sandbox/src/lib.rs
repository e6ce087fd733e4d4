#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod background;
mod capabilities;
pub mod capture;
mod command;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod ext;
mod files;
mod lazy;
pub mod lines;
mod network;
mod options;
mod output;
mod path;
mod sandbox;
pub mod spool;

pub use background::BackgroundProcesses;
pub use capabilities::{Capabilities, Enforcer, Isolation, LimitSupport, NetworkEnforcement};
pub use command::{
    BackgroundId, Chunk, Command, CommandOutput, OutputLimits, OutputStream, Program, Stdin,
};
pub use error::{Cause, Result, SandboxError};
pub use ext::{Background, CommandEvent, SandboxExt};
pub use files::{
    ByteRange, Changes, DirEntry, FileContents, FileKind, FileSource, FileStat, FileWrite,
    LinePosition, ListOptions, SeekLine, Snapshot, SnapshotOptions,
};
pub use lazy::LazySandbox;
pub use network::{AllowedOrigin, DenialReason, NetworkDenial, NetworkPolicy, Origin};
pub use options::{CreateOptions, ResourceLimits, Workspace};
pub use output::{CapturedStream, OutputId};
pub use path::SandboxPath;
pub use sandbox::{Sandbox, SandboxFactory, SandboxRecord, SandboxStatus};

#[doc(no_inline)]
pub use tokio_util::sync::CancellationToken;
