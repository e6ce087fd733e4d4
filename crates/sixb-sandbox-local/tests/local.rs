//! What is special to the local backend; the contract itself is checked in `conformance.rs`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out and look at host folders"
)]

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    sync::Arc,
};

use sixb_sandbox::{
    Command, CreateOptions, FileSource, FileWrite, Isolation, NetworkPolicy, Sandbox, SandboxError,
    SandboxExt, SandboxFactory, SandboxPath, Workspace,
};
use sixb_sandbox_local::LocalSandboxFactory;
use tempfile::TempDir;

struct Fixture {
    factory: LocalSandboxFactory,
    state: TempDir,
}

fn fixture() -> Fixture {
    let state = tempfile::tempdir().expect("state folder");
    Fixture {
        factory: LocalSandboxFactory::default().state_dir(state.path()),
        state,
    }
}

async fn sandbox(fixture: &Fixture, options: CreateOptions) -> Arc<dyn Sandbox> {
    fixture.factory.create(options).await.expect("sandbox")
}

async fn sh(sandbox: &Arc<dyn Sandbox>, script: &str) -> String {
    let output = sandbox.sh(script).await.expect("command");
    format!("{}{}", output.stdout.text(), output.stderr.text())
}

fn path(text: &str) -> SandboxPath {
    SandboxPath::parse(text).expect("path")
}

