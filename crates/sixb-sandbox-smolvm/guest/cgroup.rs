//! Control groups: one for all commands, which holds the bounds, and one for each, which ends it with all it started.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

const ROOT: &str = "/sys/fs/cgroup";
/// Kept for this program and the kernel, so that the machine answers when commands took all memory.
const RESERVE: u64 = 40 << 20;

pub(crate) struct Parent {
    folder: PathBuf,
    next: AtomicU64,
    left: Left,
}

/// Groups with processes that outlived their command.
type Left = Arc<Mutex<Vec<PathBuf>>>;

impl Parent {
    /// `memory` in bytes, `pids` a count, `cpu` in thousandths of a core; `-` = unbounded.
    pub(crate) fn make(memory: &str, pids: &str, cpu: &str) -> io::Result<Self> {
        let folder = Path::new(ROOT).join("sixb");
        let controllers = "+memory +pids +cpu";
        fs::write(Path::new(ROOT).join("cgroup.subtree_control"), controllers)?;
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("cgroup.subtree_control"), controllers)?;
        let bound = memory.parse().unwrap_or(u64::MAX).min(available()?);
        fs::write(folder.join("memory.max"), bound.to_string())?;
        let _ = fs::write(folder.join("memory.swap.max"), "0");
        if pids != "-" {
            fs::write(folder.join("pids.max"), pids)?;
        }
        if let Ok(millis) = cpu.parse::<u64>() {
            fs::write(folder.join("cpu.max"), format!("{} 100000", millis * 100))?;
        }
        Ok(Self {
            folder,
            next: AtomicU64::new(0),
            left: Left::default(),
        })
    }

    /// A group for one command. Groups that outlived their command go once their last process did.
    pub(crate) fn child(&self) -> io::Result<Group> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
        drop(left);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(format!("c{number}"));
        fs::create_dir(&folder)?;
        Ok(Group {
            folder,
            left: self.left.clone(),
        })
    }
}

/// Enters a group with the process that calls.
pub(crate) fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// A group for what may wait: it runs when nothing else wants to.
pub(crate) fn idle() -> io::Result<PathBuf> {
    let folder = Path::new(ROOT).join("sixb-idle");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("cpu.idle"), "1")?;
    Ok(folder)
}

fn available() -> io::Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .ok_or_else(|| io::Error::other("no MemTotal in /proc/meminfo"))?;
    Ok((kib * 1024).saturating_sub(RESERVE))
}

/// The group of one command.
pub(crate) struct Group {
    pub(crate) folder: PathBuf,
    left: Left,
}

impl Group {
    /// Kills all that is in it, however it detached itself.
    pub(crate) fn kill(&self) {
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
    }

    /// Whether a process is left in it.
    pub(crate) fn populated(&self) -> bool {
        fs::read_to_string(self.folder.join("cgroup.events"))
            .map(|text| text.contains("populated 1"))
            .unwrap_or(false)
    }

    /// How many processes the memory bound killed.
    pub(crate) fn oom_kills(&self) -> u64 {
        fs::read_to_string(self.folder.join("memory.events"))
            .ok()
            .and_then(|text| {
                text.lines()
                    .find_map(|line| line.strip_prefix("oom_kill "))
                    .and_then(|count| count.trim().parse().ok())
            })
            .unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if fs::remove_dir(&self.folder).is_err() {
            let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
            left.push(self.folder.clone());
        }
    }
}
