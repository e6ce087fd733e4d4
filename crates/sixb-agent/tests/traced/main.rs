//! What is traced. A binary of its own: whether a place traces at all is decided for the whole process when it is first
//! reached, also by a test that does not listen.

#![cfg(feature = "openai")]

mod keys;
mod recorder;
#[expect(dead_code, reason = "most of it is for the other tests")]
#[path = "../it/wire/server.rs"]
mod server;
mod spans;
#[expect(dead_code, reason = "most of it is for the other tests")]
#[path = "../it/support.rs"]
mod support;

/// One test listens at a time.
static LISTENING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
