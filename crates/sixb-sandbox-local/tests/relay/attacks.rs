//! What a hostile program tries: each attempt has to end refused, and what can be told is told.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    time::Duration,
};

use sixb_sandbox::AllowedOrigin;

use crate::{Guest, Site};

/// Functions for the scripts of this file.
const PRELUDE: &str = r#"
import socket, ssl, sys
def connect(host, port):
    return socket.create_connection((host, port), 10)
def all(stream):
    stream.settimeout(10)
    data = b""
    try:
        while more := stream.recv(65536): data += more
    except (ConnectionError, ssl.SSLError) as error:
        data += b" [" + type(error).__name__.encode() + b"]"
    return data
def proxy():
    return connect("127.0.0.1", 3128)
def tunnel(target):
    stream = proxy()
    stream.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        more = stream.recv(1)
        if not more: break
        head += more
    return stream, head.split(b"\r\n")[0].decode()
def tls(stream, name):
    context = ssl.create_default_context(cafile="ca.pem")
    context.check_hostname = False
    return context.wrap_socket(stream, server_hostname=name)
def status(stream, request):
    try: stream.sendall(request)
    except ConnectionError: pass
    head = all(stream).decode("latin-1")
    first = head.split("\r\n")[0]
    reason = [line for line in head.lower().split("\r\n") if line.startswith("x-sixb-denied")]
    return " ".join([first] + reason)
"#;

impl Guest {
    async fn attack(&self, script: &str) -> String {
        self.python(&format!("{PRELUDE}\n{script}")).await
    }
}

