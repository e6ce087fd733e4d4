//! What holds for any bytes at all that a guest sends: for the fuzz target and for property tests.

use super::{
    authority::{Authority, Host},
    hello::{self, Hello},
    socks::{self, Parsed},
};

/// The longest message of SOCKS5 before its connection: a name of 255 bytes.
const MAX_SOCKS: usize = 262;

/// Parses `bytes` as each thing that the relay reads by itself.
#[cfg_attr(
    not(fuzzing),
    expect(unreachable_pub, reason = "the fuzz target is another crate")
)]
pub fn relay_parser(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(authority) = Authority::parse(text, Some(443))
    {
        one_form(&authority);
    }
    message(bytes, socks::greeting);
    if let Some(Ok(authority)) = message(bytes, socks::request) {
        one_form(&authority);
    }
    client_hello(bytes);
}

/// What is shown is what was compared.
fn one_form(authority: &Authority) {
    let shown = authority.to_string();
    assert_eq!(Authority::parse(&shown, None).as_ref(), Some(authority));
    if let Host::Name(name) = &authority.host {
        assert!(
            name.parse::<std::net::IpAddr>().is_err(),
            "{name} is an address"
        );
    }
}

/// Reading always gets on, and has an end.
fn message<T>(bytes: &[u8], parse: fn(&[u8]) -> Parsed<T>) -> Option<T> {
    match parse(bytes) {
        Parsed::Need(length) => {
            assert!(length > bytes.len() && length <= MAX_SOCKS, "{length}");
            None
        }
        Parsed::Done(value, length) => {
            assert!(length <= bytes.len());
            Some(value)
        }
        Parsed::Broken => None,
    }
}

/// A hello that is accepted was not refused while it came in, and never changes its name.
fn client_hello(bytes: &[u8]) {
    let whole = hello::parse(bytes);
    match &whole {
        Hello::Incomplete => assert!(bytes.len() < hello::MAX_BYTES),
        Hello::Names(name) => {
            for cut in [
                bytes.len() / 3,
                bytes.len() / 2,
                bytes.len().saturating_sub(1),
            ] {
                let part = hello::parse(&bytes[..cut]);
                assert!(part == Hello::Incomplete || part == whole, "{part:?}");
            }
            let more = [bytes, &[23, 3, 3, 0, 0]].concat();
            assert_eq!(hello::parse(&more), whole);
            if let Some(name) = name {
                assert!(!name.is_empty() && name.is_ascii() && *name == name.to_lowercase());
            }
        }
        Hello::Broken => {}
    }
}
