//! Files that come with a task: those that a user attaches now, and those of earlier turns.

use std::fmt;

use bytes::Bytes;
use sixb_artifacts::{FileRef, Provenance};

/// A file that a user attaches to a task: at most 25 MiB, and 100 MiB with all others of the task.
///
/// It lies in the sandbox before any tool runs. The model reads the start of text (50 KiB or 2 000 lines a file, 200 KiB in
/// all) and sees images, if it takes them; of other files it reads name, type, size and path.
///
/// ```
/// use sixb_agent::{Attachment, RunRequest};
/// let request = RunRequest::new("analyst", "Sum the amounts.")
///     .attach(Attachment::new("orders.csv", "id,amount\n1,9.50\n"));
/// # let _ = request;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Attachment {
    /// One safe name, without `/`.
    pub name: String,
    /// What the user says it is; the bytes decide. `None`: by bytes and name.
    pub media_type: Option<String>,
    /// The content.
    pub bytes: Bytes,
}

impl Attachment {
    /// A file with a name.
    pub fn new(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self {
            name: name.into(),
            media_type: None,
            bytes: bytes.into(),
        }
    }

    /// Says what it is. A claim that the bytes contradict is an error when the run starts.
    pub fn media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attachment({:?}, {} bytes)", self.name, self.bytes.len())
    }
}

/// A file of an earlier turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastFile {
    /// The file, in the store of that turn.
    pub file: FileRef,
    /// How that turn came to it.
    pub provenance: Provenance,
    /// The run that was that turn.
    pub run_id: String,
}

impl PastFile {
    /// A file of the run `run_id`.
    pub fn new(file: FileRef, provenance: Provenance, run_id: impl Into<String>) -> Self {
        Self {
            file,
            provenance,
            run_id: run_id.into(),
        }
    }
}
