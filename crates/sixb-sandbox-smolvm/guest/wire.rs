//! The words that host and guest exchange. Compiled into both, so that they cannot drift apart.
//!
//! One connection carries one request. A frame is a kind (one byte), a length (four bytes, little endian) and that many
//! bytes; where those are fields, each is a length and its bytes. Both sides bound every length they read: the guest is
//! hostile to the host, and a broken host must not fill the guest.

use std::io::{self, Read};

/// Host and guest are of one build; the first answer proves it.
pub(crate) const VERSION: &str = "sixb-guest 1";
/// Longest frame, in bytes. Larger contents travel in pieces.
pub(crate) const MAX_FRAME: usize = 4 << 20;
/// Contents are cut into pieces of this many bytes.
pub(crate) const CHUNK: usize = 256 << 10;

/// Asks, by the first frame of a connection.
pub(crate) const HELLO: u8 = b'h';
pub(crate) const RUN: u8 = b'r';
pub(crate) const WRITE: u8 = b'w';
pub(crate) const READ: u8 = b'g';
pub(crate) const STAT: u8 = b's';
pub(crate) const LIST: u8 = b'l';
pub(crate) const REMOVE: u8 = b'd';
pub(crate) const SEEK: u8 = b'n';
pub(crate) const RELAY: u8 = b'a';
/// Is never answered: the connection ends with the machine.
pub(crate) const WATCH: u8 = b'q';

/// Goes from the host to a running command.
pub(crate) const STDIN: u8 = b'i';
pub(crate) const STDIN_END: u8 = b'e';
pub(crate) const KILL: u8 = b'k';

/// Goes from the guest to the host.
pub(crate) const OK: u8 = b'O';
pub(crate) const ERROR: u8 = b'E';
pub(crate) const DATA: u8 = b'D';
pub(crate) const STARTED: u8 = b'S';
pub(crate) const NOT_STARTED: u8 = b'N';
pub(crate) const STDOUT: u8 = b'1';
pub(crate) const STDERR: u8 = b'2';
pub(crate) const STDIN_TAKEN: u8 = b'I';
pub(crate) const EXIT: u8 = b'X';
pub(crate) const CONNECT: u8 = b'C';

/// The name of an error (any other is only shown), in the first field of an [`ERROR`] frame.
pub(crate) mod error {
    pub(crate) const NOT_FOUND: &str = "not-found";
    pub(crate) const ESCAPE: &str = "escape";
    pub(crate) const KIND: &str = "kind";
    pub(crate) const DENIED: &str = "denied";
    pub(crate) const LIMIT: &str = "limit";
}

/// A frame as bytes.
pub(crate) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(payload.len() + 5);
    bytes.push(kind);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Fields, one behind the other.
pub(crate) fn pack<T: AsRef<[u8]>>(fields: &[T]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        push(&mut bytes, field.as_ref());
    }
    bytes
}

/// Adds one field.
pub(crate) fn push(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend_from_slice(&(field.len() as u32).to_le_bytes());
    bytes.extend_from_slice(field);
}

/// The fields of a payload.
pub(crate) fn unpack(mut bytes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(broken)?;
        let length = u32::from_le_bytes(*length) as usize;
        if rest.len() < length {
            return Err(broken());
        }
        fields.push(rest[..length].to_vec());
        bytes = &rest[length..];
    }
    Ok(fields)
}

/// Kind and length of a frame, from its first five bytes.
pub(crate) fn header(bytes: [u8; 5]) -> io::Result<(u8, usize)> {
    let length = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) as usize;
    if length > MAX_FRAME {
        return Err(broken());
    }
    Ok((bytes[0], length))
}

/// Reads one frame. Blocking.
#[allow(dead_code, reason = "the host reads without blocking")]
pub(crate) fn read(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut first = [0; 5];
    from.read_exact(&mut first)?;
    let (kind, length) = header(first)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    Ok((kind, payload))
}

/// A number in a field.
pub(crate) fn number(field: &[u8]) -> io::Result<u64> {
    std::str::from_utf8(field)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(broken)
}

pub(crate) fn broken() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a frame that breaks the protocol",
    )
}
