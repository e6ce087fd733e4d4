//! Any bytes as two rules and a URL.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sixb_connector_exa::fuzz::domain_policy(bytes));
