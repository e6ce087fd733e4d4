//! Attack programs against real local sandboxes: each tries one thing, and its one line of verdict must be the expected one.
//!
//! The list is `table.rs`. A row is a program that runs inside (`attacks/`), or a scene that needs the host's side, too: a
//! race with file calls, a second sandbox, a deadline. `cargo xtask escape` prints the rows with what was seen.
//! Attacks on the network relay belong into `relay.rs`.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests lay bait on the host and look whether it was taken"
)]

mod arena;
mod bait;
mod deadlines;
#[cfg(test)]
mod docs;
mod inherited;
mod load;
mod names;
mod oracle;
mod planted;
mod program;
mod races;
mod report;
mod row;
mod siblings;
mod table;
mod trees;
