//! The list of checks that every backend must pass.
