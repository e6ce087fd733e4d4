//! Any bytes as one packet of a supervisor that is taken over.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sixb_sandbox_local::fuzz::supervisor_protocol(bytes));
