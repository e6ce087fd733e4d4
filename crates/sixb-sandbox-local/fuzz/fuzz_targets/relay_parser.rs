//! Any bytes as an authority, as SOCKS5 and as a ClientHello.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sixb_sandbox_local::fuzz::relay_parser(bytes));
