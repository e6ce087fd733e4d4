//! git, pip, npm and node, as they are installed and with no option about proxies.

use std::{fs, path::Path, process::Command};

use crate::{Guest, Site, site::run};

/// The host's git, without the host's settings.
fn git(folder: &Path, arguments: &str) {
    run(Command::new("/usr/bin/git")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.com"])
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn git_clones() {
    let site = Site::new();
    let work = tempfile::tempdir().expect("a folder");
    fs::write(work.path().join("file"), "content\n").expect("a file");
    for arguments in ["init -q -b main", "add file", "commit -q -m one"] {
        git(work.path(), arguments);
    }
    fs::create_dir(site.www().join("git")).expect("a folder");
    for bare in ["repo.git", "git/repo.git"] {
        let bare = site.www().join(bare);
        git(
            work.path(),
            &format!("clone -q --bare . {}", bare.display()),
        );
        git(&bare, "update-server-info");
    }
    let mut guest = Guest::of(&site, &["http://allowed.test", "https://allowed.test"]).await;
    for (protocol, path) in [("a plain folder", "repo.git"), ("smart", "git/repo.git")] {
        for scheme in ["http", "https"] {
            let script = format!(
                "rm -rf clone; export GIT_SSL_CAINFO=$PWD/ca.pem GIT_TERMINAL_PROMPT=0
                 git clone -q {scheme}://allowed.test/{path} clone && cat clone/file"
            );
            assert_eq!(guest.sh(&script).await, "content\n", "{scheme}, {protocol}");
        }
    }
    let refused = guest
        .sh("git clone -q http://unlisted.test/repo.git other")
        .await;
    assert!(refused.contains("403"), "the agent sees why: {refused}");
    assert_eq!(guest.denied(), ["http://unlisted.test:80 origin"]);
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pip_installs() {
    let site = Site::new();
    let index = site.www().join("simple/tiny");
    fs::create_dir_all(&index).expect("a folder");
    let wheel = "tiny-1.0-py3-none-any.whl";
    let make = "import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('tiny.py', 'print(\"tiny works\")\\n')
    info = 'tiny-1.0.dist-info/'
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')";
    let python = &mut Command::new("/usr/bin/python3");
    run(python.args(["-c", make]).arg(index.join(wheel)));
    let page = format!("<!DOCTYPE html><a href=\"{wheel}\">{wheel}</a>");
    fs::write(index.join("index.html"), page).expect("a page");
    let guest = Guest::of(&site, &["http://allowed.test", "https://allowed.test"]).await;
    for (scheme, trust) in [
        ("http", "--trusted-host allowed.test"),
        ("https", "--cert ca.pem"),
    ] {
        let script = format!(
            "rm -rf lib; /usr/bin/python3 -m pip install -q --disable-pip-version-check --no-cache-dir --retries 0 {trust} \
             --index-url {scheme}://allowed.test/simple/ --target lib tiny && PYTHONPATH=lib /usr/bin/python3 -m tiny"
        );
        assert_eq!(guest.sh(&script).await, "tiny works\n", "{scheme}");
    }
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn npm_installs() {
    let site = Site::new();
    let package = tempfile::tempdir().expect("a folder");
    let file = |name: &str, content: &str| {
        fs::create_dir_all(package.path().join("package")).expect("a folder");
        fs::write(package.path().join("package").join(name), content).expect("a file");
    };
    file(
        "package.json",
        r#"{"name":"tiny","version":"1.0.0","main":"tiny.js"}"#,
    );
    file("tiny.js", "console.log('tiny works')\n");
    let guest = Guest::of(&site, &["http://allowed.test", "https://allowed.test"]).await;
    run(Command::new("/usr/bin/tar")
        .args(["-czf"])
        .arg(site.www().join("tiny-1.0.0.tgz"))
        .args([
            "-C".as_ref(),
            package.path().as_os_str(),
            "package".as_ref(),
        ]));
    for scheme in ["http", "https"] {
        let registry = format!("{scheme}://allowed.test");
        let document = format!(
            r#"{{"name":"tiny","dist-tags":{{"latest":"1.0.0"}},"versions":{{"1.0.0":
                {{"name":"tiny","version":"1.0.0","main":"tiny.js","dist":{{"tarball":"{registry}/tiny-1.0.0.tgz"}}}}}}}}"#
        );
        fs::write(site.www().join("tiny"), document).expect("a document");
        let script = format!(
            "rm -rf app && mkdir app && cd app && echo '{{}}' > package.json
             npm install --silent --no-audit --no-fund --fetch-retries 0 --cache ~/{scheme} --cafile ../ca.pem \
             --registry {registry} tiny && node -e 'require(\"tiny\")'"
        );
        assert_eq!(guest.sh(&script).await, "tiny works\n", "{scheme}");
    }
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_fetches_without_knowing_of_proxies() {
    let site = Site::new();
    let origins = [
        "http://allowed.test",
        "https://allowed.test",
        "https://other.test:8443",
    ];
    let mut guest = Guest::of(&site, &origins).await;
    for origin in origins {
        let script = format!(
            "NODE_EXTRA_CA_CERTS=ca.pem node -e \"fetch('{origin}/page').then(answer => answer.text()).then(console.log)\""
        );
        assert_eq!(guest.sh(&script).await, "page\n\n", "fetch {origin}");
        let module = origin.split(':').next().expect("a scheme");
        let script = format!(
            "NODE_EXTRA_CA_CERTS=ca.pem node -e \"require('{module}').get('{origin}/page', answer => answer.pipe(process.stdout))\""
        );
        assert_eq!(guest.sh(&script).await, "page\n", "{module}.get {origin}");
    }
    let script =
        "node -e \"fetch('http://unlisted.test/').catch(error => console.log(error.cause.code))\"";
    let answer = guest.sh(script).await;
    assert!(
        answer.starts_with("ENOTFOUND") || answer.starts_with("EAI_AGAIN"),
        "{answer}"
    );
    assert_eq!(guest.denied(), [""; 0]);
    guest.done().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_programs_reach_the_list_and_their_own_servers() {
    let site = Site::new();
    let guest = Guest::of(&site, &["http://allowed.test", "https://allowed.test"]).await;
    let script = r#"
import http.server, threading, urllib.request
print(urllib.request.urlopen("http://allowed.test/page").read())
own = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=own.serve_forever, daemon=True).start()
for host in ("127.0.0.1", "localhost"):
    print(urllib.request.urlopen(f"http://{host}:{own.server_port}/ca.pem").read(11))
"#;
    let answer = guest.python(script).await;
    let lines: Vec<_> = answer
        .lines()
        .filter(|line| line.starts_with("b'"))
        .collect();
    assert_eq!(
        lines,
        ["b'page\\n'", "b'-----BEGIN '", "b'-----BEGIN '"],
        "{answer}"
    );
    let script = "SSL_CERT_FILE=ca.pem python3 -c 'import urllib.request as r; print(r.urlopen(\"https://allowed.test/page\").read())'";
    assert_eq!(guest.sh(script).await, "b'page\\n'\n");
    guest.done().await;
}
