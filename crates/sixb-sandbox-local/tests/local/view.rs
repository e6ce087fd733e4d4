//! What of the host shows inside, and what a command may do.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_view_holds_nothing_of_the_host() {
    let fixture = fixture();
    let sandbox = sandbox(&fixture, CreateOptions::default()).await;
    let root = sh(&sandbox, "ls /").await;
    for entry in root.split_whitespace() {
        let known = [
            "bin",
            "dev",
            "etc",
            "home",
            "lib",
            "lib32",
            "lib64",
            "libx32",
            "mnt",
            "opt",
            "proc",
            "root",
            "run",
            "sbin",
            "tmp",
            "usr",
            "var",
            "workspace",
        ];
        assert!(known.contains(&entry), "{entry} shows in {root}");
    }
    for (script, expect) in [
        ("id -un; id -u", "agent\n1000\n"),
        ("ls -A ~ /tmp /run /root /mnt | grep -v :", "\n\n\n\n"),
        ("hostname", "sixb\n"),
        (
            "cat /proc/1/environ 2>/dev/null; cat /proc/1/mem 2>/dev/null; ls /proc/1/fd 2>/dev/null; true",
            "",
        ),
        (
            "ls /proc | grep -c '^[0-9]*$' | awk '$1 < 12 { print \"few\" }'",
            "few\n",
        ),
        ("cat /etc/shadow 2>/dev/null; echo $?", "1\n"),
        (
            "ls /var/run/docker.sock /run/docker.sock 2>/dev/null; echo $?",
            "2\n",
        ),
        ("touch /usr/x /etc/x /x /opt/x 2>/dev/null; echo $?", "1\n"),
        ("cat /proc/kcore 2>/dev/null | wc -c", "0\n"),
    ] {
        assert_eq!(sh(&sandbox, script).await, expect, "{script}");
    }
    sandbox.destroy().await.expect("destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn privileges_are_gone_for_good() {
    let fixture = fixture();
    let sandbox = sandbox(&fixture, CreateOptions::default()).await;
    assert_eq!(sandbox.capabilities().isolation, Isolation::Namespaces);
    for (script, expect) in [
        (
            "grep -h '^Cap' /proc/self/status | awk '{print $2}' | sort -u",
            "0000000000000000\n",
        ),
        (
            "grep NoNewPrivs /proc/self/status | awk '{print $2}'",
            "1\n",
        ),
        (
            "grep '^Seccomp:' /proc/self/status | awk '{print $2}'",
            "2\n",
        ),
        ("unshare -Ur true 2>/dev/null; echo $?", "1\n"),
        (
            "mount -t tmpfs none /mnt 2>/dev/null; test $? -ne 0 && echo refused",
            "refused\n",
        ),
        ("chmod u+s /bin/true 2>/dev/null; echo $?", "1\n"),
        (
            "cp /bin/true t; chmod 4755 t 2>/dev/null; echo $?; install -m 2755 /bin/true u 2>/dev/null; echo $?; stat -c %a t u",
            "1\n1\n755\n600\n",
        ),
        (
            "kill -9 1 2>/dev/null; kill -STOP 1 2>/dev/null; echo alive",
            "alive\n",
        ),
    ] {
        assert_eq!(sh(&sandbox, script).await, expect, "{script}");
    }
    // The supervisor still answers.
    assert_eq!(sh(&sandbox, "echo on").await, "on\n");
    sandbox.destroy().await.expect("destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_shares_the_hosts_network_but_not_its_abstract_sockets() {
    let fixture = fixture();
    let name = format!("sixb-test-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
            &name,
        )
        .expect("address");
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).expect("listener");
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("listener");
    let number = port.local_addr().expect("address").port();
    let sandbox = sandbox(
        &fixture,
        CreateOptions::default().network(NetworkPolicy::All),
    )
    .await;
    let tcp =
        format!("timeout 2 bash -c '</dev/tcp/127.0.0.1/{number}' 2>/dev/null && echo reached");
    assert_eq!(sh(&sandbox, &tcp).await, "reached\n");
    if sandbox.capabilities().level.contains("landlock abi") {
        let script = format!(
            "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(chr(0)+\"{name}\")' 2>&1 | tail -1"
        );
        let seen = sh(&sandbox, &script).await;
        assert!(
            seen.contains("PermissionError")
                || seen.contains("not permitted")
                || seen.contains("No such file"),
            "{seen}"
        );
    }
    sandbox.destroy().await.expect("destroyed");
}
