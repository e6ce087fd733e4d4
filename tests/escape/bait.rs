//! What an attack would want of the host: a file, a process, sockets, a token. Each is looked at again afterwards.

use std::{
    fs,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::PermissionsExt,
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

const SECRET: &str = "only the host may read this";

pub(crate) struct Bait {
    folder: TempDir,
    token: String,
    victim: Child,
    port: u16,
    _listening: (TcpListener, Vec<UnixListener>, UnixDatagram),
}

impl Bait {
    pub(crate) fn lay() -> Self {
        let folder = tempfile::tempdir().expect("bait folder");
        let open = |path: &Path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("mode")
        };
        open(folder.path());
        fs::write(folder.path().join("secret"), SECRET).expect("bait file");
        let shown = folder.path().join("shown");
        fs::create_dir(&shown).expect("folder");
        open(&shown);
        fs::write(shown.join("file"), "shown, read-only").expect("file");
        let token = format!(
            "sixb-bait-{}-{}",
            std::process::id(),
            folder.path().file_name().unwrap_or_default().display()
        );
        // In its environment and in its arguments, as keys often are.
        let victim = Command::new("sleep")
            .arg("300")
            .env("BAIT_ENVIRON", &token)
            .env_remove("SIXB_ESCAPE_REPORT")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a host process");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("listener");
        let port = tcp.local_addr().expect("address").port();
        let named = |name: &str| SocketAddr::from_abstract_name(name).expect("address");
        let streams = vec![
            UnixListener::bind_addr(&named(&token)).expect("listener"),
            UnixListener::bind(folder.path().join("socket")).expect("listener"),
            UnixListener::bind(shown.join("shown.socket")).expect("listener"),
        ];
        for socket in [folder.path().join("socket"), shown.join("shown.socket")] {
            fs::set_permissions(socket, fs::Permissions::from_mode(0o777)).expect("mode");
        }
        let datagrams =
            UnixDatagram::bind_addr(&named(&format!("{token}-datagram"))).expect("socket");
        Self {
            folder,
            token,
            victim,
            port,
            _listening: (tcp, streams, datagrams),
        }
    }

    /// A folder of the host that sandboxes see, read-only, at `/data`.
    pub(crate) fn shown(&self) -> PathBuf {
        self.folder.path().join("shown")
    }

    pub(crate) fn secret(&self) -> PathBuf {
        self.folder.path().join("secret")
    }

    /// What an attack is told about it. The token itself is what it must not find, so it gets the half that it can
    /// search for.
    pub(crate) fn told(&self) -> Vec<(&'static str, String)> {
        vec![
            ("BAIT_FILE", self.secret().display().to_string()),
            ("BAIT_PID", self.victim.id().to_string()),
            ("BAIT_ABSTRACT", self.token.clone()),
            (
                "BAIT_SOCKET",
                self.folder.path().join("socket").display().to_string(),
            ),
            ("BAIT_PORT", self.port.to_string()),
            ("BAIT_TOKEN", self.token.clone()),
        ]
    }

    /// A verdict counts only if the bait is untouched.
    pub(crate) fn judge(&self, seen: String) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.victim.id()));
        let state = stat.as_deref().unwrap_or_default().rsplit(')').next();
        if state.is_none_or(|rest| rest.trim_start().starts_with(['Z', 'T']) || rest.is_empty()) {
            return format!("{seen}, and a process of the host was hit");
        }
        if fs::read_to_string(self.secret()).ok().as_deref() != Some(SECRET) {
            return format!("{seen}, and a file of the host was changed");
        }
        seen
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}
