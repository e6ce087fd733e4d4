//! The ways in which servers read a path.

/// The parts between slashes, decoded.
pub(super) type Segments = Vec<Vec<u8>>;

/// How often a path is decoded until nothing is left to decode. Honest ones are encoded once.
const MAX_DECODINGS: usize = 8;

/// A path that is not compared, but refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathProblem {
    /// It is encoded in itself more than [`MAX_DECODINGS`] times.
    TooDeep,
    /// It decodes to what servers read in ways that nobody can foresee: control characters, which cut a path short in some,
    /// and overlong UTF-8 and `%uXXXX`, in which some find a slash or a dot.
    Unsafe,
}

/// All readings of a path, without duplicates. The first is the exact one: split at its slashes, then decoded once. The
/// others are those of servers that decode first, or again and again, that take an encoded `?` or `#` for the end of the path,
/// or that leave `;parameters` out.
pub(super) fn readings(path: &str) -> Result<Vec<Segments>, PathProblem> {
    let mut all = Vec::new();
    let exact: Segments = path
        .split('/')
        .map(|part| decode(part.as_bytes()))
        .collect();
    push(&mut all, exact);
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..MAX_DECODINGS {
        let decoded = decode(&bytes);
        if is_unsafe(&decoded) {
            return Err(PathProblem::Unsafe);
        }
        push(&mut all, split(&decoded));
        if let Some(end) = decoded.iter().position(|byte| matches!(byte, b'?' | b'#')) {
            push(&mut all, split(&decoded[..end]));
        }
        if decoded == bytes {
            return Ok(all);
        }
        bytes = decoded;
    }
    Err(PathProblem::TooDeep)
}

fn split(decoded: &[u8]) -> Segments {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    decoded.split(is_slash).map(<[u8]>::to_vec).collect()
}

fn is_unsafe(path: &[u8]) -> bool {
    let is_long_for_ascii = |pair: &[u8]| {
        matches!(
            pair,
            [0xc0 | 0xc1 | 0xf8..=0xfd, 0x80..=0xbf] | [0xe0, 0x80..=0x9f] | [0xf0, 0x80..=0x8f]
        )
    };
    let is_percent_u = |six: &[u8]| matches!(six, [b'%', b'u' | b'U', digits @ ..] if digits.iter().all(u8::is_ascii_hexdigit));
    path.iter().any(u8::is_ascii_control)
        || path.windows(2).any(is_long_for_ascii)
        || path.windows(6).any(is_percent_u)
}

/// Adds a reading, and the same one as servers read it that leave parameters and blanks at the end out; each of them with
/// empty segments that `..` steps over, and with empty segments that it takes back.
fn push(all: &mut Vec<Segments>, parts: Segments) {
    let bare: Segments = parts.iter().map(|part| bare(part).to_vec()).collect();
    for reading in [
        resolved(&parts, merging),
        resolved(&parts, keeping),
        resolved(&bare, merging),
        resolved(&bare, keeping),
    ] {
        if !all.contains(&reading) {
            all.push(reading);
        }
    }
}

/// A segment without parameters; one of dots and blanks only as Windows reads it, which does not mind what it ends with.
fn bare(part: &[u8]) -> &[u8] {
    let end = part.iter().position(|byte| *byte == b';');
    let part = &part[..end.unwrap_or(part.len())];
    let blanks = part.iter().rev().take_while(|byte| **byte == b' ').count();
    match &part[..part.len() - blanks] {
        dots @ (b"." | b"..") => dots,
        _ if part.iter().all(|byte| matches!(byte, b'.' | b' ')) => &[],
        _ => part,
    }
}

/// Slashes that follow each other are one, as most servers say.
fn merging(part: &[u8]) -> bool {
    !part.is_empty()
}

/// There is an empty segment between two slashes, as RFC 3986 says.
fn keeping(_: &[u8]) -> bool {
    true
}

