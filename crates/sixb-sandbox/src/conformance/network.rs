//! What a sandbox reaches. One that is asked for nothing has no network.

use std::{
    io::{Read, Write},
    net::TcpListener,
    time::Duration,
};

use super::{
    Suite,
    guest::{Guest, describe, within},
};
use crate::{
    AllowedOrigin, Command, CommandOutput, CreateOptions, NetworkEnforcement, NetworkPolicy,
};

fn with(policy: NetworkPolicy) -> CreateOptions {
    CreateOptions::default().network(policy)
}

/// Tries to connect; must answer soon either way.
async fn connect(suite: &Suite, guest: &Guest, host: &str, port: u16) -> CommandOutput {
    let script = format!("exec 3<>/dev/tcp/{host}/{port} && echo connected");
    let command = Command::script(script).timeout(suite.scale.seconds(8.0));
    let output = within(
        suite.scale.seconds(10.0),
        "connecting",
        guest.command(command),
    )
    .await;
    assert!(
        !output.timed_out,
        "connecting to {host}:{port} must fail at once, not hang: {}",
        describe(&output)
    );
    output
}

fn refused(output: &CommandOutput, what: &str) {
    assert!(
        !output.success() && !output.stdout.text().contains("connected"),
        "{what} must not be reached: {}",
        describe(output)
    );
}

pub(super) async fn loopback_works_inside(suite: &Suite) {
    let guest = suite.guest().await;
    let closed = connect(suite, &guest, "127.0.0.1", 9).await;
    assert!(
        closed.stderr.text().contains("refused"),
        "loopback is up, the port closed: {}",
        describe(&closed)
    );
    let script = r#"
import socket, threading
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "localhost")):
    server = socket.socket(family); server.bind((address, 0)); server.listen()
    client = socket.create_connection(server.getsockname()[:2], 5)
    peer, _ = server.accept(); peer.sendall(b"hello"); print(client.recv(5).decode())
"#;
    assert_eq!(
        guest.out_of(Command::argv(["python3", "-c", script])).await,
        "hello\nhello\n"
    );
    guest.done().await;
}

pub(super) async fn none_reaches_nothing(suite: &Suite) {
    let guest = suite.guest().await;
    for (host, port) in [
        ("192.0.2.1", 80),
        ("1.1.1.1", 443),
        ("169.254.169.254", 80),
        ("2001:db8::1", 80),
    ] {
        refused(&connect(suite, &guest, host, port).await, host);
    }
    let links = guest.out("cat /proc/net/dev").await;
    let devices: Vec<_> = links
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(str::trim)
        .collect();
    let routes = guest.out("cat /proc/net/route").await;
    assert!(
        routes.lines().count() <= 1,
        "no route leads anywhere: {routes} (devices {devices:?})"
    );
    guest.done().await;
}

pub(super) async fn none_resolves_nothing(suite: &Suite) {
    let guest = suite.guest().await;
    refused(
        &connect(suite, &guest, "example.com", 80).await,
        "example.com",
    );
    resolves_nothing(suite, &guest).await;
    guest.done().await;
}

async fn resolves_nothing(suite: &Suite, guest: &Guest) {
    let script = "import socket\ntry: print('resolved', socket.getaddrinfo('example.com', 80))\nexcept OSError: print('no')";
    let command = Command::argv(["python3", "-c", script]);
    let text = within(
        suite.scale.seconds(10.0),
        "resolving fails at once",
        guest.out_of(command),
    )
    .await;
    assert_eq!(text, "no\n", "names are a way out, too");
}

/// A server on the loopback of the host.
fn host_server() -> (TcpListener, u16) {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port of the host");
    server.set_nonblocking(true).expect("non-blocking");
    let port = server.local_addr().expect("address").port();
    (server, port)
}

pub(super) async fn none_does_not_reach_the_hosts_loopback(suite: &Suite) {
    let guest = suite.guest_with(with(NetworkPolicy::None)).await;
    let (server, port) = host_server();
    for host in ["127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0"] {
        refused(
            &connect(suite, &guest, host, port).await,
            &format!("the host's {host}"),
        );
    }
    assert!(server.accept().is_err(), "nobody connected to the host");
    guest.done().await;
}

/// Answers each connection with a short page until it is dropped.
struct Page {
    port: u16,
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Page {
    fn new() -> Self {
        let (server, port) = host_server();
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::spawn(move || {
            while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
                let Ok((mut peer, _)) = server.accept() else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                let _ = peer.set_nonblocking(false);
                let _ = peer.set_read_timeout(Some(Duration::from_secs(5)));
                let _ = peer.read(&mut [0; 4096]);
                let _ = peer.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\npage\n",
                );
            }
        });
        Self { port, stop }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

pub(super) async fn restricted_is_enforced_or_refused(suite: &Suite) {
    let (listed, unlisted) = (Page::new(), Page::new());
    let origin = format!("http://127.0.0.1:{}", listed.port)
        .parse()
        .expect("an origin");
    let options = with(NetworkPolicy::Restricted(vec![AllowedOrigin::new(
        "listed", origin,
    )]));
    if suite.expect.network < NetworkEnforcement::PerOrigin {
        return suite.refuses("a network policy per origin", options).await;
    }
    let guest = suite.guest_with(options).await;
    let curl = |url: String| {
        guest.command(Command::argv([
            "curl",
            "-sS",
            "-f",
            "-m",
            "5",
            "--noproxy",
            "",
            &url,
        ]))
    };
    let output = curl(format!("http://127.0.0.1:{}/", listed.port)).await;
    assert_eq!(
        output.stdout.text(),
        "page\n",
        "the listed origin is reached: {}",
        describe(&output)
    );
    for url in [
        format!("http://127.0.0.1:{}/", unlisted.port),
        format!("https://127.0.0.1:{}/", listed.port),
        format!("http://127.0.0.2:{}/", listed.port),
        "http://192.0.2.1/".to_owned(),
        "http://unlisted.test/".to_owned(),
    ] {
        let output = curl(url.clone()).await;
        assert!(
            !output.success() && output.stdout.total_bytes == 0,
            "{url} is not listed: {}",
            describe(&output)
        );
    }
    refused(
        &connect(suite, &guest, "192.0.2.1", 80).await,
        "an address beside the relay",
    );
    resolves_nothing(suite, &guest).await;
    guest.done().await;
    let denied = suite
        .guest_with(with(NetworkPolicy::Restricted(Vec::new())))
        .await;
    let output = denied
        .command(Command::argv([
            "curl",
            "-sS",
            "-f",
            "-m",
            "5",
            "--noproxy",
            "",
            &format!("http://127.0.0.1:{}/", listed.port),
        ]))
        .await;
    assert!(
        !output.success(),
        "an empty list denies everything: {}",
        describe(&output)
    );
    denied.done().await;
}

pub(super) async fn all_works_or_is_refused(suite: &Suite) {
    if suite.expect.network == NetworkEnforcement::Nothing {
        // Then `none` is what cannot be had.
        return suite
            .refuses("network none", with(NetworkPolicy::None))
            .await;
    }
    let guest = suite.guest_with(with(NetworkPolicy::All)).await;
    assert_eq!(guest.out("echo up").await, "up\n");
    let devices = guest.out("cat /proc/net/dev").await;
    assert!(devices.contains("lo:"), "there is a network: {devices}");
    guest.done().await;
}
