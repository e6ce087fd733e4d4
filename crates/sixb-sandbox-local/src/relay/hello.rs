//! Which server a TLS ClientHello names. Nothing is decrypted and nothing altered: the bytes are looked at and passed on.
//!
//! The hello may be spread over records and reads as the sender likes; a look at the first packet alone is what such
//! checks are walked around with. Whatever is odd is refused: two names, two hellos, bytes behind it.

/// The first byte of every TLS connection: a handshake record.
pub(crate) const HANDSHAKE: u8 = 22;
/// Longest hello that is looked at, in bytes, without and with the heads of its records. Browsers send some 2 KiB.
const MAX_HELLO: usize = 16 << 10;
pub(crate) const MAX_BYTES: usize = 32 << 10;
/// Longest record (RFC 8446, 5.1).
const MAX_RECORD: usize = 1 << 14;

const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// What the first bytes of a connection are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hello {
    /// Fine so far, but not all of it.
    Incomplete,
    /// A hello, and the server that it names.
    Names(Option<String>),
    /// Not a hello, or one that plays games.
    Broken,
}

/// Looks at the first bytes of a connection.
pub(crate) fn parse(bytes: &[u8]) -> Hello {
    match join(bytes) {
        Joined::Whole(hello) => match server_name(&hello) {
            Some(name) => Hello::Names(name),
            None => Hello::Broken,
        },
        Joined::Incomplete if bytes.len() < MAX_BYTES => Hello::Incomplete,
        Joined::Incomplete | Joined::Broken => Hello::Broken,
    }
}

enum Joined {
    Whole(Vec<u8>),
    Incomplete,
    Broken,
}

/// Takes the body of the hello out of its records.
fn join(mut bytes: &[u8]) -> Joined {
    let mut message = Vec::new();
    loop {
        match bytes {
            [] => return Joined::Incomplete,
            [HANDSHAKE] | [HANDSHAKE, 3] | [HANDSHAKE, 3, _] | [HANDSHAKE, 3, _, _] => {
                return Joined::Incomplete;
            }
            [HANDSHAKE, 3, _, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                if length == 0 || length > MAX_RECORD {
                    return Joined::Broken;
                }
                let here = &rest[..length.min(rest.len())];
                message.extend_from_slice(here);
                match whole(&message) {
                    Err(()) => return Joined::Broken,
                    // The hello ends where a record ends: nothing hides behind it.
                    Ok(Some(size)) if message.len() > size => return Joined::Broken,
                    Ok(Some(size)) if message.len() == size && here.len() == length => {
                        return Joined::Whole(message.split_off(4));
                    }
                    // The record is longer than the hello.
                    Ok(Some(size)) if message.len() == size => return Joined::Broken,
                    Ok(_) if here.len() < length => return Joined::Incomplete,
                    Ok(_) => bytes = &rest[length..],
                }
            }
            _ => return Joined::Broken,
        }
    }
}

/// Size of the handshake message that begins so, once it is known.
fn whole(message: &[u8]) -> Result<Option<usize>, ()> {
    match message {
        [] | [CLIENT_HELLO] | [CLIENT_HELLO, _] | [CLIENT_HELLO, _, _] => Ok(None),
        [CLIENT_HELLO, a, b, c, ..] => {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            (length <= MAX_HELLO).then_some(Some(4 + length)).ok_or(())
        }
        _ => Err(()),
    }
}

/// A reader of length-prefixed pieces.
struct Pieces<'a>(&'a [u8]);

impl<'a> Pieces<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (piece, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(piece)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)
            .map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }

    fn done(&self) -> bool {
        self.0.is_empty()
    }
}

/// The name in the body of a hello; `None` if the hello is broken.
fn server_name(hello: &[u8]) -> Option<Option<String>> {
    let mut hello = Pieces(hello);
    hello.take(2 + 32)?; // version, random
    hello.short()?; // session
    hello.long()?; // ciphers
    hello.short()?; // compression
    if hello.done() {
        return Some(None);
    }
    let mut extensions = Pieces(hello.long()?);
    if !hello.done() {
        return None;
    }
    let mut found = None;
    while !extensions.done() {
        let (kind, content) = (extensions.u16()?, extensions.long()?);
        if kind == SERVER_NAME {
            let name = one_host_name(content)?;
            if found.replace(name).is_some() {
                return None;
            }
        }
    }
    Some(found)
}

