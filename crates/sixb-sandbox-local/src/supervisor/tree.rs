//! Who descends from whom, read from `/proc`.

use std::collections::BTreeMap;

use rustix::{
    fs::{Mode, OFlags},
    process::{Pid, Signal, kill_process},
};

/// All living processes and their parents, at one moment.
pub(super) struct Family(BTreeMap<i32, i32>);

impl Family {
    /// Looks now. Zombies are left out: they are dead already.
    pub(super) fn read() -> Self {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Self(BTreeMap::new());
        };
        let parents = entries.flatten().filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let (state, parent) = parse_stat(&read_small(&format!("/proc/{pid}/stat"))?)?;
            (state != b'Z').then_some((pid, parent))
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

/// The start of a file of `/proc`, in one read.
pub(super) fn read_small(path: &str) -> Option<Vec<u8>> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = vec![0; 4096];
    let read = rustix::io::read(&file, &mut bytes).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

/// State and parent. The name in parentheses is the process's own choice: it may hold anything, also parentheses.
fn parse_stat(stat: &[u8]) -> Option<(u8, i32)> {
    let after = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = stat[after + 1..]
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty());
    let state = *fields.next()?.first()?;
    let parent = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    Some((state, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_parent() {
        for (stat, expect) in [
            (&b"7 (sh) S 3 7 7 0"[..], Some((b'S', 3))),
            (b"7 (a) R 1 (b) Z 42 7", Some((b'Z', 42))),
            (b"7 (a\n) S 5 1", Some((b'S', 5))),
            (b"7 sh S 3", None),
            (b"", None),
        ] {
            assert_eq!(
                parse_stat(stat),
                expect,
                "{:?}",
                String::from_utf8_lossy(stat)
            );
        }
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
