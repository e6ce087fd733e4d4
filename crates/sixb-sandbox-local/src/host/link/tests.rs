//! A supervisor that is taken over sits at the other end: the host gives the sandbox up, and loses nothing else.

use std::{io::IoSlice, mem::MaybeUninit};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};

use super::*;
use crate::protocol::MAX_PACKET;

/// The host's side, and the socket of a supervisor that says what a test wants.
fn pair() -> (Arc<Link>, OwnedFd) {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (host, supervisor) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket pair");
    // SAFETY: the descriptor is open for as long as the `AsyncFd` owns it.
    let control = unsafe { AsyncFd::register(host) }.expect("a reactor");
    (Link::new(control), supervisor)
}

fn request() -> RunRequest {
    RunRequest {
        argv: vec!["true".into()],
        env: Vec::new(),
        cwd: "/".into(),
        deadline_ms: None,
        tell_started: false,
    }
}

/// A command that the host has asked for.
async fn asked(link: &Link) -> (u64, mpsc::Receiver<Event>) {
    let null = || OwnedFd::from(std::fs::File::open("/dev/null").expect("null"));
    let stdio = [null(), null(), null()];
    link.run(&request(), stdio).await.expect("sent")
}

fn say(supervisor: &OwnedFd, packet: &[u8]) -> bool {
    rustix::net::send(
        supervisor,
        packet,
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    )
    .is_ok()
}

fn say_with_fds(supervisor: &OwnedFd, packet: &[u8], count: usize) {
    let fd = std::fs::File::open("/dev/null").expect("null");
    let fds = vec![fd.as_fd(); count];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    sendmsg(
        supervisor,
        &[IoSlice::new(packet)],
        &mut control,
        SendFlags::NOSIGNAL,
    )
    .expect("sent");
}

fn exited(id: u64) -> Vec<u8> {
    format!(r#"{{"Exited":{{"id":{id},"end":{{"Code":0}},"killed":null}}}}"#).into_bytes()
}

const PATIENCE: Duration = Duration::from_secs(5);

async fn gives_up(link: &Link, events: &mut mpsc::Receiver<Event>, why: &str) {
    tokio::time::timeout(PATIENCE, link.gone().cancelled())
        .await
        .unwrap_or_else(|_| panic!("{why}: the sandbox is given up"));
    // Whoever waits is told.
    assert!(events.recv().await.is_none(), "{why}");
}

#[tokio::test]
async fn what_is_no_message_ends_the_sandbox() {
    let long = [b' '; MAX_PACKET + 1];
    let mut padded = exited(1);
    padded.resize(MAX_PACKET + 1, b' ');
    let nested = b"[".repeat(MAX_PACKET);
    let cases: [(&str, &[u8]); 10] = [
        ("garbage", b"\x00\xff\x1b[2J"),
        ("nothing", b""),
        ("an object of nothing", b"{}"),
        ("too long", &long),
        ("a message that is too long", &padded),
        ("deep nesting", &nested),
        (
            "a number that is too large",
            br#"{"Started":{"id":99999999999999999999}}"#,
        ),
        (
            "two messages",
            br#"{"Started":{"id":1}}{"Started":{"id":1}}"#,
        ),
        ("a message of the host's", br#"{"Run":{"id":1}}"#),
        ("a message of the boot", br#"{"Ready":{"landlock_abi":6}}"#),
    ];
    for (why, packet) in cases {
        let (link, supervisor) = pair();
        let (_, mut events) = asked(&link).await;
        assert!(say(&supervisor, packet), "{why}");
        gives_up(&link, &mut events, why).await;
    }
}

#[tokio::test]
async fn a_flood_of_good_messages_ends_the_sandbox_too() {
    let (link, supervisor) = pair();
    let (id, mut events) = asked(&link).await;
    // Of commands that nobody asked for, as fast as it can, on a thread of its own.
    let flooding = std::thread::spawn(move || {
        let mut sent = 0_u64;
        while sent < 1_000_000 {
            match rustix::net::send(&supervisor, &exited(id + 1000), SendFlags::NOSIGNAL) {
                Ok(_) => sent += 1,
                Err(rustix::io::Errno::AGAIN) => std::thread::yield_now(),
                // The host hung up.
                Err(_) => break,
            }
        }
        sent
    });
    // One thread runs the host here: it still gets to other work.
    tokio::time::timeout(PATIENCE, async {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .expect("the host is not kept busy");
    gives_up(&link, &mut events, "a flood").await;
    drop(link);
    let sent = flooding.join().expect("the flood");
    assert!(sent < 1_000_000, "the host hung up");
}

#[tokio::test]
async fn each_command_may_be_told_of_twice_and_no_more() {
    let (link, supervisor) = pair();
    let (id, mut events) = asked(&link).await;
    let started = format!(r#"{{"Started":{{"id":{id}}}}}"#);
    assert!(say(&supervisor, started.as_bytes()) && say(&supervisor, &exited(id)));
    assert!(matches!(events.recv().await, Some(Event::Started)));
    assert!(matches!(events.recv().await, Some(Event::Exited { .. })));
    assert!(!link.gone().is_cancelled());
    assert!(say(&supervisor, &exited(id)));
    gives_up(&link, &mut events, "a third message").await;
}

#[tokio::test]
async fn answers_for_others_reach_nobody() {
    let (link, supervisor) = pair();
    let (_, mut first) = asked(&link).await;
    let (second, mut events) = asked(&link).await;
    for id in [0, second + 1, u64::MAX] {
        assert!(say(&supervisor, &exited(id)));
    }
    assert!(say(&supervisor, &exited(second)));
    assert!(matches!(events.recv().await, Some(Event::Exited { .. })));
    assert!(first.try_recv().is_err(), "the first goes on");
}

#[tokio::test]
async fn descriptors_that_nobody_asked_for_are_closed() {
    let (link, supervisor) = pair();
    let (id, mut events) = asked(&link).await;
    // A pipe whose writer is handed over: its reader sees the end once nobody holds a copy.
    let (reader, writer) = rustix::pipe::pipe_with(
        rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK,
    )
    .expect("pipe");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [writer.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    let message = exited(id);
    let packet = [IoSlice::new(&message)];
    sendmsg(&supervisor, &packet, &mut control, SendFlags::NOSIGNAL).expect("sent");
    drop(writer);
    assert!(matches!(events.recv().await, Some(Event::Exited { .. })));
    assert_eq!(rustix::io::read(&reader, &mut [0_u8; 1]), Ok(0));
}

#[tokio::test]
async fn more_descriptors_than_fit_end_the_sandbox() {
    let (link, supervisor) = pair();
    let (id, mut events) = asked(&link).await;
    say_with_fds(&supervisor, &exited(id), 253);
    gives_up(&link, &mut events, "253 descriptors").await;
}

#[tokio::test(start_paused = true)]
async fn one_that_takes_no_requests_holds_nobody_up() {
    let (link, _supervisor) = pair();
    let mut sent = 0;
    loop {
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").expect("null"));
        match link.run(&request(), [null(), null(), null()]).await {
            Ok(_) => sent += 1,
            Err(error) => {
                assert_eq!(
                    error.kind(),
                    io::ErrorKind::TimedOut,
                    "after {sent} requests"
                );
                break;
            }
        }
        assert!(sent < 100_000, "the socket takes only so much");
    }
}
