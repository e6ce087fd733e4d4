//! Agents that search the web: a service on loopback that plays recorded answers of Exa.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::place::{Ended, Place, SECRET};

/// Plays Exa. The thread ends with the test's process.
struct Exa {
    port: u16,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Exa {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let port = listener.local_addr().expect("address").port();
        let seen = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let requests = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("connection");
                let (head, body) = read(&mut stream);
                let answer = match head.starts_with("POST /search ") {
                    true => found(),
                    false => page(),
                };
                requests.lock().expect("seen").push((head, body));
                let answer = answer.to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    answer.len()
                );
                let _ = stream.write_all([head, answer].concat().as_bytes());
            }
        });
        Self { port, seen }
    }

    fn seen(&self) -> Vec<(String, Value)> {
        self.seen.lock().expect("seen").clone()
    }
}

/// A service that quotes the key wherever it can.
fn found() -> Value {
    json!({"requestId": SECRET, "resolvedSearchType": "neural", "costDollars": {"total": 0.005}, "results": [
        {"id": "https://docs.test/tokio", "url": "https://docs.test/tokio", "title": "Tokio", "score": 0.4,
         "publishedDate": "2024-05-01T00:00:00.000Z", "author": SECRET, "text": format!("About Tokio. {SECRET}")},
        {"id": "https://spam.test/", "url": "https://spam.test/", "title": "Off policy", "text": "spam"}]})
}

fn page() -> Value {
    json!({"requestId": "r2", "costDollars": {"total": 0.001},
        "results": [{"id": "https://docs.test/tokio", "url": "https://docs.test/tokio", "title": "Tokio", "text": "Maintained by many."}],
        "statuses": [{"id": "https://docs.test/tokio", "status": "success", "source": "cached"}]})
}

fn read(stream: &mut impl Read) -> (String, Value) {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = |line: &str| {
                let line = line.to_ascii_lowercase();
                line.strip_prefix("content-length: ")?.parse::<usize>().ok()
            };
            if body.len() >= head.lines().find_map(length).unwrap_or(0) {
                return (
                    head.to_owned(),
                    serde_json::from_str(body).unwrap_or_default(),
                );
            }
        }
        let read = stream.read(&mut piece).expect("request");
        assert!(read > 0, "the request ended early: {text}");
        bytes.extend_from_slice(&piece[..read]);
    }
}

const SCRIPT: &str = r#"{"steps": [
    {"toolCalls": [{"id": "s", "name": "web_search", "arguments": {"query": "who maintains tokio?"}}]},
    {"toolCalls": [{"id": "f", "name": "web_fetch", "arguments": {"url": "https://docs.test/tokio"}}]},
    {"text": "${calls.f.result.text} ${calls.s.result.dropped} left out."}]}"#;

/// An agent without web tools that tries to search all the same.
const CURIOUS: &str = r#"{"steps": [
    {"toolCalls": [{"id": "s", "name": "web_search", "arguments": {"query": "q"}}, {"id": "f", "name": "web_fetch", "arguments": {"url": "https://docs.test"}}]},
    {"text": "${calls.s.error.message} ${calls.f.error.message}"}]}"#;

fn place(exa: &Exa) -> Place {
    let place = Place::new();
    place.write("script.json", SCRIPT);
    place.write("curious.json", CURIOUS);
    let port = exa.port;
    place.write(
        "sixb.toml",
        &format!(
            "[connectors.exa]\napi_key = \"env:EXA_API_KEY\"\nbase_url = \"http://127.0.0.1:{port}\"\n\
             [tools.web_search]\nallowed_domains = [\"docs.test\"]\nnum_results = 3\n\
             [agents.researcher]\ntools = [\"web_search\", \"web_fetch\"]\n\
             [agents.clerk]\ntools = [\"bash\"]\n[agents.plain]\n"
        ),
    );
    place
}

fn run(place: &Place, agent: &str, script: &str, env: &[(&str, &str)]) -> Ended {
    place.sixb_with_env(
        &["run", "--agent", agent, "--script", script, "--json", "go"],
        env,
    )
}

