//! `sixb exec`.

use std::{
    io::Read,
    process::Stdio,
    time::{Duration, Instant},
};

use crate::place::{Place, binary, eventually, is_running, signal};

#[test]
fn streams_and_exit_codes_pass_through() {
    let place = Place::new();
    for (script, code, stdout, stderr) in [
        ("echo out; echo err >&2", 0, "out\n", "err\n"),
        ("exit 7", 7, "", ""),
        ("kill -9 $$", 137, "", ""),
        ("kill -TERM $$", 143, "", ""),
        ("pwd", 0, "/workspace\n", ""),
        ("cat", 0, "", ""),
        ("echo $FAKE_API_KEY", 0, "\n", ""),
    ] {
        let ended = place.sixb(&["exec", "--", "sh", "-c", script]);
        assert_eq!(
            (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
            (Some(code), stdout, stderr),
            "{script}: {ended:?}"
        );
    }
    let ended = place.sixb(&["exec", "echo", "--net", "all"]);
    assert_eq!(
        ended.stdout, "--net all\n",
        "what follows the program is its own: {ended:?}"
    );
    let ended = place.sixb(&["exec", "--", "no-such-program"]);
    assert_eq!(ended.code, Some(127), "{ended:?}");
    assert!(ended.stderr.contains("no-such-program"), "{ended:?}");
    place.assert_nothing_left();
}

/// Errors of our own, not a cancellation that nobody asked for.
#[test]
fn what_cannot_be_run_or_passed_on_is_told() {
    let place = Place::new();
    let ended = place.sixb(&["exec", "--", ""]);
    assert!(
        ended.code == Some(1) && ended.stderr.starts_with("error: "),
        "{ended:?}"
    );
    for (command, stream) in [("echo x", "stdout"), ("yes", "stdout")] {
        let full = std::fs::File::create("/dev/full").expect("device");
        let output = place
            .command(&["exec", "--", "sh", "-c", command])
            .stdout(full)
            .output()
            .expect("sixb");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(1)
                && stderr.contains(stream)
                && stderr.contains("No space left"),
            "{command}: {:?} {stderr}",
            output.status
        );
    }
    place.assert_nothing_left();
}

#[test]
fn nothing_of_the_host_shows() {
    let place = Place::new();
    let script = "id; ls /; ls ~; cat /proc/1/environ; curl -m 2 https://example.com";
    let ended = place.sixb(&["exec", "--net", "none", "--", "bash", "-lc", script]);
    assert_ne!(ended.code, Some(0), "curl fails: {ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(
        lines[0].starts_with("uid=") && !lines[0].contains("uid=0("),
        "{ended:?}"
    );
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
    for name in &lines[1..] {
        assert!(
            known.contains(name),
            "{name:?} is neither a folder of the sandbox's root nor empty: {ended:?}"
        );
    }
    assert!(
        !ended.stdout.contains("FAKE_API_KEY") && !ended.stdout.contains("HOME="),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("curl") || ended.stderr.contains("not found"),
        "{ended:?}"
    );
}

#[test]
fn bytes_pass_unchanged_in_and_out() {
    let place = Place::new();
    let input: Vec<u8> = (0..3_000_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let output = assert_cmd::Command::from_std(place.command(&["exec", "--", "cat"]))
        .write_stdin(input.clone())
        .timeout(Duration::from_secs(60))
        .output()
        .expect("sixb");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.stdout == input,
        "{} bytes became {}",
        input.len(),
        output.stdout.len()
    );
}

/// More than the live channel holds is written before the first byte is read.
#[test]
fn a_slow_reader_gets_every_byte() {
    let place = Place::new();
    let mut child = place
        .command(&["exec", "--", "seq", "1", "6000000"])
        .spawn()
        .expect("sixb");
    std::thread::sleep(Duration::from_millis(1_500));
    let mut text = String::new();
    child
        .stdout
        .take()
        .expect("stdout")
        .read_to_string(&mut text)
        .expect("read");
    assert!(child.wait().expect("wait").success());
    let expected: usize = (1..=6_000_000_u32).map(|n| n.to_string().len() + 1).sum();
    assert_eq!(text.len(), expected);
    assert!(
        text.lines()
            .enumerate()
            .all(|(index, line)| line.parse() == Ok(index + 1)),
        "in order, none missing"
    );
}

#[test]
fn output_comes_while_the_command_runs() {
    let place = Place::new();
    let mut child = place
        .command(&["exec", "--", "sh", "-c", "echo first; sleep 20"])
        .spawn()
        .expect("sixb");
    let started = Instant::now();
    let mut first = [0; 6];
    child
        .stdout
        .take()
        .expect("stdout")
        .read_exact(&mut first)
        .expect("read");
    assert_eq!(&first, b"first\n");
    assert!(started.elapsed() < Duration::from_secs(10));
    signal("INT", child.id());
    assert_eq!(child.wait().expect("wait").code(), Some(130));
    place.assert_nothing_left();
}

#[test]
fn a_timeout_ends_the_command_and_says_so() {
    let place = Place::new();
    let ended = place.sixb(&[
        "exec",
        "--timeout",
        "300ms",
        "--",
        "sh",
        "-c",
        "echo begun; sleep 30.0124",
    ]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(124), "begun\n"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("--timeout 300ms") && ended.stderr.contains("more time"),
        "{ended:?}"
    );
    assert!(ended.elapsed < Duration::from_secs(10), "{ended:?}");
    assert!(!is_running("30.0124"));
}

