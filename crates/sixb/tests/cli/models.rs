//! `sixb run --model`: a server that speaks the recorded wire, its key, threads, and `sixb runs`.

use std::{
    fs,
    io::{BufRead, BufReader},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    place::{Ended, Place, SECRET, eventually},
    server::{Server, Step},
};

/// Runs `sixb` with the server in its environment. `place.sixb` checks that the key is shown nowhere.
fn sixb(place: &Place, server: &Server, args: &[&str]) -> Ended {
    place.sixb_with_env(
        args,
        &[
            ("OPENAI_BASE_URL", &server.base_url()),
            ("OPENAI_API_KEY", SECRET),
        ],
    )
}

/// No file that the run left, at any depth, holds the key.
fn assert_no_key_in_files(place: &Place) {
    let mut folders = vec![place.work(), place.state()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().expect("type").is_dir() {
                folders.push(entry.path());
            } else {
                let text = fs::read(entry.path()).unwrap_or_default();
                assert!(
                    !String::from_utf8_lossy(&text).contains(SECRET),
                    "{}",
                    entry.path().display()
                );
            }
        }
    }
}

#[test]
fn a_model_behind_http_calls_tools_and_answers() {
    let place = Place::new();
    let call = Step::Call(
        "bash",
        json!({"command": "env | sort; cat /proc/self/environ; echo $((6 * 7))"}),
    );
    let server = Server::start(vec![call, Step::Say("It is 42.\nReally.")], Duration::ZERO);
    let ended = sixb(
        &place,
        &server,
        &[
            "run",
            "--model",
            "test/m",
            "--effort",
            "low",
            "six times seven?",
        ],
    );
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "It is 42.\nReally.\n"),
        "{ended:?}"
    );
    for part in [
        "model test/m",
        "bash env",
        "done: 2 steps, 1 tool call",
        "22 tokens read and 10 written",
    ] {
        assert!(
            ended.stderr.contains(part),
            "{part:?} is missing: {}",
            ended.stderr
        );
    }
    let seen = server.seen();
    assert!(
        seen[0].contains(&format!("Bearer {SECRET}")),
        "the server gets the key"
    );
    for part in [
        "\"reasoning_effort\":\"low\"",
        "\"model\":\"test/m\"",
        "\"stream\":true",
        "six times seven?",
        "\"name\":\"bash\"",
    ] {
        assert!(seen[0].contains(part), "{part} is missing: {}", seen[0]);
    }
    assert!(
        seen[1].contains("\"tool_call_id\":\"call_1\"") && seen[1].contains("42"),
        "{}",
        seen[1]
    );
    assert!(
        !seen[1]
            .split("\r\n\r\n")
            .nth(1)
            .expect("body")
            .contains(SECRET),
        "the sandbox does not know the key"
    );
    assert_no_key_in_files(&place);
    place.assert_nothing_left();
}

#[test]
fn the_answer_streams_and_the_key_is_in_no_process_list() {
    let place = Place::new();
    let server = Server::start(
        vec![Step::Say("one two three four five six seven eight")],
        Duration::from_millis(150),
    );
    let mut child = place
        .command(&["run", "--model", "test/m", "--json", "count"])
        .env("OPENAI_BASE_URL", server.base_url())
        .env("OPENAI_API_KEY", SECRET)
        .spawn()
        .expect("sixb");
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let mut times = Vec::new();
    for line in lines {
        let line = line.expect("line");
        assert!(!line.contains(SECRET), "{line}");
        if line.contains("\"textDelta\"") {
            times.push(Instant::now());
            let listed = fs::read(format!("/proc/{}/cmdline", child.id())).unwrap_or_default();
            assert!(!String::from_utf8_lossy(&listed).contains(SECRET));
        }
    }
    assert!(child.wait().expect("wait").success());
    assert_eq!(times.len(), 8);
    let spread = times[7] - times[0];
    assert!(
        spread > Duration::from_millis(700),
        "all at once: {spread:?}"
    );
}

