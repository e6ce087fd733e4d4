//! Bounds and ends: what the relay holds ends with the sandbox, and there is only so much of it.

use std::{
    io::Read,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    time::Duration,
};

use sixb_sandbox::{
    AllowedOrigin, Command, CreateOptions, NetworkEnforcement, NetworkPolicy, SandboxError,
    SandboxExt, SandboxFactory,
};
use sixb_sandbox_local::LocalSandboxFactory;

use crate::{Guest, Site};

/// A server that only listens.
fn silent() -> (TcpListener, SocketAddr) {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address");
    (server, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_has_its_name_wherever_it_listens() {
    let site = Site::new();
    let factory = LocalSandboxFactory::default().gateway(site.http);
    let mut guest = Guest::with(factory, Vec::new()).await;
    for flags in [
        "",
        "--noproxy '*'",
        "-x socks5h://127.0.0.1:3128 --noproxy ''",
    ] {
        let script = format!("curl -sS -f -m 20 {flags} http://gateway.sixb.internal/page");
        assert_eq!(guest.sh(&script).await, "page\n", "{flags}");
    }
    // Only there: neither its address nor another port.
    let address = site.http;
    for url in [
        format!("http://{address}/page"),
        format!("http://gateway.sixb.internal:{}/page", address.port()),
        "https://gateway.sixb.internal/page".into(),
    ] {
        let output = guest
            .run(&format!("curl -sS -f -m 20 --noproxy '' {url}"))
            .await;
        assert!(!output.success() && output.stdout.total_bytes == 0, "{url}");
    }
    assert_eq!(guest.denied().len(), 3);
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_end_with_the_sandbox() {
    for destroyed in [true, false] {
        let (server, address) = silent();
        let allowed =
            AllowedOrigin::new("silent", "http://allowed.test".parse().expect("an origin"));
        let guest = Guest::new(vec![allowed.address(address)]).await;
        let script = "curl -sS -m 100 http://allowed.test/ >/dev/null 2>&1 & echo begun";
        assert_eq!(guest.sh(script).await, "begun\n");
        let accepted = tokio::task::spawn_blocking(move || server.accept());
        let (mut peer, _) = accepted
            .await
            .expect("no panic")
            .expect("the relay connected");
        peer.set_read_timeout(Some(Duration::from_secs(10)))
            .expect("a timeout");
        if destroyed {
            guest.done().await;
        } else {
            drop(guest);
        }
        let mut request = String::new();
        let end =
            tokio::task::spawn_blocking(move || peer.read_to_string(&mut request).map(|_| request));
        let request = end
            .await
            .expect("no panic")
            .expect("the connection is closed");
        assert!(request.starts_with("GET / HTTP/1.1"), "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_bounded_and_the_sandbox_stays_usable() {
    let site = Site::new();
    let mut guest = Guest::of(&site, &["http://allowed.test"]).await;
    let script = r#"
import socket, time, urllib.request
held = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(256)]
def one_more():
    # Silence: the relay was not there yet, and took it.
    held.append(socket.create_connection(("127.0.0.1", 3128), 2))
    try: return held[-1].recv(4096)
    except TimeoutError: return one_more()
print(one_more().split(b"\r\n")[:2])
for stream in held: stream.close()
for _ in range(50):
    try: print(urllib.request.urlopen("http://allowed.test/page").read()); break
    except OSError: time.sleep(0.2)
"#;
    assert_eq!(
        guest.python(script).await,
        "[b'HTTP/1.1 403 Forbidden', b'x-sixb-denied: limit']\nb'page\\n'\n"
    );
    let denied = guest.denied();
    let limit = |denial: &String| denial == "the proxy limit";
    assert!(!denied.is_empty() && denied.iter().all(limit), "{denied:?}");
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_refusals_is_counted_and_not_kept() {
    let state = tempfile::tempdir().expect("state folder");
    let (sender, mut denials) = tokio::sync::mpsc::channel(1);
    let options = CreateOptions::default()
        .network(NetworkPolicy::Restricted(Vec::new()))
        .on_denied(sender);
    let factory = LocalSandboxFactory::default().state_dir(state.path());
    let sandbox = factory.create(options).await.expect("sandbox");
    let refused = "curl -s -o /dev/null http://a.test/";
    sandbox
        .sh(&format!("{refused}; {refused}; {refused}"))
        .await
        .expect("a command");
    assert_eq!(denials.recv().await.map(|denial| denial.missed), Some(0));
    sandbox.sh(refused).await.expect("a command");
    assert_eq!(denials.recv().await.map(|denial| denial.missed), Some(2));
    sandbox.destroy().await.expect("destroyed");
    assert!(denials.recv().await.is_none(), "nobody is left to report");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_names_are_refused_with_the_number() {
    let origin =
        |n: u32| AllowedOrigin::new("n", format!("http://n{n}.test").parse().expect("an origin"));
    let create = async |count| {
        let state = tempfile::tempdir().expect("state folder");
        let options = CreateOptions::default()
            .network(NetworkPolicy::Restricted((0..count).map(origin).collect()));
        let factory = LocalSandboxFactory::default().state_dir(state.path());
        factory
            .create(options)
            .await
            .map(|sandbox| (sandbox, state))
    };
    let error = create(199).await.expect_err("one too many");
    assert!(
        matches!(
            error,
            SandboxError::InvalidInput {
                field: "network",
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("199"), "{error}");
    let (sandbox, _state) = create(198).await.expect("as many as there can be");
    assert_eq!(
        sandbox.capabilities().network,
        NetworkEnforcement::PerOrigin
    );
    let output = sandbox
        .sh("grep -c test /etc/hosts")
        .await
        .expect("a command");
    assert_eq!(output.stdout.text(), "198\n");
    sandbox.destroy().await.expect("destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn literal_addresses_of_loopback_are_where_they_were_listed() {
    let site = Site::new();
    let origin = format!("http://{}", site.http);
    let allowed = AllowedOrigin::new("literal", origin.parse().expect("an origin"));
    let mut guest = Guest::new(vec![allowed]).await;
    assert_ne!(site.http.ip(), Ipv4Addr::UNSPECIFIED);
    for flags in ["", "--noproxy ''", "--noproxy '*'"] {
        let script = format!("curl -sS -f -m 20 {flags} {origin}/page");
        assert_eq!(guest.sh(&script).await, "page\n", "{flags}");
    }
    let command = Command::argv([
        "curl",
        "-sS",
        "-f",
        "-m",
        "20",
        "--noproxy",
        "",
        "http://localhost/",
    ]);
    let output = guest.sandbox.run(command).await.expect("a command");
    assert!(!output.success());
    assert_eq!(guest.denied(), ["http://localhost:80 origin"]);
    guest.done().await;
}