/// A server that keeps what it was sent, and answers each connection once.
struct Record {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Record {
    fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = server.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for peer in server.incoming() {
                let Ok(mut peer) = peer else { return };
                let _ = peer.set_read_timeout(Some(Duration::from_millis(600)));
                let mut text = Vec::new();
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = peer.read(&mut buffer) {
                    text.extend_from_slice(&buffer[..read]);
                }
                let text = String::from_utf8_lossy(&text).into_owned();
                kept.lock().expect("not poisoned").push(text);
                let _ = peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n");
            }
        });
        Self { address, seen }
    }

    fn allow(&self, origin: &str) -> AllowedOrigin {
        AllowedOrigin::new("record", origin.parse().expect(origin)).address(self.address)
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().expect("not poisoned"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn case_60_the_name_inside_tls_is_the_one_that_was_asked_for() {
    let site = Site::new();
    let mut guest = Guest::of(&site, &["https://allowed.test"]).await;
    let script = r#"
def socks():
    stream = proxy()
    stream.sendall(b"\x05\x01\x00\x05\x01\x00\x03\x0callowed.test\x01\xbb")
    reply = b""
    while len(reply) < 12: reply += stream.recv(12 - len(reply))
    return stream
for way in (lambda: tunnel("allowed.test:443")[0], socks, lambda: connect("allowed.test", 443)):
    for name in ("allowed.test", "attacker.test", None):
        stream = way()
        try:
            stream = tls(stream, name)
            stream.sendall(b"GET /page HTTP/1.0\r\n\r\n")
            print(name, b"page" in all(stream))
        except (ssl.SSLError, OSError) as error:
            print(name, "closed", "denied" in str(error).lower())
    stream = way()
    print(status(stream, b"GET /page HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n"))
    stream = way()
    stream.sendall(b"SSH-2.0-OpenSSH_9\r\n\r\n")
    print(all(stream).split(b"\r\n")[0])
"#;
    let once = "allowed.test True\nattacker.test closed True\nNone closed True\n\
                HTTP/1.1 403 Forbidden x-sixb-denied: scheme\nb'HTTP/1.1 400 Bad Request'\n";
    assert_eq!(guest.attack(script).await, once.repeat(3));
    let once = [
        "https://allowed.test:443 authority",
        "https://allowed.test:443 authority",
        "allowed.test:443 scheme",
        "allowed.test:443 request",
    ];
    assert_eq!(guest.denied(), [once, once, once].concat());
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_to_a_cleartext_origin_is_closed() {
    let record = Record::new();
    let mut guest = Guest::new(vec![record.allow("http://allowed.test:8080")]).await;
    guest.write("ca.pem", String::new()).await;
    let script = r#"
for stream in (tunnel("allowed.test:8080")[0], connect("allowed.test", 8080)):
    stream.sendall(bytes([22, 3, 1, 0, 1, 1]))
    print(all(stream))
"#;
    let alert = "b'\\x15\\x03\\x03\\x00\\x02\\x021'\n";
    assert_eq!(guest.attack(script).await, alert.repeat(2));
    assert_eq!(guest.denied(), ["https://allowed.test:8080 scheme"; 2]);
    assert_eq!(record.seen(), [""; 0]);
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_alive_connection_does_not_change_its_host() {
    let record = Record::new();
    let mut guest = Guest::new(vec![
        record.allow("http://allowed.test"),
        record.allow("http://second.test"),
    ])
    .await;
    let script = r#"
def get(stream, target, host):
    stream.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head: head += stream.recv(1)
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while length: length -= len(stream.recv(length))
    reason = head.split(b"x-sixb-denied: ")[1].split(b"\r\n")[0].decode() if b"x-sixb" in head else ""
    return head[9:12].decode() + reason
stream = proxy()
print(get(stream, "http://allowed.test/1", "allowed.test"), get(stream, "http://evil.test/2", "evil.test"),
      get(stream, "http://second.test/3", "second.test"), get(stream, "http://allowed.test/4", "evil.test"),
      get(stream, "http://allowed.test:81/5", "allowed.test:81"), get(stream, "https://allowed.test/6", "allowed.test"),
      get(stream, "ftp://allowed.test/7", "allowed.test"), get(stream, "/8", "allowed.test"))
for stream in (connect("allowed.test", 80), tunnel("allowed.test:80")[0]):
    print(get(stream, "/a", "allowed.test"), get(stream, "/b", "second.test"), get(stream, "http://second.test/c", "second.test"),
          get(stream, "http://allowed.test/d", "second.test"), get(stream, "/e", "allowed.test:81"),
          get(stream, "/f", "allowed.test@evil.test"), get(stream, "http://allowed.test/g", "ALLOWED.test."))
"#;
    let answer = guest.attack(script).await;
    assert_eq!(
        answer,
        "200 403origin 200 403authority 403origin 403origin 403request 403request\n\
         200 403authority 403authority 403authority 403authority 403authority 200\n\
         200 403authority 403authority 403authority 403authority 403authority 200\n"
    );
    let seen = record.seen();
    let paths: Vec<_> = seen
        .iter()
        .filter_map(|request| request.split_whitespace().nth(1))
        .collect();
    assert_eq!(paths, ["/1", "/3", "/a", "/g", "/a", "/g"]);
    assert!(
        seen.iter()
            .all(|request| request.matches("HTTP/1.1").count() == 1)
    );
    assert_eq!(guest.denied().len(), 16);
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_requests_reach_nobody_or_as_one_plain_request() {
    let record = Record::new();
    let guest = Guest::new(vec![record.allow("http://allowed.test")]).await;
    let script = r#"
smuggled = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n"
host = b"Host: allowed.test\r\n"
for head in (
    b"Content-Length: 48\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 48\r\n",
    b"Content-Length: 5\r\nContent-Length: 48\r\n",
    b"Content-Length: 5, 48\r\n",
    b"Content-Length: +48\r\n",
    b"Content-Length: 0x30\r\n",
    b"Transfer-Encoding: xchunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding: identity, chunked\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"X: 1\r\n Transfer-Encoding: chunked\r\n",
    b"X: a\rb\r\n",
    b"X: a\0b\r\n",
    b"Host: evil.test\r\n",
    b"Host: allowed.test\r\n",
):
    for start in (proxy(), connect("allowed.test", 80)):
        target = b"http://allowed.test/" if start.getpeername()[1] == 3128 else b"/"
        print(status(start, b"POST " + target + b" HTTP/1.1\r\n" + host + head + b"Connection: close\r\n\r\n" + smuggled))
for line in (b"GET /x\r\n\r\n", b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", b"GET /a b HTTP/1.1\r\n" + host + b"\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
             b"GET / HTTP/1.1\r\n" + host + b"X: " + b"x" * 300000 + b"\r\n\r\n", b"GET / HTTP/1.1\r\n" + host + b"X: 1\r\n" * 200 + b"\r\n"):
    stream = connect("allowed.test", 80)
    print(status(stream, line))
"#;
    let answer = guest.attack(script).await;
    let lines: Vec<_> = answer.lines().collect();
    assert_eq!(lines.len(), 38, "{answer}");
    // Two of one meaning: the body in chunks, whatever the length says (RFC 9112, 6.3), and the connection ends.
    let (plain, refused) = lines.split_at(4);
    assert!(
        plain.iter().all(|line| line.starts_with("HTTP/1.1 200")),
        "{answer}"
    );
    for line in refused {
        // The preface of HTTP/2 is closed without a word; an answer may be lost where more is sent than is read.
        let refusal = line.is_empty() || line.starts_with("HTTP/1.1 4");
        assert!(refusal, "{line} in {answer}");
    }
    let seen = record.seen();
    assert_eq!(seen.len(), 4, "{seen:?}");
    for request in seen {
        let text = request.to_lowercase();
        let once = text.matches("http/1.1").count() == 1 && !text.contains("smuggled");
        assert!(once && !text.contains("content-length"), "{request}");
        assert!(
            text.ends_with("transfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
            "{request}"
        );
    }
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_commands_and_protocols_are_refused() {
    let site = Site::new();
    let mut guest = Guest::of(&site, &["https://allowed.test"]).await;
    let script = r#"
def socks(*messages):
    stream = proxy()
    for message in messages: stream.sendall(message)
    return all(stream).hex(" ", -1)
name = b"\x03\x0callowed.test\x01\xbb"
print(socks(b"\x05\x01\x00", b"\x05\x02\x00" + name))
print(socks(b"\x05\x01\x00", b"\x05\x03\x00" + name))
print(socks(b"\x05\x01\x00", b"\x05\x01\x00\x01\x7f\x00\x00\x01\x01\xbb"))
print(socks(b"\x05\x01\x00", b"\x05\x01\x00\x04" + b"\0" * 15 + b"\x01\x01\xbb"))
print(socks(b"\x05\x01\x00", b"\x05\x01\x00\x03\x09127.0.0.1\x01\xbb"))
print(socks(b"\x05\x01\x02"))
print(socks(b"\x04\x01\x01\xbb\x7f\x00\x00\x01\x00"))
for target in ("allowed.test:80", "allowed.test", "127.0.0.1:443", "[::1]:443", "169.254.169.254:80", "allowed.test:443@evil.test:443",
               "localhost:3128", "ALLOWED.TEST.:443"):
    print(target, tunnel(target)[1][9:12])
print(status(proxy(), b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: evil.test:443\r\nConnection: close\r\n\r\n"))
print(all(tls_in_proxy) if (tls_in_proxy := proxy()).sendall(bytes([22, 3, 1, 0, 1, 1]) + b"\r\n\r\n") is None else "")
"#;
    let answer = guest.attack(script).await;
    let refused = |code: &str| format!("05 00 05 {code} 00 01 00 00 00 00 00 00\n");
    let expect = [
        refused("07").repeat(2),
        refused("02").repeat(3),
        "05 ff\n".into(),
        String::new(),
    ]
    .concat();
    let answer = answer
        .strip_prefix(&expect)
        .unwrap_or_else(|| panic!("{expect} is how this begins: {answer}"));
    let lines: Vec<_> = answer.lines().skip(1).collect();
    assert_eq!(
        lines[..8],
        [
            "allowed.test:80 403",
            "allowed.test 403",
            "127.0.0.1:443 403",
            "[::1]:443 403",
            "169.254.169.254:80 403",
            "allowed.test:443@evil.test:443 403",
            "localhost:3128 403",
            "ALLOWED.TEST.:443 200",
        ],
        "{answer}"
    );
    assert_eq!(lines[8], "HTTP/1.1 403 Forbidden x-sixb-denied: authority");
    assert!(lines[9].starts_with("b'HTTP/1.1 400"), "{answer}");
    assert!(guest.denied().len() >= 13);
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_the_relay_leads_out() {
    let site = Site::new();
    let guest = Guest::of(&site, &["http://allowed.test", "https://allowed.test"]).await;
    let script = r#"
import errno, os, time
def attempt(what, call):
    start = time.monotonic()
    try: call(); print(what, "WORKED")
    except OSError as error: print(what, "refused" if time.monotonic() - start < 8 else "HUNG")
def udp(address, port, family=socket.AF_INET):
    stream = socket.socket(family, socket.SOCK_DGRAM); stream.settimeout(5)
    stream.connect((address, port)); stream.send(b"x"); stream.recv(1)
attempt("udp out", lambda: udp("1.1.1.1", 53))
attempt("dns at the relay's addresses", lambda: udp("127.16.0.1", 53))
attempt("dns", lambda: udp("127.0.0.1", 53))
attempt("udp 6", lambda: udp("2606:4700:4700::1111", 53, socket.AF_INET6))
attempt("tcp 6", lambda: connect("2606:4700:4700::1111", 443))
attempt("tcp 4", lambda: connect("1.1.1.1", 443))
attempt("metadata", lambda: connect("169.254.169.254", 80))
attempt("another port", lambda: connect("allowed.test", 9999))
attempt("an address beside", lambda: connect("127.16.0.2", 80))
attempt("icmp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).sendto(b"\x08\0\0\0\0\0\0\0", ("1.1.1.1", 0)))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
for name in ("example.com", "data.in.a.name.attacker.test", "host.docker.internal", "metadata.google.internal"):
    attempt("name " + name, lambda: socket.getaddrinfo(name, 80))
attempt("the supervisor's descriptors", lambda: os.listdir("/proc/1/fd"))
attempt("a route", lambda: open("/proc/sys/net/ipv4/ip_forward", "w").write("1"))
"#;
    let answer = guest.attack(script).await;
    for line in answer.lines() {
        assert!(line.ends_with(" refused"), "{line} in {answer}");
    }
    assert_eq!(answer.lines().count(), 19, "{answer}");
    guest.done().await;
}