/// Everything that a run left, at any depth.
fn texts(place: &Place) -> Vec<String> {
    let mut folders = vec![place.work(), place.state()];
    let mut texts = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.file_type().expect("type").is_dir() {
                true => folders.push(entry.path()),
                false => texts.push(
                    String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default())
                        .into_owned(),
                ),
            }
        }
    }
    texts
}

#[test]
fn an_agent_searches_and_reads_and_the_key_is_nowhere() {
    let exa = Exa::start();
    let place = place(&exa);
    // `Place` checks that no output shows the key.
    let ended = run(
        &place,
        "researcher",
        "script.json",
        &[("EXA_API_KEY", SECRET)],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("Maintained by many. 1 left out."),
        "{ended:?}"
    );

    let seen = exa.seen();
    assert_eq!(seen.len(), 2, "one request a call: {seen:?}");
    for ((head, body), (path, expect)) in seen.iter().zip([
        (
            "/search",
            json!({"query": "who maintains tokio?", "numResults": 3, "includeDomains": ["docs.test"],
                "contents": {"text": {"maxCharacters": 2001}}}),
        ),
        (
            "/contents",
            json!({"urls": ["https://docs.test/tokio"], "text": {"maxCharacters": 10001}, "subpages": 0}),
        ),
    ]) {
        assert!(head.starts_with(&format!("POST {path} ")), "{head}");
        assert!(head.contains(&format!("x-api-key: {SECRET}")), "{head}");
        assert_eq!(body, &expect);
    }

    let texts = texts(&place);
    for text in &texts {
        assert!(!text.contains(SECRET), "{text}");
    }
    let transcript = texts
        .iter()
        .find(|text| {
            text.contains("\"web_search\"")
                && text.contains("\"web_fetch\"")
                && !text.contains("\"steps\": [")
        })
        .expect("transcript");
    let search = transcript.find("who maintains tokio?").expect("query");
    let fetch = transcript
        .find("\"url\":\"https://docs.test/tokio\"")
        .expect("url");
    assert!(search < fetch, "{transcript}");
    assert!(
        transcript.contains("\"untrusted\":true") && !transcript.contains("spam"),
        "{transcript}"
    );
    place.assert_nothing_left();
}

