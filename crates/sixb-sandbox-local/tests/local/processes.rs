//! Commands that fight their supervisor, and what the kernel takes of them.

use super::*;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_leader_does_not_outlive_the_deadline() {
    let fixture = fixture();
    let sandbox = sandbox(&fixture, CreateOptions::default()).await;
    let command =
        Command::script("kill -STOP $PPID; sleep 1000").timeout(Duration::from_millis(300));
    let output = sandbox.run(command).await.expect("an answer");
    assert!(output.timed_out, "{output:?}");
    assert_eq!(
        sh(&sandbox, "pgrep -c sleep").await,
        "0\n",
        "and the sandbox goes on"
    );
    sandbox.destroy().await.expect("destroyed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_deadline_is_one() {
    let fixture = fixture();
    let sandbox = sandbox(&fixture, CreateOptions::default()).await;
    let output = sandbox
        .run(Command::script("echo on").timeout(Duration::MAX))
        .await;
    assert_eq!(output.expect("an answer").stdout.text(), "on\n");
    sandbox.destroy().await.expect("destroyed");
}

#[test]
fn a_sandbox_can_be_destroyed_from_another_runtime() {
    let fixture = fixture();
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    let first = runtime();
    let made = first.block_on(sandbox(&fixture, CreateOptions::default()));
    drop(first);
    let end = async { tokio::time::timeout(Duration::from_secs(30), made.destroy()).await };
    runtime()
        .block_on(end)
        .expect("no hang")
        .expect("destroyed");
    assert!(
        runtime()
            .block_on(fixture.factory.list())
            .expect("list")
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_the_environment_are_in_no_debug_text() {
    let fixture = fixture();
    let secret = "sk-test-000";
    let options = CreateOptions::default().env("API_KEY", secret);
    let shown = format!("{options:?}");
    let sandbox = sandbox(&fixture, options).await;
    let command = Command::argv(["true"]).env("OTHER_KEY", secret);
    for text in [
        shown,
        format!("{sandbox:?}"),
        format!("{command:?}"),
        format!("{:?}", fixture.factory),
    ] {
        assert!(!text.contains(secret), "{text}");
    }
    sandbox.destroy().await.expect("destroyed");
}
