//! The relay without a sandbox: resolvers that lie, and any bytes at all.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use proptest::prelude::*;
use sixb_sandbox::AllowedOrigin;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    Relay, audit::Audit, authority::Authority, check::relay_parser, dial::Dialer,
    hello::tests::hello, plan::Role,
};
use sixb_sandbox::NetworkDenial;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A relay on ports of the host: the proxy, and the direct port of `a.test:443`.
struct Fixture {
    relay: Relay,
    proxy: SocketAddr,
    direct: SocketAddr,
    lookups: Arc<AtomicUsize>,
    denials: mpsc::Receiver<NetworkDenial>,
}

impl Fixture {
    /// Names resolve to `answers`, in turn.
    fn new(answers: Vec<Vec<IpAddr>>) -> Self {
        let allowed = ["http://a.test", "https://a.test"]
            .map(|origin| AllowedOrigin::new(origin, origin.parse().expect(origin)));
        let plan = super::plan(&allowed, None).expect("a plan");
        let place = Authority::parse("a.test:443", None).expect("a place");
        let mut addresses = Vec::new();
        let mut listen = |role| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            addresses.push(listener.local_addr().expect("an address"));
            (listener.into(), role)
        };
        let listeners = vec![listen(Role::Proxy), listen(Role::Direct(place))];
        let lookups = Arc::new(AtomicUsize::new(0));
        let count = lookups.clone();
        let dialer = Dialer::new(Arc::new(move |name| {
            assert_eq!(name, "a.test", "nothing else is ever looked up");
            let turn = count.fetch_add(1, Ordering::Relaxed);
            Ok(answers[turn % answers.len()].clone())
        }));
        let (sender, denials) = mpsc::channel(64);
        let audit = Audit::new("test", Some(sender));
        let end = CancellationToken::new();
        let relay = Relay::with(plan.policy, listeners, audit, dialer, end).expect("a relay");
        Self {
            relay,
            proxy: addresses[0],
            direct: addresses[1],
            lookups,
            denials,
        }
    }

    async fn send(&self, to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(to).await.expect("connected");
        stream.write_all(bytes).await.expect("sent");
        let mut answer = Vec::new();
        // A reset is an end, too.
        let _ = stream.read_to_end(&mut answer).await;
        answer
    }

    /// The status line and the reason of an answer from the proxy.
    async fn ask(&self, request: &str) -> String {
        let answer = self.send(self.proxy, request.as_bytes()).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let marked = answer.lines().find(|line| line.starts_with("x-sixb-"));
        format!("{} {}", &answer[9..12], marked.unwrap_or_default())
    }

    async fn get(&self) -> String {
        self.ask("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            .await
    }

    async fn connect(&self) -> String {
        self.ask("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
            .await
    }

    fn denied(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.denials.try_recv().ok())
            .map(|denial| format!("{} {}", denial.target, denial.reason))
            .collect()
    }
}

fn addresses(text: &str) -> Vec<IpAddr> {
    text.split_whitespace()
        .map(|address| address.parse().expect(address))
        .collect()
}

#[tokio::test]
async fn names_lead_to_no_address_that_is_not_public() {
    for answer in [
        "127.0.0.1",
        "169.254.169.254",
        "fd00:ec2::254",
        "10.0.0.1 192.168.0.1 ::1",
        "::ffff:127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "0.0.0.0",
    ] {
        let mut fixture = Fixture::new(vec![addresses(answer)]);
        assert_eq!(
            fixture.get().await,
            "403 x-sixb-denied: address",
            "{answer}"
        );
        assert_eq!(
            fixture.connect().await,
            "403 x-sixb-denied: address",
            "{answer}"
        );
        let socks = b"\x05\x01\x00\x05\x01\x00\x03\x06a.test\x01\xbb";
        let reply = fixture.send(fixture.proxy, socks).await;
        assert_eq!(reply, [5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0], "{answer}");
        let alert = fixture.send(fixture.direct, &hello("a.test", 100)).await;
        assert_eq!(alert, super::answer::alert::DENIED, "{answer}");
        assert_eq!(
            fixture.denied(),
            [
                "http://a.test:80 address",
                "a.test:443 address",
                "a.test:443 address",
                "https://a.test:443 address"
            ]
        );
    }
}

#[tokio::test]
async fn a_name_is_looked_up_and_checked_for_each_connection() {
    let answers = ["127.0.0.1", "10.0.0.1", "", "100.64.0.1"]
        .map(addresses)
        .to_vec();
    let fixture = Fixture::new(answers);
    let denied = "403 x-sixb-denied: address";
    for expect in [denied, denied, "502 x-sixb-failed: resolve", denied] {
        assert_eq!(fixture.get().await, expect);
    }
    assert_eq!(
        fixture.lookups.load(Ordering::Relaxed),
        4,
        "no answer is kept"
    );
}

#[tokio::test]
async fn nothing_is_looked_up_for_what_is_not_listed() {
    let fixture = Fixture::new(vec![addresses("127.0.0.1")]);
    for request in [
        "GET http://secret.attacker.test/ HTTP/1.1\r\nHost: secret.attacker.test\r\nConnection: close\r\n\r\n",
        "CONNECT secret.attacker.test:443 HTTP/1.1\r\nConnection: close\r\n\r\n",
    ] {
        assert_eq!(fixture.ask(request).await, "403 x-sixb-denied: origin");
    }
    assert_eq!(fixture.lookups.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn another_name_in_the_hello_is_refused_before_anybody_is_asked() {
    let mut fixture = Fixture::new(vec![addresses("127.0.0.1")]);
    for size in [1, 5, 1000] {
        let alert = fixture
            .send(fixture.direct, &hello("attacker.test", size))
            .await;
        assert_eq!(alert, super::answer::alert::DENIED, "records of {size}");
    }
    assert_eq!(fixture.denied(), ["https://a.test:443 authority"; 3]);
    assert_eq!(fixture.lookups.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn stopping_ends_what_is_open_and_frees_the_ports() {
    let fixture = Fixture::new(vec![addresses("127.0.0.1")]);
    let mut open = TcpStream::connect(fixture.proxy).await.expect("connected");
    open.write_all(b"GET http://a.test/ HTTP/1.1\r\n")
        .await
        .expect("sent");
    tokio::task::yield_now().await;
    fixture.relay.stop().await;
    let mut rest = Vec::new();
    let _ = open.read_to_end(&mut rest).await;
    assert_eq!(rest, b"");
    assert!(
        TcpStream::connect(fixture.proxy).await.is_err(),
        "nobody listens any more"
    );
    std::net::TcpListener::bind(fixture.direct).expect("the port is free");
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        relay_parser(&bytes);
    }

    #[test]
    fn hellos_with_errors_are_parsed_or_refused(
        name in "[a-z.]{1,60}",
        size in 1usize..300,
        errors in prop::collection::vec((0usize..1000, any::<u8>()), 0..3),
        cut in 0usize..1000,
    ) {
        let mut bytes = hello(&name, size);
        for (at, byte) in errors {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        bytes.truncate(bytes.len().min(cut));
        relay_parser(&bytes);
    }

    #[test]
    fn socks_requests_with_errors_are_parsed_or_refused(
        kind in 0u8..6,
        length in any::<u8>(),
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        relay_parser(&[&[5, 1, 0, kind, length][..], &rest].concat());
    }

    #[test]
    fn authorities_have_one_form(text in r"\[?[a-zA-Z0-9.:_-]{0,40}\]?(:[0-9]{0,6})?") {
        relay_parser(text.as_bytes());
    }
}
