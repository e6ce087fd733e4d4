//! Who descends from whom, read from `/proc`.

use std::collections::BTreeMap;

use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process},
};

/// Processes from which on a sandbox is crowded.
const CROWD: usize = 64;

/// All living processes and their parents, at one moment.
pub(super) struct Family(BTreeMap<i32, i32>);

impl Family {
    /// Looks now. The dead are left out.
    pub(super) fn read() -> Self {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Self(BTreeMap::new());
        };
        let parents = entries.flatten().filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = parse_stat(&read_small(&format!("/proc/{pid}/stat"))?)?;
            stat.alive.then_some((pid, stat.parent))
        });
        Self(parents.collect())
    }

    /// Everything below `top`, which is not included.
    pub(super) fn descendants(&self, top: Pid) -> Vec<Pid> {
        let mut below = vec![top.as_raw_nonzero().get()];
        let mut next = 0;
        while let Some(parent) = below.get(next).copied() {
            next += 1;
            below.extend(
                self.0
                    .iter()
                    .filter(|(_, of)| **of == parent)
                    .map(|(pid, _)| *pid),
            );
            // A picture taken while processes die and are born may hold a loop.
            if below.len() > self.0.len() + 1 {
                break;
            }
        }
        below[1..]
            .iter()
            .filter_map(|pid| Pid::from_raw(*pid))
            .collect()
    }

    /// The direct children of `parent`.
    pub(super) fn children(&self, parent: Pid) -> Vec<Pid> {
        let parent = parent.as_raw_nonzero().get();
        let children = self.0.iter().filter(|(_, of)| **of == parent);
        children
            .filter_map(|(pid, _)| Pid::from_raw(*pid))
            .collect()
    }
}

/// Kills everything below `leader`, but not itself. One round: what was born meanwhile falls in the next.
pub(super) fn kill_descendants(leader: Pid) {
    let below = Family::read().descendants(leader);
    // First stop all, so that none can fork while the others die.
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in &below {
            let _ = kill_process(*pid, signal);
        }
    }
}

/// Kills what forks faster than rounds of killing can follow: stops the whole sandbox, so that nothing is born, kills all
/// that `wanted` picks until none is left, and lets the rest go on.
///
/// The kernel gives a signal to all processes in one piece: a fork happens before it, and the child is stopped too, or
/// after it, and does not happen.
pub(super) fn kill_frozen(wanted: impl Fn(&Family) -> Vec<Pid>) {
    signal_all(libc::SIGSTOP);
    // One picture may miss who is just handed over by a parent on its way out: three do not.
    let mut clear = 0;
    for _ in 0..50 {
        let doomed = wanted(&Family::read());
        clear = if doomed.is_empty() { clear + 1 } else { 0 };
        if clear == 3 {
            break;
        }
        for pid in doomed {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    signal_all(libc::SIGCONT);
}

/// Kills everything below this process, for at most some seconds: at the end of a sandbox without a pid namespace.
pub(super) fn kill_everything_below() {
    for _ in 0..1000 {
        let me = rustix::process::getpid();
        if Family::read().descendants(me).is_empty() {
            return;
        }
        kill_descendants(me);
        while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// So many processes that looking at each takes long, above all while they all want the processor.
pub(super) fn is_crowded() -> bool {
    std::fs::read_dir("/proc").is_ok_and(|entries| {
        let pids = entries.flatten().filter(|entry| {
            let name = entry.file_name();
            name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
        });
        pids.count() > CROWD
    })
}

/// Signals every process of the sandbox but this one. Without a pid namespace there is no such call: -1 would be the
/// user's whole session.
fn signal_all(signal: libc::c_int) {
    if !rustix::process::getpid().is_init() {
        return;
    }
    // SAFETY: plain numbers. From process 1, -1 means the whole pid namespace and nothing outside of it.
    unsafe { libc::kill(-1, signal) };
}

/// The start of a file of `/proc`, in one read.
pub(super) fn read_small(path: &str) -> Option<Vec<u8>> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = vec![0; 4096];
    let read = rustix::io::read(&file, &mut bytes).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

/// What the kernel says of a process.
#[derive(Debug, PartialEq)]
struct Stat {
    alive: bool,
    parent: i32,
}

/// Reads a line of `stat`. The name in parentheses is the process's own choice: it may hold anything, also parentheses.
fn parse_stat(stat: &[u8]) -> Option<Stat> {
    let after = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[after + 1..])
        .ok()?
        .split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // A process whose first thread ended looks like a zombie, but its other threads run on.
    let threads: u64 = fields.nth(15)?.parse().ok()?;
    Some(Stat {
        alive: state != "Z" && state != "X" || threads > 1,
        parent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_parent() {
        let rest = "0 0 0 0 0 0 0 0 0 0 0 0 0 20 0";
        for (start, threads, expect) in [
            ("7 (sh) S 3", 1, Some((true, 3))),
            ("7 (a) R 1 (b) Z 42", 1, Some((false, 42))),
            ("7 (a\n) S 5", 1, Some((true, 5))),
            ("7 (first thread ended) Z 5", 2, Some((true, 5))),
            ("7 sh S 3", 1, None),
        ] {
            let line = format!("{start} {rest} {threads} 0 99");
            let expect = expect.map(|(alive, parent)| Stat { alive, parent });
            assert_eq!(parse_stat(line.as_bytes()), expect, "{line}");
        }
        assert_eq!(parse_stat(b""), None);
    }

    #[test]
    fn descendants_are_found_through_the_dead_and_loops_end() {
        let pid = |raw: i32| Pid::from_raw(raw).expect("pid");
        let family = Family([(2, 1), (3, 2), (4, 3), (5, 1), (7, 8), (8, 7)].into());
        assert_eq!(family.descendants(pid(2)), [pid(3), pid(4)]);
        assert_eq!(family.children(pid(1)), [pid(2), pid(5)]);
        assert!(family.descendants(pid(7)).len() <= 7);
    }
}
