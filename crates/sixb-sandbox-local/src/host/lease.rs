//! Leases: who owns which sandbox, so that the leavings of a dead owner can be found and removed.
//!
//! A sandbox's folder holds `lease.json`, locked (`flock`) by the owner for as long as it lives. The kernel drops the
//! lock when the owner dies, however it dies; no process id has to be trusted for that.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::{
        fd::AsFd,
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
        },
    },
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use sixb_sandbox::SandboxRecord;

use crate::{files::remove_leavings, supervisor::SUPERVISOR_NAME};

pub(super) const PROVIDER: &str = "local";
const LEASE: &str = "lease.json";

/// What the lease file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Content {
    owner_pid: u32,
    /// Process 1 of the sandbox; 0 while it is being made.
    init_pid: i32,
    /// When that process started, in clock ticks since boot: process ids are used again.
    init_start: u64,
    boot_id: String,
    created_at: u64,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    cgroup: Option<PathBuf>,
}

/// A sandbox's folder on the host, held by this process for as long as the value lives.
#[derive(Debug)]
pub(super) struct Lease {
    id: String,
    folder: PathBuf,
    /// Taken by whoever removes the folder.
    file: Mutex<Option<File>>,
    content: Content,
}

/// The right, and the duty, to remove a sandbox's folder. The lease stays locked until that is done.
#[derive(Debug)]
pub(super) struct Leavings {
    folder: PathBuf,
    _lock: File,
}

impl Leavings {
    /// Removes the folder and gives the lease up. Blocking.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove_folder(&self.folder)
    }
}

impl Lease {
    /// Makes the folder of sandbox `id` below `state` and takes its lease.
    pub(super) fn take(
        state: &Path,
        id: &str,
        labels: BTreeMap<String, String>,
    ) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o711)
            .create(state)?;
        secure(state)?;
        // Made under another name and renamed once it is locked: no sweep ever sees it without an owner.
        let making = state.join(format!(".new-{id}"));
        DirBuilder::new().mode(0o711).create(&making)?;
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(making.join(LEASE))?;
        file.lock()?;
        let created_at = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let content = Content {
            owner_pid: std::process::id(),
            init_pid: 0,
            init_start: 0,
            boot_id: boot_id(),
            created_at,
            labels,
            cgroup: None,
        };
        let folder = state.join(id);
        fs::rename(&making, &folder)?;
        let file = Mutex::new(Some(file));
        let lease = Self {
            id: id.to_owned(),
            folder,
            file,
            content,
        };
        lease.save()?;
        Ok(lease)
    }

    /// Writes down process 1 of the sandbox, and its cgroup.
    pub(super) fn record(&mut self, init_pid: i32, cgroup: Option<&Path>) -> io::Result<()> {
        self.content.cgroup = cgroup.map(Path::to_owned);
        self.content.init_pid = init_pid;
        self.content.init_start = start_time(init_pid).unwrap_or(0);
        self.save()
    }

    fn save(&self) -> io::Result<()> {
        let bytes = serde_json::to_vec(&self.content)?;
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = file.as_ref() else {
            return Ok(());
        };
        // In place: the lock belongs to this very file. A torn write is read as a sandbox without processes, and those
        // end with their owner in any case.
        file.set_len(0)?;
        std::os::unix::fs::FileExt::write_all_at(file, &bytes, 0)
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Hands the folder over for removal; `None` when that was done before.
    pub(super) fn take_folder(&self) -> Option<Leavings> {
        let lock = self
            .file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()?;
        Some(Leavings {
            folder: self.folder.clone(),
            _lock: lock,
        })
    }
}

/// All sandboxes below `state`.
pub(super) fn list(state: &Path) -> io::Result<Vec<SandboxRecord>> {
    let mut records: Vec<_> = found(state)?
        .into_iter()
        .map(|found| found.record())
        .collect();
    records.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(records)
}

/// What a sweep removed, and what it could not.
#[derive(Debug, Default)]
pub(super) struct Swept {
    /// Ids, sorted.
    pub(super) ids: Vec<String>,
    pub(super) failed: Vec<(PathBuf, io::Error)>,
}

/// Ends and removes each sandbox whose owner is dead. One that cannot be removed does not keep the others.
pub(super) fn sweep(state: &Path) -> io::Result<Swept> {
    let mut swept = Swept::default();
    for found in found(state)? {
        // Holding the lock while removing: two sweeps do not meet.
        let Some(_lock) = &found.lock else { continue };
        found.kill();
        if let Some(cgroup) = found
            .content
            .as_ref()
            .and_then(|content| content.cgroup.as_deref())
        {
            super::cgroup::remove(cgroup);
        }
        match remove_folder(&found.folder) {
            Ok(()) => swept.ids.push(found.id),
            Err(error) => swept.failed.push((found.folder, error)),
        }
    }
    swept.ids.sort();
    Ok(swept)
}

