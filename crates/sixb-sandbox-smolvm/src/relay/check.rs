//! Whether what the guest sends fits the origin: TLS with a matching name for https, requests with a matching `Host` for
//! http, each request of a kept-alive connection. Bytes are held back until they are known to fit, and never altered.

use sixb_sandbox::{DenialReason, Origin};

/// Longest head of a request, and longest start of a TLS connection.
const MAX_HEAD: usize = 64 << 10;

/// Why the bytes do not fit: the value of `x-sixb-denied`.
pub(super) type Denied = DenialReason;

#[derive(Debug)]
pub(super) enum Check {
    Http(Http),
    Tls {
        name: Option<String>,
        held: Vec<u8>,
        done: bool,
    },
}

impl Check {
    pub(super) fn of(origin: &Origin) -> Self {
        let host = origin.host();
        if origin.scheme() == "https" {
            let is_address = host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .parse::<std::net::IpAddr>()
                .is_ok();
            return Self::Tls {
                name: (!is_address).then(|| host.to_owned()),
                held: Vec::new(),
                done: false,
            };
        }
        let mut hosts = vec![format!("{host}:{}", origin.port())];
        if origin.port() == 80 {
            hosts.push(host.to_owned());
        }
        Self::http(&hosts)
    }

    pub(super) fn http(hosts: &[String]) -> Self {
        Self::Http(Http {
            hosts: hosts.to_vec(),
            held: Vec::new(),
            state: State::Head,
        })
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// Takes bytes of the guest and appends to `out` what may pass.
    pub(super) fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Denied> {
        match self {
            Self::Http(http) => http.take(bytes, out),
            Self::Tls { done: true, .. } => {
                out.extend_from_slice(bytes);
                Ok(())
            }
            Self::Tls { name, held, done } => {
                held.extend_from_slice(bytes);
                match client_hello(held)? {
                    None if held.len() > MAX_HEAD => return Err(DenialReason::Scheme),
                    None => return Ok(()),
                    Some(told) => {
                        if name.is_some() && told.as_deref().map(str::to_ascii_lowercase) != *name {
                            return Err(DenialReason::Authority);
                        }
                    }
                }
                *done = true;
                out.append(held);
                Ok(())
            }
        }
    }
}

/// The server name of a whole ClientHello (`Some(None)` = it has none); `None` while bytes are missing.
fn client_hello(bytes: &[u8]) -> Result<Option<Option<String>>, Denied> {
    let mut message = Vec::new();
    let mut rest = bytes;
    // A handshake message may lie in several records.
    loop {
        if !rest.is_empty() && rest[0] != 0x16 {
            return Err(DenialReason::Scheme);
        }
        let Some((head, after)) = rest.split_first_chunk::<5>() else {
            return Ok(None);
        };
        if head[1] != 3 {
            return Err(DenialReason::Scheme);
        }
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if after.len() < length {
            return Ok(None);
        }
        message.extend_from_slice(&after[..length]);
        rest = &after[length..];
        let Some((head, body)) = message.split_first_chunk::<4>() else {
            continue;
        };
        if head[0] != 1 {
            return Err(DenialReason::Scheme);
        }
        let length = usize::from(head[1]) << 16 | usize::from(head[2]) << 8 | usize::from(head[3]);
        if body.len() >= length {
            return server_name(&body[..length])
                .map(Some)
                .ok_or(DenialReason::Scheme);
        }
    }
}

fn server_name(body: &[u8]) -> Option<Option<String>> {
    fn skip(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
        let length = bytes
            .get(..width)?
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        bytes.get(width..)?.split_at_checked(length)
    }
    let rest = body.get(34..)?;
    let (_, rest) = skip(rest, 1)?;
    let (_, rest) = skip(rest, 2)?;
    let (_, rest) = skip(rest, 1)?;
    if rest.is_empty() {
        return Some(None);
    }
    let (mut extensions, _) = skip(rest, 2)?;
    while !extensions.is_empty() {
        let kind = extensions.get(..2)?;
        let (data, rest) = skip(&extensions[2..], 2)?;
        if kind == [0, 0] {
            let (list, _) = skip(data, 2)?;
            let (name, more) = skip(list.get(1..)?, 2)?;
            // One name, of the only kind there is.
            return (list[0] == 0 && more.is_empty())
                .then(|| String::from_utf8(name.to_vec()).ok())
                .map(|name| name.or(Some(String::new())));
        }
        extensions = rest;
    }
    Some(None)
}

#[derive(Debug)]
pub(super) struct Http {
    hosts: Vec<String>,
    held: Vec<u8>,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Head,
    Body(u64),
    ChunkSize,
    Chunk(u64),
    Trailer,
}

impl Http {
    fn take(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Denied> {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Body(left) | State::Chunk(left) => {
                    let count = bytes
                        .len()
                        .min(usize::try_from(*left).unwrap_or(usize::MAX));
                    out.extend_from_slice(&bytes[..count]);
                    bytes = &bytes[count..];
                    *left -= count as u64;
                    if *left == 0 {
                        self.state = if matches!(self.state, State::Body(_)) {
                            State::Head
                        } else {
                            State::ChunkSize
                        };
                    }
                }
                State::Head | State::ChunkSize | State::Trailer => {
                    let at = bytes
                        .iter()
                        .position(|byte| *byte == b'\n')
                        .map_or(bytes.len(), |at| at + 1);
                    self.held.extend_from_slice(&bytes[..at]);
                    bytes = &bytes[at..];
                    if self.held.len() > MAX_HEAD {
                        return Err(DenialReason::Request);
                    }
                    if self
                        .held
                        .first()
                        .is_some_and(|byte| !byte.is_ascii_uppercase())
                        && self.state == State::Head
                        && self.held[0] != b'\r'
                    {
                        return Err(DenialReason::Scheme);
                    }
                    if self.held.ends_with(b"\n") {
                        self.line(out)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A line has ended: is something whole?
    fn line(&mut self, out: &mut Vec<u8>) -> Result<(), Denied> {
        let next = match self.state {
            State::Head if self.held == b"\r\n" => State::Head,
            State::Head => {
                if !self.held.ends_with(b"\r\n\r\n") {
                    return Ok(());
                }
                self.head()?
            }
            State::ChunkSize => {
                let text = std::str::from_utf8(&self.held).map_err(|_| DenialReason::Request)?;
                let size = text.trim().split(';').next().unwrap_or_default().trim();
                if size.is_empty()
                    || size.len() > 15
                    || !size.bytes().all(|byte| byte.is_ascii_hexdigit())
                {
                    return Err(DenialReason::Request);
                }
                match u64::from_str_radix(size, 16).map_err(|_| DenialReason::Request)? {
                    0 => State::Trailer,
                    // With the line end behind it.
                    size => State::Chunk(size + 2),
                }
            }
            _ => {
                if self.held != b"\r\n" && !self.held.ends_with(b"\r\n\r\n") {
                    return Ok(());
                }
                State::Head
            }
        };
        out.append(&mut self.held);
        self.state = next;
        Ok(())
    }

    /// Checks a whole head, and tells what follows it.
    fn head(&self) -> Result<State, Denied> {
        let text = std::str::from_utf8(&self.held).map_err(|_| DenialReason::Request)?;
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        let mut request = lines.next().unwrap_or_default().split(' ');
        let (method, target, version) = (request.next(), request.next(), request.next());
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (method, target, version, request.next())
        else {
            return Err(DenialReason::Request);
        };
        if method == "CONNECT" {
            return Err(DenialReason::Request);
        }
        let fits = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        if !target.starts_with('/') && target != "*" {
            let authority = target
                .strip_prefix("http://")
                .ok_or(DenialReason::Request)?
                .split(['/', '?', '#'])
                .next()
                .unwrap_or_default();
            if !fits(authority) {
                return Err(DenialReason::Authority);
            }
        }
        let (mut hosts, mut length, mut chunked) = (0, None, false);
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(DenialReason::Request)?;
            if name.is_empty() || name.contains([' ', '\t']) || line.contains('\n') {
                return Err(DenialReason::Request);
            }
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "host" if !fits(value) => return Err(DenialReason::Authority),
                "host" => hosts += 1,
                "content-length" => {
                    let value: u64 = value.parse().map_err(|_| DenialReason::Request)?;
                    if length.is_some_and(|length| length != value) {
                        return Err(DenialReason::Request);
                    }
                    length = Some(value);
                }
                "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => chunked = true,
                "transfer-encoding" => return Err(DenialReason::Request),
                // What follows would be no HTTP that can be checked.
                "upgrade" => return Err(DenialReason::Request),
                _ => {}
            }
        }
        match (hosts, chunked, length) {
            (0 | 2.., _, _) => Err(DenialReason::Authority),
            (_, true, Some(_)) => Err(DenialReason::Request),
            (_, true, None) => Ok(State::ChunkSize),
            (_, false, Some(length)) if length > 0 => Ok(State::Body(length)),
            _ => Ok(State::Head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(input: &str) -> Result<String, Denied> {
        let mut whole = Vec::new();
        Check::of(&"http://svc.test".parse().expect("origin"))
            .take(input.as_bytes(), &mut whole)?;
        // Cut anywhere, the answer is the same.
        let (mut check, mut out) = (
            Check::of(&"http://svc.test".parse().expect("origin")),
            Vec::new(),
        );
        for byte in input.as_bytes() {
            check.take(&[*byte], &mut out)?;
        }
        assert_eq!(out, whole, "{input:?}");
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn requests_pass_unaltered_and_each_is_checked() {
        let get = "GET /a HTTP/1.1\r\nHost: svc.test\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nhost: SVC.test:80\r\nContent-Length: 5\r\n\r\nGET /";
        let chunked = "POST / HTTP/1.1\r\nHost: svc.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        for pass in [
            get.to_owned(),
            [get, post, get].concat(),
            [chunked, get].concat(),
        ] {
            assert_eq!(http(&pass), Ok(pass.clone()));
        }
        let other = "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n";
        for (input, denied) in [
            (other.to_owned(), DenialReason::Authority),
            ([get, other].concat(), DenialReason::Authority),
            ([post, other].concat(), DenialReason::Authority),
            ([chunked, other].concat(), DenialReason::Authority),
            ("GET http://other.test/ HTTP/1.1\r\nHost: svc.test\r\n\r\n".to_owned(), DenialReason::Authority),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), DenialReason::Authority),
            ("GET / HTTP/1.1\r\nHost: svc.test\r\nHost: svc.test\r\n\r\n".to_owned(), DenialReason::Authority),
            ("CONNECT x:443 HTTP/1.1\r\nHost: svc.test\r\n\r\n".to_owned(), DenialReason::Request),
            ("POST / HTTP/1.1\r\nHost: svc.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), DenialReason::Request),
            ("GET / HTTP/1.1\r\nHost: svc.test\r\nUpgrade: h2c\r\n\r\n".to_owned(), DenialReason::Request),
            ("\u{16}\u{3}\u{1}".to_owned(), DenialReason::Scheme),
        ] {
            assert_eq!(http(&input), Err(denied), "{input:?}");
        }
    }

    fn hello(name: Option<&str>) -> Vec<u8> {
        let sized = |width: usize, bytes: &[u8]| {
            [&(bytes.len() as u32).to_be_bytes()[4 - width..], bytes].concat()
        };
        let mut extensions = [&[0, 10][..], &sized(2, &[0, 0])].concat();
        if let Some(name) = name {
            let list = [&[0][..], &sized(2, name.as_bytes())].concat();
            extensions.extend([&[0, 0][..], &sized(2, &sized(2, &list))].concat());
        }
        let body = [
            &[3; 34][..],
            &[0],
            &[0, 2, 1, 1],
            &[1, 0],
            &sized(2, &extensions),
        ]
        .concat();
        let message = [&[1][..], &sized(3, &body)].concat();
        // In two records.
        let (first, second) = message.split_at(20);
        [
            &[0x16, 3, 1][..],
            &sized(2, first),
            &[0x16, 3, 1],
            &sized(2, second),
        ]
        .concat()
    }

    #[test]
    fn case_60_the_name_in_tls_must_be_the_origins() {
        for (bytes, expect) in [
            (hello(Some("allowed.test")), Ok(())),
            (hello(Some("ALLOWED.test")), Ok(())),
            (hello(Some("attacker.test")), Err(DenialReason::Authority)),
            (hello(None), Err(DenialReason::Authority)),
            (
                b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n".to_vec(),
                Err(DenialReason::Scheme),
            ),
        ] {
            let mut out = Vec::new();
            let mut check = Check::of(&"https://allowed.test".parse().expect("origin"));
            let got = bytes
                .iter()
                .try_for_each(|byte| check.take(&[*byte], &mut out));
            assert_eq!(got, expect);
            assert_eq!(out, if expect.is_ok() { bytes } else { Vec::new() });
        }
    }
}