#[test]
fn an_agent_that_names_no_web_tool_has_none() {
    let exa = Exa::start();
    let place = place(&exa);
    for agent in ["clerk", "plain"] {
        // It needs no key either.
        let ended = run(&place, agent, "curious.json", &[]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for name in ["web_search", "web_fetch"] {
            assert!(
                ended
                    .stdout
                    .contains(&format!("no tool is called `{name}`")),
                "{ended:?}"
            );
        }
    }
    assert!(exa.seen().is_empty());
}

#[test]
fn what_is_missing_or_wrong_is_named_before_anything_starts() {
    let exa = Exa::start();
    let place = place(&exa);
    let ended = run(&place, "researcher", "script.json", &[]);
    for part in [
        "sixb.toml: connectors.exa.api_key",
        "EXA_API_KEY is not set",
    ] {
        assert!(
            ended.code == Some(2) && ended.stderr.contains(part),
            "{part}: {ended:?}"
        );
    }
    for (file, parts) in [
        (
            "[agents.a]\ntools = [\"bash\", \"web_search\"]\n".to_owned(),
            &["agents.a.tools", "web_search needs the connector exa", "[connectors.exa]"][..],
        ),
        ("[agents.a]\ntools = [\"web_serch\"]\n".into(), &["no tool \"web_serch\"", "web_search, web_fetch"]),
        ("[connectors.exa]\n[agents.a]\ntools = [\"web_fetch\"]\n".into(), &["connectors.exa.api_key is missing", "env:EXA_API_KEY"]),
        (format!("[connectors.exa]\napi_key = \"{SECRET}\"\n"), &["sixb.toml:2: ", "does not belong into this file"]),
        (
            "[connectors.exa]\napi_key = \"env:EXA_API_KEY\"\nbase_url = \"http://exa.test\"\n[agents.a]\ntools = [\"web_fetch\"]\n".into(),
            &["connectors.exa.base_url", "use https"],
        ),
        (
            "[connectors.exa]\napi_key = \"env:FAKE_API_KEY\"\nbase_url = \"https://thief.test\"\n[agents.a]\ntools = [\"web_fetch\"]\n".into(),
            &["connectors.exa.api_key", "begin with EXA_"],
        ),
        (
            "[connectors.exa]\napi_key = \"env:EXA_API_KEY\"\nbase_url = \"https://thief.test\"\n[agents.a]\ntools = [\"web_fetch\"]\n".into(),
            &["connectors.exa.base_url", "does not belong into this file", "EXA_BASE_URL"],
        ),
        (
            "[connectors.exa]\napi_key = \"env:EXA_API_KEY\"\n[tools.web_search]\nallowed_domains = []\n[agents.a]\ntools = [\"web_search\"]\n".into(),
            &["tools.web_search.allowed_domains is empty", "take the line out"],
        ),
        (
            "[connectors.exa]\napi_key = \"env:EXA_API_KEY\"\n[tools.web_search]\nnum_results = 50\n[agents.a]\ntools = [\"web_search\"]\n".into(),
            &["tools.web_search.num_results is 50", "from 1 to 20"],
        ),
    ] {
        place.write("sixb.toml", &file);
        let args = ["run", "--script", "script.json", "go"];
        let ended = place.sixb_with_env(&args, &[("EXA_API_KEY", SECRET)]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        for part in parts {
            assert!(ended.stderr.contains(part), "{part:?} is missing: {ended:?}");
        }
    }
    assert!(exa.seen().is_empty());
}

#[test]
fn doctor_tells_whether_there_is_a_key_and_never_the_key() {
    let exa = Exa::start();
    let place = place(&exa);
    let line = |place: &Place, env: &[(&str, &str)]| {
        let ended = place.sixb_with_env(&["doctor"], env);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let at = ended.stdout.find("web tools").expect("line");
        ended.stdout[at..].to_owned()
    };
    assert!(line(&place, &[("EXA_API_KEY", SECRET)]).contains("Exa, with the key in EXA_API_KEY"));
    let unset = line(&place, &[]);
    assert!(
        unset.contains("EXA_API_KEY is not set") && unset.contains("→ export EXA_API_KEY"),
        "{unset}"
    );
    place.write(
        "sixb.toml",
        &format!("[connectors.exa]\napi_key = \"{SECRET}\"\n"),
    );
    assert!(line(&place, &[]).contains("does not belong into this file"));
    for (file, part) in [
        ("[connectors]\nexa = \"KEY\"\n", "wrong type"),
        ("[connectors.exa]\n\"KEY\" = 1\n", "unknown key"),
    ] {
        place.write("sixb.toml", &file.replace("KEY", SECRET));
        assert!(line(&place, &[]).contains(part), "{file}");
        // `Place` checks that no output shows the key.
        let ended = place.sixb_with_env(&["doctor", "--json"], &[]);
        assert!(ended.stdout.contains(part), "{ended:?}");
    }
    // What a run refuses is found without one.
    for (more, part) in [
        (
            "[tools.web_search]\nmax_cost_dollars = nan\n",
            "no amount of money",
        ),
        (
            "[tools.web_fetch]\nallowed_domains = []\n",
            "allowed_domains is empty",
        ),
        (
            "[agents.a]\ntools = [\"web_fetch\", \"web_fetch\"]\n",
            "agents.a.tools",
        ),
        ("base_url = \"https://thief.test\"\n", "EXA_BASE_URL"),
    ] {
        let file = format!("[connectors.exa]\napi_key = \"env:EXA_API_KEY\"\n{more}");
        place.write("sixb.toml", &file);
        let told = line(&place, &[("EXA_API_KEY", SECRET)]);
        assert!(told.contains(part) && !told.contains("Exa, with"), "{told}");
    }
    place.write(
        "sixb.toml",
        "[connectors.exa]\napi_key = \"env:EXA_API_KEY\"\n",
    );
    let told = line(&place, &[("EXA_API_KEY", "no key"), ("EXA_BASE_URL", "")]);
    assert!(told.contains("characters that no key has"), "{told}");
    let own = [
        ("EXA_API_KEY", SECRET),
        ("EXA_BASE_URL", "https://exa.test"),
    ];
    assert!(line(&place, &own).contains("at the address in EXA_BASE_URL"));
    let empty = Place::new();
    assert!(line(&empty, &[]).contains("not set up"));
    assert!(exa.seen().is_empty(), "it connects to nothing");
}