/// The list may hold one entry, and it is a host name.
fn one_host_name(content: &[u8]) -> Option<String> {
    let mut outer = Pieces(content);
    let mut list = Pieces(outer.long()?);
    let kind = list.u8()?;
    let name = list.long()?;
    let plain = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    (kind == HOST_NAME && plain && list.done() && outer.done())
        .then(|| String::from_utf8_lossy(name).to_ascii_lowercase())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn long(content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(content.len()).expect("short");
        [&length.to_be_bytes()[..], content].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &long(content)].concat()
    }

    fn name(kind: u8, name: &[u8]) -> Vec<u8> {
        [&[kind][..], &long(name)].concat()
    }

    fn names(entries: &[Vec<u8>]) -> Vec<u8> {
        extension(SERVER_NAME, &long(&entries.concat()))
    }

    fn message(extensions: Option<&[Vec<u8>]>) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
        body.extend(
            extensions
                .map(|all| long(&all.concat()))
                .unwrap_or_default(),
        );
        let length = u32::try_from(body.len()).expect("short").to_be_bytes();
        [&[CLIENT_HELLO][..], &length[1..], &body].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        message
            .chunks(size)
            .flat_map(|chunk| [&[HANDSHAKE, 3, 1][..], &long(chunk)].concat())
            .collect()
    }

    /// A hello that names `server`, in records of `size` bytes.
    pub(in crate::relay) fn hello(server: &str, size: usize) -> Vec<u8> {
        let other = extension(43, &[2, 3, 4]);
        records(
            &message(Some(&[other, names(&[name(0, server.as_bytes())])])),
            size,
        )
    }

    #[test]
    fn the_name_is_found_however_the_hello_is_cut() {
        let expect = Hello::Names(Some("allowed.test".into()));
        for size in [1, 2, 3, 7, 40, 4000] {
            let bytes = hello("Allowed.TEST", size);
            assert_eq!(parse(&bytes), expect, "records of {size}");
            for cut in 0..bytes.len() {
                assert_eq!(parse(&bytes[..cut]), Hello::Incomplete, "{cut} of {size}");
            }
            // What follows in records of its own is not the hello's.
            assert_eq!(parse(&[&bytes[..], &[23, 3, 3, 0, 1, 0]].concat()), expect);
        }
    }

    #[test]
    fn a_hello_may_name_nobody() {
        for extensions in [None, Some(&[][..]), Some(&[extension(43, &[])][..])] {
            let bytes = records(&message(extensions), 4000);
            assert_eq!(parse(&bytes), Hello::Names(None));
        }
    }

    #[test]
    fn games_are_refused() {
        let one = names(&[name(0, b"a.test")]);
        let of =
            |extension: &Vec<u8>| records(&message(Some(std::slice::from_ref(extension))), 4000);
        let plain = of(&one);
        let cut = records(&message(Some(&[])), 10);
        let mut trailing = message(Some(std::slice::from_ref(&one)));
        trailing.push(0);
        let two_in_one = [
            message(Some(&[])),
            message(Some(std::slice::from_ref(&one))),
        ]
        .concat();
        for (what, bytes) in [
            (
                "two extensions",
                records(&message(Some(&[one.clone(), one.clone()])), 4000),
            ),
            (
                "two names",
                of(&names(&[name(0, b"a.test"), name(0, b"b.test")])),
            ),
            ("no name", of(&names(&[]))),
            ("an empty name", of(&names(&[name(0, b"")]))),
            ("another kind of name", of(&names(&[name(1, b"a.test")]))),
            ("a NUL", of(&names(&[name(0, b"a.test\0.b.test")]))),
            (
                "bytes behind the list",
                of(&extension(
                    0,
                    &[&long(&name(0, b"a.test"))[..], &[0]].concat(),
                )),
            ),
            ("a short list", of(&extension(0, &[0, 50, 0, 0, 1, b'a']))),
            ("bytes behind the hello", records(&trailing, 4000)),
            ("two hellos in one record", records(&two_in_one, 4000)),
            (
                "an empty record",
                [&[HANDSHAKE, 3, 1, 0, 0][..], &plain].concat(),
            ),
            ("a long record", vec![HANDSHAKE, 3, 1, 0x40, 1]),
            ("SSL 2", vec![0x80, 0x2e, 1, 0, 2]),
            ("an alert", vec![21, 3, 1, 0, 2, 2, 40]),
            ("a long hello", records(&[CLIENT_HELLO, 0, 0x40, 1], 4)),
            ("a ServerHello", records(&[2, 0, 0, 1, 0], 5)),
            ("HTTP", b"GET / HTTP/1.1\r\n".to_vec()),
            (
                "an alert between two records",
                [&cut[..15], &[21, 3, 1, 0, 2, 2, 40]].concat(),
            ),
        ] {
            assert_eq!(parse(&bytes), Hello::Broken, "{what}");
        }
    }

    #[test]
    fn waiting_has_an_end() {
        let endless: Vec<u8> = std::iter::repeat_n([HANDSHAKE, 3, 1, 0, 1, 0], MAX_BYTES)
            .flatten()
            .collect();
        assert_eq!(parse(&endless), Hello::Broken, "not a hello");
        let slow = records(
            &[&[CLIENT_HELLO, 0, 0x40, 0][..], &vec![0; MAX_HELLO - 1]].concat(),
            1,
        );
        assert_eq!(parse(&slow[..MAX_BYTES]), Hello::Broken, "too many records");
    }
}
