//! How much memory a sandbox uses: what `RLIMIT_DATA` cannot see is many processes, shared memory and files in memory.

use std::collections::BTreeMap;

use rustix::process::Pid;

use super::tree::{Family, read_small};

/// Memory file systems that commands can fill.
const IN_MEMORY: &[&str] = &["/tmp", "/home/agent", "/dev/shm", "/run"];

/// If the sandbox uses more than `limit` bytes: the leader whose command uses the most of it.
pub(super) fn hog(limit: u64, leaders: &[Pid]) -> Option<Pid> {
    let family = Family::read();
    let of_leader: Vec<(Pid, Vec<Pid>)> = leaders
        .iter()
        .map(|leader| (*leader, family.descendants(*leader)))
        .collect();
    let files = in_files();
    let sum = |measure: fn(Pid) -> Option<u64>| -> BTreeMap<i32, u64> {
        let total = |pids: &Vec<Pid>| pids.iter().filter_map(|pid| measure(*pid)).sum();
        of_leader
            .iter()
            .map(|(leader, pids)| (leader.as_raw_nonzero().get(), total(pids)))
            .collect()
    };
    // Cheap first: it counts pages that processes share once for each. Only if that is too much, exactly.
    if files + sum(resident).values().sum::<u64>() <= limit {
        return None;
    }
    let exact = sum(proportional);
    if files + exact.values().sum::<u64>() <= limit {
        return None;
    }
    let (leader, _) = exact.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    Pid::from_raw(leader)
}

/// Bytes in the memory file systems. Two mounts of one file system count once.
fn in_files() -> u64 {
    let mut seen = BTreeMap::new();
    for path in IN_MEMORY {
        if let Ok(stat) = rustix::fs::statvfs(*path) {
            seen.insert(stat.f_fsid, (stat.f_blocks - stat.f_bfree) * stat.f_frsize);
        }
    }
    seen.values().sum()
}

/// Anonymous and shared memory that is resident, from `status`: readable for every process.
fn resident(pid: Pid) -> Option<u64> {
    let status = read_of(pid, "status", b"RssAnon:")?;
    Some(kib_of(&status, b"RssAnon:") + kib_of(&status, b"RssShmem:"))
}

/// Each page divided by how many processes share it; `resident` for a process that hides.
fn proportional(pid: Pid) -> Option<u64> {
    match read_of(pid, "smaps_rollup", b"Pss_Anon:") {
        Some(rollup) => Some(kib_of(&rollup, b"Pss_Anon:") + kib_of(&rollup, b"Pss_Shmem:")),
        None => resident(pid),
    }
}

/// A file of a process that has the line `name`. Once the first thread of a process ended, the process's own file is
/// empty of memory, and only those of its other threads tell: a hog could hide so.
fn read_of(pid: Pid, file: &str, name: &[u8]) -> Option<Vec<u8>> {
    let process = format!("/proc/{}", pid.as_raw_nonzero());
    let has = |text: &Vec<u8>| {
        text.split(|byte| *byte == b'\n')
            .any(|line| line.starts_with(name))
    };
    read_small(&format!("{process}/{file}"))
        .filter(has)
        .or_else(|| {
            let threads = std::fs::read_dir(format!("{process}/task")).ok()?;
            threads.flatten().find_map(|thread| {
                let thread = thread.file_name();
                read_small(&format!("{process}/task/{}/{file}", thread.to_str()?)).filter(has)
            })
        })
}

/// The value of `Name:   123 kB`, in bytes; 0 when it is not there.
fn kib_of(text: &[u8], name: &[u8]) -> u64 {
    let line = text
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(name));
    let digits = line.and_then(|line| std::str::from_utf8(line).ok());
    let kib: Option<u64> =
        digits.and_then(|text| text.split_ascii_whitespace().next()?.parse().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_name() {
        let text = b"Name:\tRssAnon: 9 kB\nRssAnon:\t     120 kB\nRssShmem:\t 8 kB\n";
        assert_eq!(kib_of(text, b"RssAnon:"), 120 * 1024);
        assert_eq!(kib_of(text, b"RssShmem:"), 8 * 1024);
        assert_eq!(kib_of(text, b"RssFile:"), 0);
    }
}
