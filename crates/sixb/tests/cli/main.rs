//! The command line from outside: what it prints, where, and with which exit code.
//!
//! `SIXB_TEST_BIN` names the binary where `CARGO_BIN_EXE_sixb` cannot be read, as for another user.

#![expect(
    clippy::disallowed_methods,
    reason = "tests make folders and start the program they test"
)]

mod bad_input;
mod demo;
mod doctor;
mod exa;
mod exec;
mod files;
mod models;
mod place;
mod run;
mod sandbox;
mod server;
mod settings;
mod tool;