struct Found {
    id: String,
    folder: PathBuf,
    /// Held when the owner is dead.
    lock: Option<File>,
    content: Option<Content>,
}

/// How long the making of a folder may take before it counts as a leaving.
const MAKING: Duration = Duration::from_secs(60);

/// Refuses a state folder in which somebody else could lay ready what a sweep would believe: below a shared directory
/// anybody can be first. Checks the three levels that are ours: `…/sixb/sandboxes/local`.
fn secure(state: &Path) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    for level in state.ancestors().take(3) {
        let metadata = fs::symlink_metadata(level)?;
        if metadata.uid() != own || !metadata.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} is not a folder of this user's own", level.display()),
            ));
        }
        let mode = metadata.permissions().mode();
        if mode & 0o022 != 0 {
            fs::set_permissions(level, fs::Permissions::from_mode(mode & 0o755))?;
        }
    }
    Ok(())
}

fn found(state: &Path) -> io::Result<Vec<Found>> {
    match secure(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        secure => secure?,
    }
    let entries = fs::read_dir(state)?;
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let id = name.strip_prefix(".new-").unwrap_or(&name).to_owned();
        // Only what this crate names is ever touched.
        if !id.starts_with(super::sandbox::ID_PREFIX) || !entry.file_type()?.is_dir() {
            continue;
        }
        let folder = entry.path();
        // Its owner may not have locked it yet.
        if name != id && age(&folder) < MAKING {
            continue;
        }
        let file = match OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(folder.join(LEASE))
        {
            Ok(file) => file,
            // Being made just now, or half removed: an old one is a leaving.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if age(&folder) > MAKING {
                    let lock = File::open(&folder).ok();
                    all.push(Found {
                        id,
                        folder,
                        lock,
                        content: None,
                    });
                }
                continue;
            }
            Err(_) => continue,
        };
        let content = io::read_to_string(&file)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok());
        let lock = match file.try_lock() {
            Ok(()) => Some(file),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
        };
        all.push(Found {
            id,
            folder,
            lock,
            content,
        });
    }
    Ok(all)
}

impl Found {
    fn init(&self) -> Option<i32> {
        let content = self.content.as_ref()?;
        let same = content.init_pid > 0
            && content.boot_id == boot_id()
            && start_time(content.init_pid) == Some(content.init_start)
            // Whatever a lease says: nothing else is ever killed.
            && is_supervisor(content.init_pid);
        same.then_some(content.init_pid)
    }

    fn record(&self) -> SandboxRecord {
        let content = self.content.as_ref();
        SandboxRecord::new(
            self.id.clone(),
            PROVIDER,
            content.map_or(0, |content| content.owner_pid),
            self.lock.is_none(),
            self.init().is_some(),
            content.map_or(0, |content| content.created_at),
        )
        .labels(
            content
                .map(|content| content.labels.clone())
                .unwrap_or_default(),
        )
    }

    /// Kills process 1 and waits, for at most 5 s, until it is gone.
    fn kill(&self) {
        let Some(pid) = self.init() else { return };
        let Some(pid) = rustix::process::Pid::from_raw(pid) else {
            return;
        };
        let Ok(fd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
            return;
        };
        // The id may have been used again before the descriptor was opened; from here on it cannot.
        if self.init().is_none() {
            return;
        }
        let _ = rustix::process::pidfd_send_signal(&fd, rustix::process::Signal::KILL);
        let mut fds = [rustix::event::PollFd::new(
            &fd,
            rustix::event::PollFlags::IN,
        )];
        let _ = rustix::event::poll(
            &mut fds,
            Some(&rustix::event::Timespec {
                tv_sec: 5,
                tv_nsec: 0,
            }),
        );
    }
}

fn is_supervisor(pid: i32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().as_bytes() == SUPERVISOR_NAME.to_bytes()
}

