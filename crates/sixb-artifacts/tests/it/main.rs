//! The crate as others use it.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out folders of blobs, and start the S3 server"
)]

#[cfg(feature = "store")]
mod artifacts;
#[cfg(feature = "store")]
mod blobs;
#[cfg(feature = "images")]
mod corpus;
#[cfg(feature = "images")]
mod images;
#[cfg(feature = "aws")]
mod s3;
#[cfg(feature = "aws")]
mod s3_server;
#[cfg(feature = "store")]
mod sweeping;
