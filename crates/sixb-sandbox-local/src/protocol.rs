//! The wire between host and supervisor: one packet per message on a `SOCK_SEQPACKET` pair, descriptors beside it.
//!
//! The host treats the supervisor as hostile: packets are at most [`MAX_PACKET`] bytes, unknown or oversized ones end
//! the sandbox. Large requests (argv, environment) travel in a memfd, so that a packet always fits.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Longest packet, in bytes.
pub(crate) const MAX_PACKET: usize = 8 << 10;
/// Longest memfd of a request, in bytes: as much as Linux takes for argv and environment.
pub(crate) const MAX_REQUEST: u64 = 4 << 20;
/// Most descriptors beside one packet (Linux allows 253).
const MAX_FDS: usize = 200;
/// Most listeners of one sandbox: they are handed over beside one packet, with the working directory.
pub(crate) const MAX_LISTENERS: usize = MAX_FDS - 1;

/// Host → supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToSupervisor {
    /// Run a command. Beside it: stdin, stdout, stderr and a memfd with a [`RunRequest`].
    Run {
        /// Chosen by the host, never reused.
        id: u64,
    },
    /// Kill a command and all its descendants.
    Kill {
        /// The command.
        id: u64,
    },
}

/// What to run: the content of the memfd.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RunRequest {
    /// Program and arguments; the program is looked up in the `PATH` of `env`.
    pub(crate) argv: Vec<String>,
    /// The whole environment, `KEY=value`.
    pub(crate) env: Vec<String>,
    /// Absolute guest path.
    pub(crate) cwd: String,
    /// Milliseconds from the start; `None` = no deadline.
    pub(crate) deadline_ms: Option<u64>,
    /// Send [`ToHost::Started`] once it runs.
    pub(crate) tell_started: bool,
}

/// Supervisor (or the helper before it) → host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToHost {
    /// The init process exists. Beside it: its pidfd. Sent by the helper, which then ends.
    Init {
        /// Process id as the host sees it.
        pid: i32,
    },
    /// The sandbox is up. Beside it: the listeners, then the working directory, as the plan asked for.
    Ready {
        /// Landlock ABI in force; 0 = none.
        landlock_abi: u32,
    },
    /// The sandbox could not be made.
    BootFailed {
        /// What was being done.
        stage: String,
        /// The errno, where there is one.
        errno: Option<i32>,
        /// What went wrong, for people.
        detail: String,
    },
    /// A command that asked for it runs.
    Started {
        /// The command.
        id: u64,
    },
    /// A command could not be started.
    NotStarted {
        /// The command.
        id: u64,
        /// Why.
        why: NotStarted,
    },
    /// A command's own process ended. After a kill: all its descendants are gone, too.
    Exited {
        /// The command.
        id: u64,
        /// How.
        end: End,
        /// Why it was killed, if it was.
        killed: Option<Killed>,
    },
}

/// Why a command could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NotStarted {
    /// The working directory cannot be entered: errno.
    Cwd(i32),
    /// No process could be made: errno.
    Fork(i32),
    /// The request made no sense.
    BadRequest,
}

/// How a command's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Unknown: its leader was killed by the guest.
    Lost,
}

/// Why the supervisor killed a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Killed {
    /// The host asked.
    Asked,
    /// Its deadline passed.
    Deadline,
    /// The sandbox was over its memory limit, and this command used the most.
    Memory,
}

/// Sends one message with descriptors beside it.
pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MAX_PACKET {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    loop {
        match rustix::net::sendmsg(
            socket.as_fd(),
            &[IoSlice::new(&bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        ) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Receives one message; `None` at the end of the stream. A broken packet is `InvalidData`.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut buffer = [0; MAX_PACKET];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut iov = [IoSliceMut::new(&mut buffer)];
        match rustix::net::recvmsg(
            socket.as_fd(),
            &mut iov,
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Ok(received) => break received,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    let truncated = received
        .flags
        .intersects(rustix::net::ReturnFlags::TRUNC | rustix::net::ReturnFlags::CTRUNC);
    match serde_json::from_slice(&buffer[..received.bytes]) {
        Ok(message) if !truncated => Ok(Some((message, fds))),
        _ => Err(io::Error::from(io::ErrorKind::InvalidData)),
    }
}

/// Any bytes at all, as the host's side meets them.
#[cfg(any(test, fuzzing))]
pub(crate) mod check {
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};

    use super::{MAX_PACKET, ToHost, receive};

    /// Sends `bytes` as one packet: it is a message, or an error; what is too long is an error.
    #[cfg_attr(
        not(fuzzing),
        expect(unreachable_pub, reason = "the fuzz target is another crate")
    )]
    pub fn supervisor_protocol(bytes: &[u8]) {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let Ok((host, supervisor)) = socketpair(family, kind, SocketFlags::CLOEXEC, None) else {
            return;
        };
        if send(&supervisor, bytes, SendFlags::DONTWAIT).is_err() {
            return;
        }
        // A packet without a byte looks like the end, and the sandbox is given up.
        match receive::<ToHost>(&host) {
            Ok(message) => {
                assert_eq!(message.is_some(), !bytes.is_empty());
                assert!(
                    bytes.len() <= MAX_PACKET,
                    "a cut message was taken for a whole one"
                );
            }
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::InvalidData),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MAX_PACKET, check::supervisor_protocol};

    #[test]
    fn odd_packets_are_errors() {
        let padded = |length: usize| {
            let mut packet = br#"{"Ready":{"landlock_abi":1}}"#.to_vec();
            packet.resize(length, b' ');
            packet
        };
        for packet in [
            Vec::new(),
            b"{}".to_vec(),
            b"[".repeat(MAX_PACKET),
            br#"{"Init":{"pid":99999999999}}"#.to_vec(),
            br#"{"Exited":{"id":1,"end":{"Code":1},"killed":null}}"#.to_vec(),
            padded(MAX_PACKET),
            padded(MAX_PACKET + 1),
        ] {
            supervisor_protocol(&packet);
        }
    }

    proptest! {
        #[test]
        fn any_packet_is_a_message_or_an_error(packet: Vec<u8>) {
            supervisor_protocol(&packet);
        }

        #[test]
        fn any_text_is_a_message_or_an_error(
            packet in r#"\{"(Init|Ready|Exited|Started|BootFailed)":\{"(pid|id|end|landlock_abi|stage)":[-0-9"a-z]{0,12}\}\}"#
        ) {
            supervisor_protocol(packet.as_bytes());
        }
    }
}