#[test]
fn on_a_terminal_lines_show_as_they_are_written() {
    let place = Place::new();
    let server = Server::start(
        vec![Step::Say("first line\nsecond line\nthird")],
        Duration::from_millis(100),
    );
    // `script` gives it a terminal.
    let run = format!(
        "{} run --model test/m count",
        crate::place::binary().display()
    );
    let mut command = std::process::Command::new("/usr/bin/script");
    command
        .args(["-qefc", &run, "/dev/null"])
        .current_dir(place.work())
        .env_clear();
    command
        .envs([
            ("PATH", "/usr/bin:/bin"),
            ("TERM", "xterm"),
            ("OPENAI_API_KEY", SECRET),
        ])
        .env("OPENAI_BASE_URL", server.base_url());
    command
        .env("HOME", place.work())
        .env("XDG_STATE_HOME", place.state());
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .expect("script");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    for line in ["first line\r\n", "second line\r\n", "third\r\n"] {
        assert_eq!(
            shown.matches(line).count(),
            1,
            "{line:?} once in: {shown:?}"
        );
    }
    assert!(!shown.contains(SECRET));
}

#[test]
fn a_thread_goes_on_and_runs_are_listed_and_shown() {
    let place = Place::new();
    let server = Server::start(
        vec![Step::Say("Blue."), Step::Say("You said blue.")],
        Duration::ZERO,
    );
    for (task, answer) in [("My colour?", "Blue.\n"), ("Again?", "You said blue.\n")] {
        let ended = sixb(
            &place,
            &server,
            &["run", "--model", "test/m", "--thread", "colours", task],
        );
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), answer),
            "{ended:?}"
        );
    }
    let second = server.seen().remove(1);
    let at = |text: &str| {
        second
            .find(text)
            .unwrap_or_else(|| panic!("{text} is missing: {second}"))
    };
    assert!(at("My colour?") < at("\"content\":\"Blue.\"") && at("Blue.") < at("Again?"));

    let list = place.sixb(&["runs", "list"]);
    let lines: Vec<_> = list.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{list:?}");
    assert!(
        lines[0].contains("Again?")
            && lines[0].contains("completed")
            && lines[0].contains("[colours]"),
        "newest first: {list:?}"
    );
    let json = place
        .sixb(&["runs", "list", "--json", "--limit", "1"])
        .json();
    assert_eq!(
        (
            json["threadId"].as_str(),
            json["usage"]["inputTokens"].as_u64()
        ),
        (Some("colours"), Some(11)),
        "{json}"
    );

    let id = json["runId"].as_str().expect("id");
    let shown = place.sixb(&["runs", "show", &id[id.len() - 6..]]);
    for part in [
        "user:\n  Again?",
        "assistant:\n  You said blue.",
        "completed; 1 steps",
        "thread colours",
    ] {
        assert!(
            shown.stdout.contains(part),
            "{part:?} is missing: {shown:?}"
        );
    }
    assert!(
        place
            .sixb(&["runs", "show", "--json", id])
            .json_lines()
            .len()
            > 4
    );
    let refused = place.sixb(&["runs", "resume", id]);
    assert!(
        refused.code == Some(2)
            && refused
                .stderr
                .contains("is completed; go on with `sixb run --thread colours"),
        "{refused:?}"
    );
    let missing = place.sixb(&["runs", "show", "nothing"]);
    assert!(
        missing.code == Some(2) && missing.stderr.contains("sixb runs list"),
        "{missing:?}"
    );
}

