//! Every error of the command line names the flag or key, the value and the remedy; nothing is started.

use crate::place::Place;

fn check(place: &Place, args: &[&str], parts: &[&str]) {
    let ended = place.sixb(args);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{args:?}: {ended:?}"
    );
    for part in parts {
        assert!(
            ended.stderr.contains(part),
            "{args:?}: {part:?} is missing in {}",
            ended.stderr
        );
    }
    assert!(
        !ended.stderr.contains('\x1b'),
        "no colour in a pipe: {ended:?}"
    );
    assert!(!place.state().exists(), "{args:?} started something");
}

#[test]
fn flags() {
    let place = Place::new();
    for (flag, value, parts) in [
        (
            "--sandbox",
            "docker",
            &["not a sandbox provider", "local or smolvm"][..],
        ),
        ("--sandbox", "docker", &["local"]),
        ("--net", "https://*.test", &["wildcard", "https://www.test"]),
        ("--net", "none,https://a.test", &["none alone"]),
        ("--net", "", &["https://pypi.org"]),
        ("--mem", "lots", &["512M"]),
        ("--mem", "1", &["16M"]),
        ("--timeout", "30", &["30s"]),
        ("--timeout", "0s", &["1ms"]),
        ("--timeout", "-1s", &["such as 30s"]),
        ("--mem", "-1", &["512M"]),
        ("--net", "x y", &["https://host"]),
        ("--workspace", "missing", &["there is no folder", "make it"]),
        ("--workspace", "", &["a value is required"]),
        ("--config", "missing.toml", &["sixb init"]),
    ] {
        let named = [&[flag, value][..], parts].concat();
        check(&place, &["exec", flag, value, "--", "true"], &named);
        check(&place, &["tool", flag, value, "bash", "{}"], &named);
    }
}

#[test]
fn an_argument_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let output = place
        .command(&["exec", "--", "echo"])
        .arg(std::ffi::OsStr::from_bytes(b"a\xff"))
        .output()
        .expect("sixb");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && stderr.contains("argument 4 (a\u{fffd})"),
        "{stderr}"
    );
}

#[test]
fn a_value_is_told_once() {
    let place = Place::new();
    let ended = place.sixb(&["exec", "--net", "x y", "--", "true"]);
    assert_eq!(ended.stderr.matches("x y").count(), 1, "{ended:?}");
    place.write("sixb.toml", "[sandbox]\nnet = \"x y\"\n");
    let ended = place.sixb(&["exec", "--", "true"]);
    assert_eq!(ended.stderr.matches("x y").count(), 1, "{ended:?}");
}

#[test]
fn commands() {
    let place = Place::new();
    place.write("bad.json", r#"{"steps":[{"txt":"hi"}]}"#);
    for (args, parts) in [
        (&["exec"][..], &["CMD"][..]),
        (&["exec", "--"], &["CMD"]),
        (&["exce"], &["exce", "exec"]),
        (
            &["exec", "--timeuot", "1s", "--", "true"],
            &["--timeuot", "--timeout"],
        ),
        (&["tool", "bash"], &["JSON"]),
        (&["tool", "--json"], &["--list"]),
        (&["tool", "--batch", "bash", "{}"], &["--batch"]),
        (&["run", " "], &["TASK", "say what"]),
        (
            &["run", "hi"],
            &["--model is missing", "--script FILE", "sixb demo"],
        ),
        (
            &["run", "--script", "missing.json", "hi"],
            &["--script missing.json", "name a JSON script"],
        ),
        (
            &["run", "--script", "bad.json", "hi"],
            &["--script bad.json", "steps[0]", "txt", "correct the script"],
        ),
        (&["run", "--agent", "a", "hi"], &["--agent a", "sixb init"]),
        (&[], &["Usage"]),
    ] {
        check(&place, args, parts);
    }
}

#[test]
fn settings() {
    let place = Place::new();
    let run = &["run", "hi"][..];
    let exec = &["exec", "--", "true"][..];
    for (text, args, parts) in [
        (
            "[sandbox]\nmemroy = \"1G\"",
            exec,
            &["sixb.toml:2: sandbox.memroy", "did you mean `memory`"][..],
        ),
        (
            "[sandbox]\nworkspace = \"gone\"",
            exec,
            &["sixb.toml: sandbox.workspace gone", "make it"],
        ),
        (
            "[agents.a]\nmodel = \"openai/gpt-5.5\"",
            run,
            &[
                "sixb.toml: agents.a.model",
                "openai/gpt-5.5",
                "AI_GATEWAY_API_KEY",
            ],
        ),
        (
            "[agents.a]\nmodel = \"script:gone.json\"",
            run,
            &[
                "sixb.toml: agents.a.model",
                "gone.json",
                "name a JSON script",
            ],
        ),
        (
            "[agents.a]\n[agents.b]",
            run,
            &["--agent is missing", "a, b"],
        ),
        (
            "[agents.writer]",
            &["run", "--agent", "writr", "hi"],
            &["--agent writr", "did you mean writer"],
        ),
    ] {
        place.write("sixb.toml", text);
        check(&place, args, parts);
    }
    place.write("script.json", r#"{"steps":[{"text":"hi"}]}"#);
    for (text, parts) in [
        (
            "[agents.a]\nmodel = \"script:script.json\"\ntools = [\"bsh\"]",
            &["sixb.toml: agents.a.tools", "bsh", "bash, read"][..],
        ),
        (
            "[project]\nid = \"my project\"\n[agents.a]\nmodel = \"script:script.json\"",
            &["sixb.toml: ", "my project", "letters, digits"],
        ),
        (
            "[agents.\"a b\"]\nmodel = \"script:script.json\"",
            &["sixb.toml: ", "a b", "letters, digits"],
        ),
    ] {
        place.write("sixb.toml", text);
        check(&place, run, parts);
    }
}
