//! What is refused, and that nothing is left of it.

use super::*;

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
        (CreateOptions::default().env("A=B", "x"), "A=B"),
        (
            CreateOptions::default().default_timeout(Duration::ZERO),
            "default_timeout",
        ),
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
