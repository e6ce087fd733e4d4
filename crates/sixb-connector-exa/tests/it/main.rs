//! The client and the tools against a server on loopback that plays recorded answers, and breaks on purpose.

mod client;
mod faults;
mod server;
#[cfg(feature = "agent-tools")]
mod tools;
#[cfg(feature = "agent-tools")]
mod tools_bounds;
#[cfg(feature = "agent-tools")]
mod tools_errors;
