#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod artifact_path;
mod budget;
mod digest;
mod excerpt;
mod file_name;
mod file_ref;
#[cfg(feature = "images")]
pub mod images;
mod markup;
mod media_type;
pub mod pdf;
pub mod projection;
mod run_files;

#[cfg(feature = "store")]
pub mod store;

pub use artifact_path::{ARTIFACTS_DIR, artifact_path};
pub use budget::{Budget, BudgetError, BudgetLimits, Reservation};
pub use digest::{Digest, DigestError, Hasher};
pub use excerpt::{Excerpt, ExcerptLimits, excerpt};
pub use file_name::{FileName, FileNameError};
pub use file_ref::{FileRef, FileRefError};
pub use markup::{FileElement, escape};
pub use media_type::{Contradiction, MediaType, MediaTypeError, detect, detected, is_text};
pub use run_files::{ForgedFileRef, Provenance, RunFile, RunFiles};
