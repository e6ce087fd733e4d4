//! The program that runs inside the microVM: it starts commands, watches over them and serves file calls.
//!
//! It is one static program without dependencies, so that it works in every image. `build.rs` compiles it and the crate
//! carries it; the host copies it into the machine, or shows it to a container read-only, and starts it once. It speaks on a Unix socket that
//! smolvm hands to the host. Nothing in here is trusted by the host.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "the files and processes of the guest are what this program is for"
)]

mod cgroup;
mod files;
mod list;
mod relay;
mod resident;
mod run;
mod wire;

use std::{
    fs, io,
    io::Write,
    os::unix::{
        net::{UnixListener, UnixStream},
        process::CommandExt,
    },
    path::Path,
    process::{Command, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Requests served at the same time.
const MAX_CONNECTIONS: usize = 512;

/// What all requests share.
pub(crate) struct Guest {
    pub(crate) workspace: files::Workspace,
    pub(crate) cgroup: cgroup::Parent,
    pub(crate) parked: relay::Parked,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_deref().and_then(|role| role.to_str()) {
        Some("serve") => match serve(
            arguments
                .filter_map(|argument| argument.into_string().ok())
                .collect(),
        ) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("sixb-guest: {error}");
                ExitCode::FAILURE
            }
        },
        Some("exec") => exec(arguments.collect()),
        Some(resident::ROLE) => {
            let group = arguments.next().unwrap_or_default();
            let brought = resident::bring_more(Path::new(&group));
            ExitCode::from(u8::from(brought.is_err()))
        }
        _ => {
            eprintln!("sixb-guest: started by the sandbox, not by hand");
            ExitCode::FAILURE
        }
    }
}

/// Becomes a command: enters its control group, then replaces itself.
fn exec(arguments: Vec<std::ffi::OsString>) -> ExitCode {
    let [group, program, rest @ ..] = arguments.as_slice() else {
        return ExitCode::FAILURE;
    };
    if let Err(error) = cgroup::enter(Path::new(group)) {
        eprintln!("sixb-guest: cannot enter {}: {error}", group.display());
        return ExitCode::from(126);
    }
    // The agent is the last to be killed for want of memory, its commands are not.
    let _ = fs::write("/proc/self/oom_score_adj", "0");
    let error = Command::new(program).args(rest).exec();
    let (code, why) = match error.kind() {
        io::ErrorKind::NotFound => (127, "command not found".to_owned()),
        io::ErrorKind::PermissionDenied => (126, "permission denied".to_owned()),
        _ => (126, error.to_string()),
    };
    eprintln!("{}: {why}", program.display());
    ExitCode::from(code)
}

/// `socket workspace guest-read-only memory pids cpu-millis [relay-address…] [-- hosts line…]`
fn serve(arguments: Vec<String>) -> io::Result<()> {
    let [socket, workspace, read_only, memory, pids, cpu, rest @ ..] = arguments.as_slice() else {
        return Err(io::Error::other("too few arguments"));
    };
    leave_the_terminal();
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    // A bounded PATH of the caller survives `bash -l`, whose profile sets its own.
    let _ = fs::create_dir_all("/etc/profile.d");
    let _ = fs::write(
        "/etc/profile.d/zz-sixb.sh",
        "if [ -n \"${SIXB_PATH:-}\" ]; then PATH=$SIXB_PATH; export PATH; unset SIXB_PATH; fi\n",
    );
    fs::create_dir_all(workspace)?;
    let (relays, hosts) = match rest.iter().position(|word| word == "--") {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &[][..]),
    };
    // An image may come without the file: names of loopback are needed also without a network.
    let known = fs::read_to_string("/etc/hosts").unwrap_or_default();
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open("/etc/hosts")?;
    if !known.contains("localhost") {
        writeln!(file, "127.0.0.1 localhost\n::1 localhost")?;
    }
    for line in hosts {
        writeln!(file, "{line}")?;
    }
    let guest = Arc::new(Guest {
        workspace: files::Workspace::open(workspace, read_only == "ro")?,
        cgroup: cgroup::Parent::make(memory, pids, cpu)?,
        parked: relay::Parked::default(),
    });
    relay::listen(&guest, relays)?;
    let _ = fs::remove_file(socket);
    if let Some(folder) = Path::new(socket).parent() {
        fs::create_dir_all(folder)?;
    }
    let listener = UnixListener::bind(socket)?;
    // Beside the first requests: they need not wait for it.
    thread::spawn(resident::bring);
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        if open.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (guest, open) = (guest.clone(), open.clone());
        let spawned = thread::Builder::new().stack_size(256 << 10).spawn({
            let open = open.clone();
            move || {
                // The connection ends with the request, whatever became of it. The line is for smolvm's log of the machine.
                if let Err(error) = answer(&guest, stream)
                    && !matches!(
                        error.kind(),
                        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe
                    )
                {
                    eprintln!("sixb-guest: a request ended early: {error}");
                }
                open.fetch_sub(1, Ordering::Relaxed);
            }
        });
        if spawned.is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// smolvm's own session has the machine's console as its terminal: programs that ask there would wait for ever. The
/// standard library cannot begin a session, `setsid` of every system can.
fn leave_the_terminal() {
    const DONE: &str = "SIXB_SESSION";
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    if std::env::var_os(DONE).is_none() {
        let error = Command::new("setsid")
            .arg(program)
            .args(std::env::args_os().skip(1))
            .env(DONE, "1")
            .exec();
        eprintln!("sixb-guest: no session of its own, since setsid does not start: {error}");
    }
}

fn answer(guest: &Arc<Guest>, mut stream: UnixStream) -> io::Result<()> {
    let (kind, payload) = wire::read(&mut stream)?;
    let fields = wire::unpack(&payload)?;
    let result = match kind {
        wire::HELLO => stream
            .write_all(&wire::frame(wire::OK, &wire::pack(&[wire::VERSION])))
            .map_err(files::Failure::from),
        wire::WATCH => {
            let _ = wire::read(&mut stream);
            return Ok(());
        }
        wire::RUN => return run::run(guest, stream, fields),
        wire::RELAY => {
            guest.parked.park(stream);
            return Ok(());
        }
        wire::WRITE => guest.workspace.write(&mut stream, &fields),
        wire::READ => guest.workspace.read(&mut stream, &fields),
        wire::STAT => guest.workspace.stat(&mut stream, &fields),
        wire::LIST => guest.workspace.list(&mut stream, &fields),
        wire::REMOVE => guest.workspace.remove(&mut stream, &fields),
        wire::SEEK => guest.workspace.seek(&mut stream, &fields),
        _ => Err(wire::broken().into()),
    };
    match result {
        Ok(()) => Ok(()),
        Err(files::Failure { name, detail }) => stream.write_all(&wire::frame(
            wire::ERROR,
            &wire::pack(&[name.as_bytes(), detail.as_bytes()]),
        )),
    }
}
