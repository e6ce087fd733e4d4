//! What can go wrong with blobs, by what the caller can do.

/// A private cause.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// An operation on blobs failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The store has no such blob: it was swept, or never put.
    #[error("{blob_id} is not in the store")]
    NotFound {
        /// The blob.
        blob_id: String,
    },
    /// What the store holds is not what its name says. Put the file again to repair it.
    #[error("{blob_id} is damaged in the store: {detail}")]
    Damaged {
        /// The blob.
        blob_id: String,
        /// What differs.
        detail: String,
    },
    /// The body is not as long as it was said to be.
    #[error("the body has {actual} bytes, not the {expected} that were announced")]
    WrongSize {
        /// What was announced, in bytes.
        expected: u64,
        /// What came, in bytes.
        actual: u64,
    },
    /// The body is longer than one file may be.
    #[error("the body has more than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The body failed while it was read.
    #[error("reading the body failed")]
    Body(#[source] BoxError),
    /// The range does not lie in the file.
    #[error("the range {start}..{end} does not lie in the {size} bytes of the file")]
    Range {
        /// First byte asked for.
        start: u64,
        /// Byte behind the last one asked for.
        end: u64,
        /// Size of the file, in bytes.
        size: u64,
    },
    /// The URL or an option of a store is wrong.
    #[error("{what}")]
    Place {
        /// What is wrong, and what would be right. Holds no secret.
        what: String,
        /// The private cause.
        #[source]
        source: Option<BoxError>,
    },
    /// The store cannot do this.
    #[error("{what}")]
    Unsupported {
        /// What cannot be done, and what can.
        what: &'static str,
    },
    /// The store failed. Worth another try later.
    #[error("{op} failed in {store}")]
    Store {
        /// The operation.
        op: &'static str,
        /// The store, as it calls itself.
        store: String,
        /// The private cause.
        #[source]
        source: BoxError,
    },
}