#[test]
fn a_killed_run_is_resumed_in_a_new_sandbox() {
    let place = Place::new();
    let slow = Step::Say("this answer takes its time and is never whole because its process dies");
    let call = Step::Call("bash", json!({"command": "touch here; ls"}));
    let server = Server::start(
        vec![call, slow, Step::Say("Done after all.")],
        Duration::from_millis(100),
    );
    let mut child = place
        .command(&["run", "--model", "test/m", "make a file"])
        .env("OPENAI_BASE_URL", server.base_url())
        .env("OPENAI_API_KEY", SECRET)
        .spawn()
        .expect("sixb");
    eventually("the second request is made", || server.seen().len() == 2);
    child.kill().expect("kill");
    child.wait().expect("wait");

    let list = place.sixb(&["runs", "list", "--json"]).json();
    assert_eq!(
        (list["status"].as_str(), list["steps"].as_u64()),
        (Some("interrupted"), Some(2)),
        "{list}"
    );
    let id = list["runId"].as_str().expect("id");
    let ended = sixb(
        &place,
        &server,
        &["runs", "resume", id, "--model", "test/m"],
    );
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Done after all.\n"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains(&format!("resumed {id}")) && !ended.stderr.contains("touch here"),
        "{ended:?}"
    );
    let told = server.seen().remove(2);
    assert!(
        told.contains("files that were not published are gone") && told.contains("touch here"),
        "{told}"
    );
    assert_eq!(
        place.sixb(&["runs", "list", "--json"]).json()["status"],
        "completed"
    );
    place.sixb(&["sandbox", "sweep"]);
    place.assert_nothing_left();
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let place = Place::new();
    let ended = place.sixb(&["run", "--model", "openai/gpt-5.5", "hi"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in [
        "--model \"openai/gpt-5.5\"",
        "AI_GATEWAY_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
    ] {
        assert!(ended.stderr.contains(part), "{part} is missing: {ended:?}");
    }
    let env = [
        ("OPENAI_BASE_URL", "http://192.0.2.1/v1"),
        ("OPENAI_API_KEY", SECRET),
    ];
    let ended = place.sixb_with_env(&["run", "--model", "m", "hi"], &env);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("use https"),
        "{ended:?}"
    );

    // Nobody listens there: the run fails after its retries, and says so.
    let server = Server::start(vec![], Duration::ZERO);
    let url = server.base_url().replace("127.0.0.1", "127.0.0.2");
    let env = [
        ("OPENAI_BASE_URL", url.as_str()),
        ("OPENAI_API_KEY", SECRET),
    ];
    let ended = place.sixb_with_env(&["run", "--model", "m", "hi"], &env);
    assert!(
        ended.code == Some(1)
            && ended.stderr.contains("no connection to 127.0.0.2")
            && ended.stderr.contains("tried 4 times"),
        "{ended:?}"
    );
    let list = place.sixb(&["runs", "list"]);
    assert!(list.stdout.contains("failed"), "{list:?}");
}

#[test]
fn doctor_tells_the_server_and_never_the_key() {
    let place = Place::new();
    for (env, expect) in [
        (&[][..], "none is named"),
        (
            &[("AI_GATEWAY_API_KEY", SECRET)],
            "https://ai-gateway.vercel.sh/v1 by AI_GATEWAY_API_KEY, with a key",
        ),
        (
            &[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")],
            "http://127.0.0.1:9/v1 by OPENAI_BASE_URL, without a key",
        ),
        (
            &[(
                "OPENAI_BASE_URL",
                "https://u:sk-test-000@a.test/v1?k=sk-test-000",
            )],
            "https://a.test/v1 by OPENAI_BASE_URL",
        ),
    ] {
        let ended = place.sixb_with_env(&["doctor"], env);
        assert!(
            ended.code == Some(0) && ended.stdout.contains(expect),
            "{expect}: {ended:?}"
        );
    }
}

#[test]
fn the_file_names_a_model_too() {
    let place = Place::new();
    place.write("sixb.toml", "[agents.a]\nmodel = \"test/m\"\nreasoning_effort = \"high\"\ngroups = [\"g\"]\ntools = []\n");
    let server = Server::start(vec![Step::Say("Hi.")], Duration::ZERO);
    let ended = sixb(&place, &server, &["run", "hi"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Hi.\n"),
        "{ended:?}"
    );
    let seen = server.seen().remove(0);
    assert!(
        seen.contains("\"reasoning_effort\":\"high\"") && !seen.contains("\"tools\""),
        "{seen}"
    );
}
