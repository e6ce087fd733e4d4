//! Who descends from whom, read from `/proc`.

use std::collections::BTreeMap;

use rustix::process::{Pid, Signal, kill_process};

/// Kills everything below `leader`, but not itself. One round: what was born meanwhile falls in the next.
pub(super) fn kill_descendants(leader: Pid) {
    let family = parents();
    let mut dead = vec![leader.as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(parent) = dead.get(next).copied() {
        next += 1;
        dead.extend(
            family
                .iter()
                .filter(|(_, of)| **of == parent)
                .map(|(pid, _)| *pid),
        );
        if dead.len() > family.len() + 1 {
            break;
        }
    }
    // First stop all, so that none can fork while the others die.
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in &dead[1..] {
            if let Some(pid) = Pid::from_raw(*pid) {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// The direct children of a process.
pub(super) fn children_of(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().get();
    parents()
        .into_iter()
        .filter(|(_, of)| *of == parent)
        .filter_map(|(pid, _)| Pid::from_raw(pid))
        .collect()
}

/// Process → parent, without zombies: they are dead already.
fn parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read(entry.path().join("stat")).ok()?;
            let (state, parent) = parse_stat(&stat)?;
            (state != b'Z').then_some((pid, parent))
        })
        .collect()
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
}