/// Without `.` and `..`, and in the end without empty segments: which of them there are until then, `counts` says.
fn resolved(parts: &[Vec<u8>], counts: impl Fn(&[u8]) -> bool) -> Segments {
    let mut segments = Segments::new();
    for part in parts {
        match &part[..] {
            b"." => {}
            b".." => drop(segments.pop()),
            part if counts(part) => segments.push(part.to_vec()),
            _ => {}
        }
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}

/// Decodes `%XX` once; what is no such sequence stays.
fn decode(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| (*bytes.get(at)? as char).to_digit(16);
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

/// The path of a rule: one that has a single reading.
pub(super) fn plain(path: &str) -> Result<Segments, &'static str> {
    let mut readings = readings(path).map_err(
        |_| "has a path that is encoded too often, or holds control characters or malformed UTF-8",
    )?;
    let dots = |part: &str| matches!(&decode(part.as_bytes())[..], b"." | b"..");
    if path.split('/').any(dots) {
        return Err("has `.` or `..` in its path: write the path that is meant");
    }
    match (readings.pop(), readings.is_empty()) {
        (Some(only), true) => Ok(only),
        _ => Err(
            "has a path that servers read in several ways (encoded slashes, percent signs, `?` or `#`, backslashes, `;`): write it plainly",
        ),
    }
}

/// Whether a reading lies at or below `prefix`.
pub(super) fn is_at_or_below(reading: &[Vec<u8>], prefix: &[Vec<u8>]) -> bool {
    reading.starts_with(prefix)
}

/// The same where case does not count, nor dots and blanks at the end of a segment: some servers do not mind them.
pub(super) fn is_at_or_below_in_any_case(reading: &[Vec<u8>], prefix: &[Vec<u8>]) -> bool {
    reading.len() >= prefix.len()
        && reading
            .iter()
            .zip(prefix)
            .all(|(part, wanted)| stem(part).eq_ignore_ascii_case(stem(wanted)))
}

fn stem(segment: &[u8]) -> &[u8] {
    let end = segment
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b' '));
    match end {
        Some(last) => &segment[..=last],
        None => segment,
    }
}

/// As text: `/a%20b`. Empty for no segments.
pub(super) fn text(segments: &[Vec<u8>]) -> String {
    let mut text = String::new();
    for segment in segments {
        text.push('/');
        for &byte in segment {
            match byte {
                b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'+'
                | b'=' | b':' | b'@' => text.push(byte as char),
                _ if byte.is_ascii_alphanumeric() => text.push(byte as char),
                _ => text.push_str(&format!("%{byte:02X}")),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str) -> Vec<String> {
        let readings = readings(path).expect(path);
        readings.iter().map(|reading| text(reading)).collect()
    }

    #[test]
    fn a_plain_path_has_one_reading() {
        for (path, expect) in [
            ("/", ""),
            ("/a/b", "/a/b"),
            ("//a///b/", "/a/b"),
            ("/%61/%7e", "/a/~"),
            ("/caf%C3%A9", "/caf%C3%A9"),
            ("/100%25", "/100%25"),
            ("/a%20b", "/a%20b"),
        ] {
            assert_eq!(shown(path), [expect], "{path}");
        }
    }

    #[test]
    fn others_have_one_for_each_kind_of_server() {
        for (path, expect) in [
            ("/a%2Fb", &["/a%2Fb", "/a/b"][..]),
            ("/a%5cb", &["/a%5Cb", "/a/b"]),
            ("/%2570", &["/%2570", "/p"]),
            ("/x%2f..%2fp", &["/x%2F..%2Fp", "/p"]),
            ("/p;v=1/q", &["/p%3Bv=1/q", "/p/q"]),
            ("/x/..;/p", &["/x/..%3B/p", "/p"]),
            ("/p%3Fx", &["/p%3Fx", "/p"]),
            ("/p%2523x", &["/p%2523x", "/p%23x", "/p"]),
            ("/d/..%3Fx", &["/d/..%3Fx", ""]),
            ("/x//..%2Fp", &["/x/..%2Fp", "/p", "/x/p"]),
            ("/x//..;/p", &["/x/..%3B/p", "/p", "/x/p"]),
            ("/x/..%20/p", &["/x/..%20/p", "/p"]),
            ("/x/.../p", &["/x/.../p", "/x/p"]),
            ("/%25252570", &["/%25252570", "/%252570", "/%2570", "/p"]),
        ] {
            assert_eq!(shown(path), expect, "{path}");
        }
    }

    #[test]
    fn some_are_refused() {
        for path in [
            "/a%00",
            "/a%250a",
            "/a%c0%af",
            "/%c1%9c",
            "/%e0%80%af",
            "/%25c0%25ae",
            "/%f8%80%80%80%af",
            "/%fc%80%80%80%80%af",
            "/%u0070",
            "/%25U002f",
        ] {
            assert_eq!(readings(path), Err(PathProblem::Unsafe), "{path}");
        }
        for path in ["/caf%E9", "/%C3%80%C3%A0", "/%E0%A4%85", "/%u12", "/%unit"] {
            assert!(readings(path).is_ok(), "{path}");
        }
        let deep = format!("/%{}70", "25".repeat(20));
        assert_eq!(readings(&deep), Err(PathProblem::TooDeep));
    }
}
