//! Takes everything away that a command must not have. Commands inherit it from the supervisor.

mod landlock;
mod seccomp;

use std::io;

use rustix::{
    process::{DumpableBehavior, Resource, Rlimit},
    thread::{CapabilitySet, CapabilitySets},
};

use super::{Failure, Stage};
use crate::{plan::Plan, supervisor::SUPERVISOR_NAME};

/// A crash dumps no memory anywhere. The limit 0 would not do: where `core_pattern` names a program, the kernel starts it
/// all the same, as root on the host, and feeds it what the guest chose. The limit 1 alone stops that, too.
///
/// Comes first, while root may still raise a hard limit of 0; seccomp keeps commands from changing it.
pub(super) fn no_core_dumps() {
    let one = Rlimit {
        current: Some(1),
        maximum: Some(1),
    };
    // Fails only under a hard limit of 0, which an ordinary user cannot raise: docs/security.md names it.
    let _ = rustix::process::setrlimit(Resource::Core, one);
}

/// Hardens this process for good. Returns the Landlock ABI in force, 0 for none.
pub(super) fn harden(plan: &Plan) -> Result<u32, Failure> {
    let name = plan.hostname.as_bytes();
    rustix::system::sethostname(name).stage(|| "set the host name".into())?;
    // A second lock beside seccomp: this namespace may not have children. Not all kernels have the file.
    let _ = std::fs::write("/proc/sys/user/max_user_namespaces", "0");
    if plan.limits.memory_bytes.is_some() {
        // System V shared memory outlives processes and shows in none of them: no measure would see it.
        let _ = std::fs::write("/proc/sys/kernel/shmall", "0");
    }
    // What `ps` shows inside; the name of the sealed program means nothing to people.
    let _ = rustix::thread::set_name(SUPERVISOR_NAME);
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    default_signals();
    // Else a command of the same user could open /proc/1/mem.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .stage(|| "become undumpable".into())?;
    drop_capabilities().stage(|| "drop capabilities".into())?;
    rustix::thread::set_no_new_privs(true).stage(|| "set no_new_privs".into())?;
    let abi = landlock::restrict(&plan.writable).stage(|| "restrict files with Landlock".into())?;
    seccomp::restrict(plan.limits.memory_bytes.is_some())
        .stage(|| "restrict system calls with seccomp".into())?;
    Ok(abi)
}

/// Process 1 hears no signal of its own namespace, except where a handler is installed: Rust's runtime has some for faults,
/// and the address in a forged one would be believed.
fn default_signals() {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: sets a default disposition, no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

fn drop_capabilities() -> io::Result<()> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The first number that this kernel does not know.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    match rustix::thread::clear_ambient_capability_set() {
        Ok(()) | Err(rustix::io::Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, none)?)
}

pub(super) fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: all zeroes is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: `request` is a whole `ifreq` with a terminated name; SIOCSIFFLAGS only reads it.
    let result = unsafe {
        libc::ioctl(
            std::os::fd::AsRawFd::as_raw_fd(&socket),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
