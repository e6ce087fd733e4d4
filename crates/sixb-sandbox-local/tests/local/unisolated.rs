//! The explicit, dangerous choice: no wall, and everything else as in a sandbox.

use sixb_sandbox::{AllowedOrigin, NetworkEnforcement, ResourceLimits};

use super::*;

fn dangerous() -> Fixture {
    let mut fixture = fixture();
    fixture.factory = fixture.factory.dangerously_unisolated();
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn it_says_what_it_is() {
    let fixture = dangerous();
    let sandbox = sandbox(&fixture, CreateOptions::default()).await;
    let capabilities = sandbox.capabilities();
    assert_eq!(capabilities.isolation, Isolation::None);
    assert_eq!(capabilities.network, NetworkEnforcement::Nothing);
    assert_eq!(capabilities.limits, sixb_sandbox::LimitSupport::default());
    let own = fs::metadata("/proc/self").expect("proc").uid();
    assert_eq!(sh(&sandbox, "id -u").await, format!("{own}\n"));
    sandbox.destroy().await.expect("destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_commands_and_environment_are_as_elsewhere() {
    let fixture = dangerous();
    let folder = tempfile::tempdir().expect("folder");
    let sandbox = sandbox(&fixture, host_folder(folder.path(), false).env("A", "1")).await;
    sandbox
        .write_files(vec![FileWrite::new(path("in"), "x")])
        .await
        .expect("written");
    let output = sandbox
        .sh("cat in; echo $A; env | grep -c CARGO; exit 3")
        .await
        .expect("output");
    assert_eq!(
        (output.stdout.text().as_str(), output.exit_code),
        ("x1\n0\n", Some(3))
    );
    assert_eq!(
        sh(&sandbox, "pwd").await.trim(),
        sandbox.working_directory()
    );
    sandbox.destroy().await.expect("destroyed");
    assert!(folder.path().join("in").exists(), "the folder stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlines_and_the_end_reach_all_descendants() {
    let fixture = dangerous();
    let sandbox = sandbox(&fixture, CreateOptions::default()).await;
    let mark = format!("sixb-unisolated-{}", std::process::id());
    let running = || {
        let found = std::process::Command::new("pgrep")
            .args(["-c", "-f", &mark])
            .output()
            .expect("pgrep");
        String::from_utf8_lossy(&found.stdout).trim().to_owned()
    };
    let script =
        format!("(setsid bash -c 'exec -a {mark} sleep 1000' &); exec -a {mark} sleep 1000");
    let late = Command::script(&script).timeout(Duration::from_millis(500));
    let output = sandbox.run(late).await.expect("output");
    assert!(output.timed_out, "{output:?}");
    assert_eq!(running(), "0", "after the deadline");

    let left = format!(
        "(setsid bash -c 'exec -a {mark} sleep 1000' &) ; until pgrep -f '^{mark}' >/dev/null; do sleep 0.01; done; echo left"
    );
    assert_eq!(sh(&sandbox, &left).await, "left\n");
    assert_ne!(running(), "0", "what a command leaves behind goes on");
    sandbox.destroy().await.expect("destroyed");
    assert_eq!(running(), "0", "until the end of the sandbox");
    assert!(fixture.factory.list().await.expect("list").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_wall_is_refused() {
    let fixture = dangerous();
    let folder = tempfile::tempdir().expect("folder");
    let origin = AllowedOrigin::new("a", "https://a.test".parse().expect("origin"));
    for options in [
        CreateOptions::default().network(NetworkPolicy::Restricted(vec![origin])),
        CreateOptions::default().limits(ResourceLimits::default().memory_bytes(1 << 30)),
        CreateOptions::default().working_directory("/workspace"),
        host_folder(folder.path(), true),
    ] {
        let refused = fixture.factory.create(options).await;
        assert!(
            matches!(refused, Err(SandboxError::IsolationUnavailable { .. })),
            "{refused:?}"
        );
    }
    assert!(fixture.factory.list().await.expect("list").is_empty());
}