fn age(folder: &Path) -> Duration {
    let modified = fs::metadata(folder).and_then(|metadata| metadata.modified());
    modified
        .ok()
        .and_then(|modified| modified.elapsed().ok())
        .unwrap_or_default()
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// When a process started, in clock ticks since boot; `None` when it does not run (also as a zombie).
fn start_time(pid: i32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.iter().rposition(|byte| *byte == b')')?;
    let text = std::str::from_utf8(&stat[after + 1..]).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?;
    // Field 22 of the line; the state is field 3.
    let start = fields.nth(18)?.parse().ok()?;
    (state != "Z" && state != "X").then_some(start)
}

/// Removes a folder also when the guest took away permissions inside. Links are removed, not followed.
fn remove_folder(folder: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = match File::open(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        parent => parent?,
    };
    Ok(remove_leavings(parent.as_fd(), name.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("folder");
        let state = folder.path().join("sixb/sandboxes/local");
        fs::create_dir_all(&state).expect("folder");
        (folder, state)
    }

    fn swept(state: &Path) -> Vec<String> {
        let swept = sweep(state).expect("sweep");
        assert!(swept.failed.is_empty(), "{:?}", swept.failed);
        swept.ids
    }

    #[test]
    fn a_live_owner_is_left_alone_and_a_dead_one_is_swept() {
        let (_folder, state) = state();
        let lease = Lease::take(&state, "sixb-local-a", BTreeMap::new()).expect("lease");
        assert_eq!(swept(&state), Vec::<String>::new());
        assert!(list(&state).expect("list")[0].owner_alive);
        let folder = lease.folder().to_owned();
        drop(lease);
        assert!(!list(&state).expect("list")[0].owner_alive);
        assert_eq!(swept(&state), ["sixb-local-a"]);
        assert!(!folder.exists());
    }

    #[test]
    fn what_is_being_made_has_no_owner_yet_and_is_left_alone() {
        let (_folder, state) = state();
        let making = state.join(".new-sixb-local-b");
        fs::create_dir(&making).expect("folder");
        fs::write(making.join(LEASE), "").expect("a lease that nobody locked yet");
        assert_eq!(swept(&state), Vec::<String>::new());
        let long_ago = SystemTime::now() - 2 * MAKING;
        File::open(&making)
            .and_then(|folder| folder.set_modified(long_ago))
            .expect("aged");
        assert_eq!(swept(&state), ["sixb-local-b"]);
    }

    #[test]
    fn folders_without_permissions_are_removed_and_links_are_not_followed() {
        let outside = tempfile::tempdir().expect("folder");
        fs::write(outside.path().join("keep"), "x").expect("file");
        let (_folder, state) = state();
        let folder = state.join("f");
        fs::create_dir_all(folder.join("locked/in")).expect("folder");
        std::os::unix::fs::symlink(outside.path(), folder.join("locked/link")).expect("link");
        fs::set_permissions(folder.join("locked"), fs::Permissions::from_mode(0o000))
            .expect("mode");
        remove_folder(&folder).expect("removed");
        assert!(!folder.exists() && outside.path().join("keep").exists());
    }

    #[test]
    fn foreign_folders_are_never_touched() {
        let (_folder, state) = state();
        fs::create_dir(state.join("precious")).expect("folder");
        assert!(swept(&state).is_empty());
        assert!(state.join("precious").exists());
    }

    #[test]
    fn a_planted_lease_kills_nobody() {
        let (_folder, state) = state();
        let mut victim = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .expect("a process");
        let pid = i32::try_from(victim.id()).expect("a pid");
        let content = Content {
            owner_pid: 1,
            init_pid: pid,
            init_start: start_time(pid).expect("it runs"),
            boot_id: boot_id(),
            created_at: 0,
            labels: BTreeMap::new(),
            cgroup: None,
        };
        let planted = state.join("sixb-local-evil");
        fs::create_dir(&planted).expect("folder");
        fs::write(
            planted.join(LEASE),
            serde_json::to_vec(&content).expect("json"),
        )
        .expect("file");
        assert_eq!(swept(&state), ["sixb-local-evil"]);
        assert!(matches!(victim.try_wait(), Ok(None)), "it still runs");
        victim.kill().and_then(|()| victim.wait()).expect("ended");
    }

    #[test]
    fn a_state_folder_that_is_not_ours_alone_is_refused_or_closed() {
        let (folder, state) = state();
        let top = folder.path().join("sixb");
        fs::set_permissions(&top, fs::Permissions::from_mode(0o777)).expect("mode");
        assert!(list(&state).expect("list").is_empty());
        let mode = fs::metadata(&top).expect("folder").permissions().mode();
        assert_eq!(mode & 0o022, 0, "others can write no more");
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&top, &elsewhere).expect("renamed");
        std::os::unix::fs::symlink(&elsewhere, &top).expect("link");
        let error = list(&state).expect_err("a link").to_string();
        assert!(error.contains("own"), "{error}");
    }
}
