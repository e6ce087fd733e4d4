//! What the relay leads to: a site on the host's loopback, with a certificate of its own authority.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use sixb_sandbox::AllowedOrigin;
use tempfile::TempDir;

/// A running site.
pub(crate) struct Site {
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    folder: TempDir,
    server: Child,
}

impl Site {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("www")).expect("a folder");
        fs::write(at("www/page"), "page\n").expect("a page");
        certificates(folder.path());
        let mut server = Command::new("/usr/bin/python3")
            .args(["-c", include_str!("server.py")])
            .args([at("www"), at("site.pem"), at("site.key")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 (Debian: python3)");
        let mut ports = String::new();
        let stdout = server.stdout.take().expect("piped");
        BufReader::new(stdout)
            .read_line(&mut ports)
            .expect("the ports");
        let mut ports = ports
            .split_whitespace()
            .map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().expect("a port"))));
        Self {
            http: ports.next().expect("a port for http"),
            https: ports.next().expect("a port for https"),
            folder,
            server,
        }
    }

    /// The authority that signed the site's certificate.
    pub(crate) fn authority(&self) -> String {
        fs::read_to_string(self.folder.path().join("ca.pem")).expect("a certificate")
    }

    /// The folder that is served.
    pub(crate) fn www(&self) -> PathBuf {
        self.folder.path().join("www")
    }

    /// `origin`, which is here.
    pub(crate) fn allow(&self, origin: &str) -> AllowedOrigin {
        let address = if origin.starts_with("https") {
            self.https
        } else {
            self.http
        };
        AllowedOrigin::new("site", origin.parse().expect(origin)).address(address)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// An authority and a certificate for the names of the tests.
fn certificates(folder: &Path) {
    openssl(
        folder,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=Test -keyout ca.key -out ca.pem \
         -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign",
    );
    openssl(
        folder,
        "req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=allowed.test -keyout site.key -out site.csr",
    );
    let names = "subjectAltName=DNS:allowed.test,DNS:other.test,DNS:attacker.test,IP:127.0.0.1\n";
    fs::write(folder.join("names"), names).expect("a file");
    openssl(
        folder,
        "x509 -req -in site.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out site.pem",
    );
}

fn openssl(folder: &Path, arguments: &str) {
    run(Command::new("/usr/bin/openssl")
        .args(arguments.split_whitespace())
        .current_dir(folder));
}

/// Runs a program of the host to its end.
pub(crate) fn run(command: &mut Command) {
    let output = command
        .env_remove("GIT_DIR")
        .output()
        .unwrap_or_else(|error| {
            panic!("{command:?}: {error} (see xtask's step `setup` for the Debian packages)")
        });
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}