#[test]
fn a_signal_ends_command_and_sandbox() {
    let place = Place::new();
    let mut child = place
        .command(&[
            "exec",
            "--",
            "sh",
            "-c",
            "sleep 30.0125 & setsid sleep 30.0125 & wait",
        ])
        .spawn()
        .expect("sixb");
    eventually("the command runs", || is_running("sleep\x0030.0125"));
    signal("TERM", child.id());
    assert_eq!(child.wait().expect("wait").code(), Some(130));
    eventually("its processes are gone", || !is_running("30.0125"));
    place.assert_nothing_left();
}

#[test]
fn a_reader_that_stopped_reading_holds_nothing_up() {
    let place = Place::new();
    for (signals, within) in [
        (1, Duration::from_secs(6)),
        (2, Duration::from_millis(1_500)),
    ] {
        let mut child = place
            .command(&["exec", "--", "sh", "-c", "yes 30.0129"])
            .spawn()
            .expect("sixb");
        eventually("the command runs", || is_running("yes\x0030.0129"));
        std::thread::sleep(Duration::from_millis(300));
        let started = Instant::now();
        for _ in 0..signals {
            signal("INT", child.id());
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(child.wait().expect("wait").code(), Some(130));
        assert!(
            started.elapsed() < within,
            "{signals} signals: {:?}",
            started.elapsed()
        );
        eventually("its processes are gone", || !is_running("30.0129"));
    }
    place.sixb(&["sandbox", "sweep"]);
    place.assert_nothing_left();
}

#[test]
fn a_reader_that_goes_away_ends_the_command() {
    let place = Place::new();
    let mut child = place
        .command(&["exec", "--", "yes"])
        .stderr(Stdio::null())
        .spawn()
        .expect("sixb");
    let mut some = [0; 100];
    child
        .stdout
        .take()
        .expect("stdout")
        .read_exact(&mut some)
        .expect("read");
    assert_eq!(child.wait().expect("wait").code(), Some(141));
    place.assert_nothing_left();
}

#[test]
fn a_folder_is_the_working_directory_and_may_be_read_only() {
    let place = Place::new();
    place.write("data/in.txt", "hello");
    let workspace = place.work().join("data").display().to_string();
    let ended = place.sixb(&[
        "exec",
        "--workspace",
        &workspace,
        "--",
        "sh",
        "-c",
        "cat in.txt; echo made > out.txt",
    ]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "hello"),
        "{ended:?}"
    );
    assert_eq!(place.read("data/out.txt"), "made\n");
    let ended = place.sixb(&[
        "exec",
        "--workspace",
        "data:ro",
        "--",
        "sh",
        "-c",
        "cat in.txt; echo no > in.txt",
    ]);
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert_eq!(place.read("data/in.txt"), "hello");
}

/// Inside a sandbox the right to make another one is gone: what a machine without user namespaces shows. One message names
/// what was asked for, the reason and the remedy.
#[test]
fn without_the_right_to_isolate_nothing_runs() {
    let place = Place::new();
    place.write(
        "inner/script.json",
        r#"{"steps":[{"toolCalls":[{"name":"bash","arguments":{"command":"echo ran"}}]}]}"#,
    );
    place.write(
        "inner/batch.json",
        r#"{"tool":"bash","input":{"command":"echo ran"}}"#,
    );
    std::fs::copy(binary(), place.work().join("inner/sixb")).expect("copy");
    for (args, told) in [
        (
            "exec -- echo ran",
            "error: starting the sandbox: isolation unavailable",
        ),
        (
            "exec --net all echo ran",
            "error: starting the sandbox with --net all: isolation unavailable",
        ),
        (
            r#"tool --net all bash '{"command":"echo ran"}'"#,
            "error: starting the sandbox with --net all: isolation unavailable",
        ),
        (
            "tool --net all --batch < batch.json",
            "error: starting the sandbox with --net all: isolation unavailable",
        ),
        (
            "run --net all --script script.json go",
            "error: starting the sandbox with --net all: failed: ",
        ),
        ("demo", "error: starting the sandbox: failed: "),
    ] {
        let ended = place.sixb(&[
            "exec",
            "--workspace",
            "inner",
            "--",
            "sh",
            "-c",
            &format!("./sixb {args}"),
        ]);
        assert_eq!(ended.code, Some(1), "{args}: {ended:?}");
        assert!(
            ended.stderr.lines().any(|line| line.starts_with(told)),
            "{args}: {ended:?}"
        );
        assert_eq!(
            ended.stderr.matches("isolation unavailable").count(),
            1,
            "{args}: {ended:?}"
        );
        assert!(
            ended.stderr.contains("sysctl") && !ended.stdout.contains("ran"),
            "{args}: {ended:?}"
        );
    }
    let ended = place.sixb(&["exec", "--workspace", "inner", "--", "./sixb", "doctor"]);
    assert!(
        ended.code == Some(0) && ended.stdout.contains("miss isolation"),
        "{ended:?}"
    );
}