fn host_folder(path: &Path, read_only: bool) -> CreateOptions {
    CreateOptions::default().workspace(Workspace::HostFolder {
        path: path.to_owned(),
        read_only,
    })
}

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
            "cp /bin/true ~/t && chmod 4755 ~/t && ~/t; stat -c %a ~/t; find / -xdev -perm -4000 -exec sh -c 'test -r {}' \\; 2>/dev/null | wc -l",
            "4755\n0\n",
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
async fn a_command_that_kills_its_leader_harms_only_itself() {
    let fixture = fixture();
    let sandbox = sandbox(&fixture, CreateOptions::default()).await;
    let output = sandbox
        .sh("setsid sleep 1000 & kill -9 $PPID; sleep 1000")
        .await
        .expect("an answer");
    assert_eq!(output.exit_code, None);
    assert!(output.reason.is_some(), "{output:?}");
    assert_eq!(
        sh(&sandbox, "pgrep -c sleep").await,
        "0\n",
        "nothing of it is left"
    );
    // `kill -9 -1` reaches every process that a command may signal.
    let output = sandbox.sh("kill -9 -1").await.expect("an answer");
    assert_eq!(output.exit_code, None);
    assert_eq!(sh(&sandbox, "echo on").await, "on\n");
    sandbox.destroy().await.expect("destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_folder_is_the_working_directory() {
    let fixture = fixture();
    let folder = tempfile::tempdir().expect("folder");
    fs::write(folder.path().join("in"), "from host").expect("file");
    let sandbox = sandbox(&fixture, host_folder(folder.path(), false)).await;
    assert_eq!(
        sh(
            &sandbox,
            "pwd; cat in; echo from guest > out; mkdir d; stat -c %U in out"
        )
        .await,
        "/workspace\nfrom hostagent\nagent\n"
    );
    sandbox
        .write_files(vec![FileWrite::new(path("d/by-call"), "x").mode(0o600)])
        .await
        .expect("written");
    assert_eq!(
        sh(
            &sandbox,
            "cat d/by-call && echo y >> d/by-call && stat -c '%U %a' d/by-call"
        )
        .await,
        "xagent 600\n"
    );
    sandbox.destroy().await.expect("destroyed");
    let metadata = fs::metadata(folder.path().join("out")).expect("it stays");
    let owner = fs::metadata(folder.path()).expect("folder").uid();
    assert_eq!(
        metadata.uid(),
        owner,
        "files belong to the folder's owner on the host, also for root"
    );
    assert_eq!(
        fs::metadata(folder.path().join("d/by-call"))
            .expect("file")
            .uid(),
        owner
    );
    assert_eq!(
        fs::read_to_string(folder.path().join("d/by-call")).expect("file"),
        "xy\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_folder_is_not_changed_by_anyone() {
    let fixture = fixture();
    let folder = tempfile::tempdir().expect("folder");
    fs::write(folder.path().join("in"), "data").expect("file");
    let sandbox = sandbox(&fixture, host_folder(folder.path(), true)).await;
    assert_eq!(
        sh(
            &sandbox,
            "cat in; touch x 2>/dev/null; echo $?; rm -f in 2>/dev/null; echo $?"
        )
        .await,
        "data1\n1\n"
    );
    for result in [
        sandbox
            .write_files(vec![FileWrite::new(path("x"), "x")])
            .await,
        sandbox.remove(&path("in")).await,
    ] {
        assert!(
            matches!(result, Err(SandboxError::PermissionDenied { .. })),
            "{result:?}"
        );
    }
    sandbox.destroy().await.expect("destroyed");
    assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn file_calls_may_do_no_more_than_the_folders_owner() {
    let fixture = fixture();
    let own = sandbox(&fixture, CreateOptions::default()).await;
    sh(&own, "echo x > closed; chmod 000 closed").await;
    let read = own.read("closed").await;
    assert!(
        matches!(read, Err(SandboxError::PermissionDenied { .. })),
        "{read:?}"
    );
    own.destroy().await.expect("destroyed");
    if !runs_as_root() {
        // The rest needs a folder of somebody else's, which only root can make.
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    std::os::unix::fs::chown(folder.path(), Some(12_345), Some(12_345)).expect("owner");
    let secret = folder.path().join("roots-own");
    fs::write(&secret, "secret").expect("file");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).expect("mode");
    let sandbox = sandbox(&fixture, host_folder(folder.path(), false)).await;
    let read = sandbox.read("roots-own").await;
    assert!(
        matches!(read, Err(SandboxError::PermissionDenied { .. })),
        "{read:?}"
    );
    assert!(
        sh(&sandbox, "cat roots-own")
            .await
            .contains("Permission denied")
    );
    sandbox
        .write_files(vec![FileWrite::new(path("mine"), "x")])
        .await
        .expect("written");
    assert_eq!(sh(&sandbox, "stat -c %U mine").await, "agent\n");
    sandbox.destroy().await.expect("destroyed");
    assert_eq!(
        fs::metadata(folder.path().join("mine"))
            .expect("file")
            .uid(),
        12_345
    );
}

fn runs_as_root() -> bool {
    fs::metadata("/proc/self").expect("proc").uid() == 0
}

#[tokio::test(flavor = "multi_thread")]
async fn extra_paths_show_where_they_are_asked_for() {
    let state = tempfile::tempdir().expect("state folder");
    let (data, cache) = (
        tempfile::tempdir().expect("folder"),
        tempfile::tempdir().expect("folder"),
    );
    fs::write(data.path().join("in"), "data").expect("file");
    for folder in [&data, &cache] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("mode");
    }
    let factory = LocalSandboxFactory::default()
        .state_dir(state.path())
        .read_only_path(data.path(), "/data/in")
        .read_write_path(cache.path(), "/home/agent/cache");
    let sandbox = factory
        .create(CreateOptions::default().working_directory("/srv/app"))
        .await
        .expect("sandbox");
    assert_eq!(sandbox.working_directory(), "/srv/app");
    let script = "pwd; cat /data/in/in; touch /data/in/x 2>/dev/null; echo $?; echo z > ~/cache/z";
    assert_eq!(sh(&sandbox, script).await, "/srv/app\ndata1\n");
    sandbox.destroy().await.expect("destroyed");
    assert_eq!(
        fs::read_to_string(cache.path().join("z")).expect("file"),
        "z\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_make_no_sense_name_the_value() {
    let fixture = fixture();
    let file = fixture.state.path().join("file");
    fs::write(&file, "").expect("file");
    for (options, value) in [
        (
            host_folder(Path::new("/no/such/folder"), false),
            "/no/such/folder",
        ),
        (host_folder(&file, false), "file"),
        (host_folder(Path::new("/"), false), "\"/\""),
        (CreateOptions::default().working_directory("/usr"), "/usr"),
        (CreateOptions::default().working_directory("here"), "here"),
    ] {
        let error = fixture
            .factory
            .create(options)
            .await
            .expect_err(value)
            .to_string();
        assert!(error.contains(value), "{error}");
    }
    assert!(
        fixture.factory.list().await.expect("list").is_empty(),
        "a failed creation leaves nothing"
    );
    let kept = fs::read_dir(fixture.state.path().join("sandboxes/local"))
        .expect("state")
        .count();
    assert_eq!(kept, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_helper_is_a_clear_error() {
    let fixture = fixture();
    let error = fixture
        .factory
        .clone()
        .helper("/no/such/helper")
        .create(CreateOptions::default())
        .await;
    let error = error.expect_err("no helper").to_string();
    assert!(error.contains("start the sandbox helper"), "{error}");
    // A program that is no helper never answers.
    let error = fixture
        .factory
        .clone()
        .helper("/bin/true")
        .create(CreateOptions::default())
        .await;
    let error = error.expect_err("no helper").to_string();
    assert!(error.contains("ended without a word"), "{error}");
    assert!(fixture.factory.list().await.expect("list").is_empty());
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

#[tokio::test(flavor = "multi_thread")]
async fn links_and_pipes_lead_file_calls_nowhere() {
    let fixture = fixture();
    let folder = tempfile::tempdir().expect("folder");
    let outside = tempfile::tempdir().expect("folder");
    fs::write(outside.path().join("secret"), "s").expect("file");
    symlink(outside.path(), folder.path().join("out")).expect("link");
    let sandbox = sandbox(&fixture, host_folder(folder.path(), false)).await;
    sh(&sandbox, "mkdir -p in/side && echo ok > in/side/f && ln -s /workspace/in/side abs && ln -s in/side rel && ln -s loop loop && mkfifo p && ln -s /proc/self/root proc").await;
    for name in ["abs/f", "rel/f"] {
        assert_eq!(sandbox.read(name).await.expect(name), "ok\n", "{name}");
    }
    for name in ["out/secret", "loop", "proc/etc/passwd"] {
        let read = sandbox.read(name).await;
        assert!(
            matches!(read, Err(SandboxError::PathEscape { .. })),
            "{name}: {read:?}"
        );
        let write = sandbox
            .write_files(vec![FileWrite::new(path(&format!("{name}/x")), "x")])
            .await;
        assert!(write.is_err(), "{name}");
    }
    let pipe = sandbox
        .read_range(
            &FileSource::Path(path("p")),
            sixb_sandbox::ByteRange::new(0, 1),
        )
        .await;
    assert!(
        matches!(pipe, Err(SandboxError::WrongKind { .. })),
        "{pipe:?}"
    );
    sandbox
        .remove(&path("out"))
        .await
        .expect("the link is removed");
    assert!(
        outside.path().join("secret").exists(),
        "not what it points to"
    );
    sandbox.destroy().await.expect("destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_creation_leaves_nothing() {
    let fixture = fixture();
    for delay_us in [0, 500, 2_000, 5_000, 9_000] {
        let create = fixture.factory.create(CreateOptions::default());
        let _ = tokio::time::timeout(std::time::Duration::from_micros(delay_us), create).await;
    }
    for _ in 0..100 {
        if fixture.factory.list().await.expect("list").is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("left: {:?}", fixture.factory.list().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn big_scripts_are_refused_with_what_to_do() {
    let fixture = fixture();
    let sandbox = sandbox(&fixture, CreateOptions::default()).await;
    let error = sandbox
        .sh(&"x".repeat(200_000))
        .await
        .expect_err("too long")
        .to_string();
    assert!(
        error.contains("200000") && error.contains("write a file"),
        "{error}"
    );
    // Long environments pass, up to what Linux takes.
    let output = sandbox
        .run(Command::script("echo ${#LONG}").env("LONG", "x".repeat(100_000)))
        .await
        .expect("output");
    assert_eq!(output.stdout.text(), "100000\n");
    sandbox.destroy().await.expect("destroyed");
}
