//! SOCKS5 (RFC 1928) as bytes: the greeting, the request, the replies. No I/O; every length is at most 262.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::authority::{Authority, Host};

/// The first byte of every message.
pub(crate) const VERSION: u8 = 5;
/// "No authentication": loopback of the sandbox is the guest's own.
pub(crate) const CHOOSE_NONE: [u8; 2] = [VERSION, 0];
/// None of the offered methods.
pub(crate) const NO_METHOD: [u8; 2] = [VERSION, 0xff];

const CONNECT: u8 = 1;

/// Reply codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Succeeded = 0,
    /// What the relay's 403 is for HTTP.
    NotAllowed = 2,
    HostUnreachable = 4,
    CommandNotSupported = 7,
    AddressTypeNotSupported = 8,
}

impl Reply {
    /// The whole message; the bound address is of no use to anybody.
    pub(crate) fn bytes(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }
}

/// What bytes amount to so far.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<T> {
    /// At least this many bytes are needed.
    Need(usize),
    /// A message of so many bytes.
    Done(T, usize),
    /// Not SOCKS5.
    Broken,
}

/// Parses the greeting: whether "no authentication" is offered.
pub(crate) fn greeting(bytes: &[u8]) -> Parsed<bool> {
    let [version, count, methods @ ..] = bytes else {
        return match bytes {
            [] | [VERSION] => Parsed::Need(2),
            _ => Parsed::Broken,
        };
    };
    let count = usize::from(*count);
    if *version != VERSION || count == 0 {
        return Parsed::Broken;
    }
    match methods.get(..count) {
        Some(methods) => Parsed::Done(methods.contains(&0), 2 + count),
        None => Parsed::Need(2 + count),
    }
}

/// Parses the request: where to, or the reply that refuses it.
pub(crate) fn request(bytes: &[u8]) -> Parsed<Result<Authority, Reply>> {
    let [version, command, reserved, kind, rest @ ..] = bytes else {
        return Parsed::Need(5);
    };
    if *version != VERSION || *reserved != 0 {
        return Parsed::Broken;
    }
    let length = match (*kind, rest.first()) {
        (1, _) => 4,
        (4, _) => 16,
        (3, None) => return Parsed::Need(5),
        (3, Some(0)) => return Parsed::Broken,
        (3, Some(length)) => 1 + usize::from(*length),
        _ => return Parsed::Done(Err(Reply::AddressTypeNotSupported), bytes.len()),
    };
    let whole = 4 + length + 2;
    let (Some(address), Some([high, low])) = (rest.get(..length), rest.get(length..length + 2))
    else {
        return Parsed::Need(whole);
    };
    if *command != CONNECT {
        return Parsed::Done(Err(Reply::CommandNotSupported), whole);
    }
    let host = match address {
        [a, b, c, d] if *kind == 1 => Some(Host::Ip(Ipv4Addr::new(*a, *b, *c, *d).into())),
        [_, name @ ..] if *kind == 3 => std::str::from_utf8(name).ok().and_then(named),
        address => <[u8; 16]>::try_from(address)
            .ok()
            .map(|address| Host::Ip(Ipv6Addr::from(address).into())),
    };
    let port = u16::from_be_bytes([*high, *low]);
    match host {
        Some(host) if port != 0 => Parsed::Done(Ok(Authority { host, port }), whole),
        _ => Parsed::Done(Err(Reply::NotAllowed), whole),
    }
}

/// Some clients put an address where a name belongs.
fn named(text: &str) -> Option<Host> {
    match text.parse::<IpAddr>() {
        Ok(address) => Some(Host::Ip(address)),
        Err(_) => Host::name(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings() {
        for (bytes, expect) in [
            (&[][..], Parsed::Need(2)),
            (&[5], Parsed::Need(2)),
            (&[5, 2, 0], Parsed::Need(4)),
            (&[5, 1, 0], Parsed::Done(true, 3)),
            (&[5, 2, 1, 2], Parsed::Done(false, 4)),
            (&[5, 1, 0, 9, 9], Parsed::Done(true, 3)),
            (&[5, 0], Parsed::Broken),
            (&[4, 1, 0], Parsed::Broken),
        ] {
            assert_eq!(greeting(bytes), expect, "{bytes:?}");
        }
    }

    #[test]
    fn requests() {
        let done = |text: &str, length| {
            Parsed::Done(
                Ok(Authority::parse(text, None).expect("an authority")),
                length,
            )
        };
        for (bytes, expect) in [
            (&b"\x05\x01\x00"[..], Parsed::Need(5)),
            (b"\x05\x01\x00\x03", Parsed::Need(5)),
            (b"\x05\x01\x00\x03\x06a.test\x00", Parsed::Need(13)),
            (b"\x05\x01\x00\x03\x06A.test\x00\x50", done("a.test:80", 13)),
            (
                b"\x05\x01\x00\x03\x06a.test\x00\x50GET",
                done("a.test:80", 13),
            ),
            (
                b"\x05\x01\x00\x03\x071.2.3.4\x00\x50",
                done("1.2.3.4:80", 14),
            ),
            (
                b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50",
                done("127.0.0.1:80", 10),
            ),
            (
                b"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb",
                done("[::1]:443", 22),
            ),
            (
                b"\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50",
                Parsed::Done(Err(Reply::CommandNotSupported), 10),
            ),
            (
                b"\x05\x03\x00\x03\x06a.test\x00\x50",
                Parsed::Done(Err(Reply::CommandNotSupported), 13),
            ),
            (
                b"\x05\x01\x00\x09\x00\x00",
                Parsed::Done(Err(Reply::AddressTypeNotSupported), 6),
            ),
            (
                b"\x05\x01\x00\x03\x06a\0test\x00\x50",
                Parsed::Done(Err(Reply::NotAllowed), 13),
            ),
            (
                b"\x05\x01\x00\x03\x06a.test\x00\x00",
                Parsed::Done(Err(Reply::NotAllowed), 13),
            ),
            (b"\x05\x01\x00\x03\x00\x00\x50", Parsed::Broken),
            (b"\x05\x01\x01\x03\x06a.test\x00\x50", Parsed::Broken),
        ] {
            assert_eq!(request(bytes), expect, "{bytes:?}");
        }
    }
}
