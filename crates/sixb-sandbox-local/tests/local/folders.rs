//! Folders of the host as working directory, and file calls on them.

use super::*;

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
}

#[tokio::test(flavor = "multi_thread")]
async fn as_root_file_calls_act_as_the_folders_owner() {
    // Only root can give folders away. As anybody else the calls are that user's own: the test above.
    let Ok(()) = std::os::unix::fs::chown(
        tempfile::tempdir().expect("folder").path(),
        Some(12_345),
        None,
    ) else {
        assert!(!runs_as_root());
        return;
    };
    let fixture = fixture();
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
async fn a_folder_that_shares_files_with_the_state_is_refused() {
    let fixture = fixture();
    let sandbox = sandbox(&fixture, CreateOptions::default()).await;
    for shared in [
        fixture.state.path().to_owned(),
        fixture.state.path().join("sandboxes/local"),
        fixture.state.path().parent().expect("a parent").to_owned(),
    ] {
        for read_only in [false, true] {
            let error = fixture
                .factory
                .create(host_folder(&shared, read_only))
                .await;
            let error = error.expect_err("refused").to_string();
            assert!(
                error.contains("state folder") && error.contains("XDG_STATE_HOME"),
                "{error}"
            );
        }
        let extra = fixture.factory.clone().read_only_path(&shared, "/data");
        assert!(
            extra.create(CreateOptions::default()).await.is_err(),
            "{shared:?}"
        );
    }
    sandbox.destroy().await.expect("destroyed");
}
