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
    place.write("file.txt", "");
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
        ("--workspace", "missing", &["there is no folder", "make it"]),
        (
            "--workspace",
            "missing:ro",
            &["there is no folder missing;", "make it"],
        ),
        (
            "--workspace",
            "file.txt",
            &["is a file", "folder that it lies in"],
        ),
        ("--workspace", "/", &["whole machine"]),
        ("--workspace", "", &["a value is required"]),
        ("--config", "missing.toml", &["sixb init"]),
    ] {
        let named = [&[flag, value][..], parts].concat();
        check(&place, &["exec", flag, value, "--", "true"], &named);
        check(&place, &["tool", flag, value, "bash", "{}"], &named);
    }
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
            &["--script is missing", "--script FILE", "sixb demo"],
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
            "[sandbox]\n\nmemory = \"lots\"",
            exec,
            &["sixb.toml:3: sandbox.memory", "lots", "512M"],
        ),
        (
            "[sandbox]\nprovider = \"docker\"",
            exec,
            &["sixb.toml:2: sandbox.provider", "docker", "local or smolvm"],
        ),
        (
            "[sandbox]\nworkspace = \"gone\"",
            exec,
            &["sixb.toml: sandbox.workspace gone", "make it"],
        ),
        ("[sandbox", exec, &["sixb.toml:1: ", "correct the TOML"]),
        (
            "[agents.a]\nmodel = \"openai/gpt-5.5\"",
            run,
            &["sixb.toml: agents.a.model", "openai/gpt-5.5", "script:FILE"],
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
