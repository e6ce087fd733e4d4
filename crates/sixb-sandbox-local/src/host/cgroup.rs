//! The first rung of the limits: a cgroup (version 2) of the sandbox's own, where one was delegated to this process.
//!
//! Delegated means: a folder of the cgroup file system in which this user may make folders, whose controllers are on for
//! its children. Where nothing is delegated this rung does not exist; version 1 is not used.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::fs::Access;

/// The period in which processor time is counted, in microseconds (the kernel's own default).
const PERIOD_US: u64 = 100_000;
const CONTROLLERS: [&str; 2] = ["cpu", "memory"];

/// A folder below which sandboxes get cgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delegated {
    folder: PathBuf,
}

/// What one cgroup bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) memory_bytes: Option<u64>,
    pub(super) cpus: Option<f64>,
}

impl Delegated {
    /// The folder that the operator named, or this process's own cgroup, if it can be used.
    pub(super) fn find(named: Option<&Path>) -> Option<Self> {
        let folder = match named {
            Some(named) => named.to_owned(),
            None => {
                let own = fs::read_to_string("/proc/self/cgroup").ok()?;
                let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
                own_folder(&own, &mounts)?
            }
        };
        Self::usable(&folder).then_some(Self { folder })
    }

    fn usable(folder: &Path) -> bool {
        let writable = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
        let has_all = |file: &str| {
            let listed = fs::read_to_string(folder.join(file)).unwrap_or_default();
            CONTROLLERS.iter().all(|controller| {
                listed
                    .split_ascii_whitespace()
                    .any(|word| word == *controller)
            })
        };
        if !writable(folder)
            || !writable(&folder.join("cgroup.procs"))
            || !has_all("cgroup.controllers")
        {
            return false;
        }
        // The kernel refuses this while processes are in the folder itself: then it was not laid out for children.
        has_all("cgroup.subtree_control")
            || (fs::write(folder.join("cgroup.subtree_control"), "+cpu +memory").is_ok()
                && has_all("cgroup.subtree_control"))
    }

    /// Makes the cgroup of sandbox `id`, still empty.
    pub(super) fn make(&self, id: &str, bounds: &Bounds) -> io::Result<Cgroup> {
        let cgroup = Cgroup {
            folder: self.folder.join(id),
        };
        fs::create_dir(&cgroup.folder)?;
        for (file, value) in settings(bounds) {
            match fs::write(cgroup.folder.join(file), &value) {
                // Kernels without swap accounting do not have the file.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound && file == "memory.swap.max" => {}
                result => result?,
            }
        }
        Ok(cgroup)
    }
}

/// The cgroup of one sandbox. Removed when dropped: by then its processes are gone.
#[derive(Debug)]
pub(super) struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Puts a process, and all that it will start, under the bounds.
    pub(super) fn enter(&self, pid: i32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many processes the memory limit has killed so far.
    pub(super) fn memory_kills(&self) -> u64 {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        memory_kills(&events)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes a cgroup, which the kernel may still be emptying for a moment.
pub(super) fn remove(folder: &Path) {
    for _ in 0..50 {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            _ => return,
        }
    }
    tracing::warn!(folder = %folder.display(), "the cgroup of a sandbox was not removed");
}

fn settings(bounds: &Bounds) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    if let Some(bytes) = bounds.memory_bytes {
        settings.push(("memory.max", bytes.to_string()));
        // Swap would be a second helping.
        settings.push(("memory.swap.max", "0".to_owned()));
    }
    if let Some(cpus) = bounds.cpus {
        let quota = (cpus * PERIOD_US as f64).ceil().max(1000.0) as u64;
        settings.push(("cpu.max", format!("{quota} {PERIOD_US}")));
    }
    settings
}

/// The folder of this process's own cgroup, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn own_folder(own: &str, mountinfo: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mountinfo.lines().find(|line| {
        line.split_once(" - ")
            .is_some_and(|(_, end)| end.starts_with("cgroup2 "))
    })?;
    let mut fields = mount.split(' ');
    let (root, target) = (fields.nth(3)?, fields.next()?);
    let below = path.strip_prefix(root.trim_end_matches('/'))?;
    Some(Path::new(target).join(below.trim_start_matches('/')))
}

fn memory_kills(events: &str) -> u64 {
    let line = events
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found_where_it_is_mounted() {
        let mounts = "24 1 0:22 / /sys rw - sysfs sysfs rw\n\
                      30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let inner = "30 24 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        for (own, mounts, expect) in [
            (
                "0::/user.slice/app\n",
                mounts,
                Some("/sys/fs/cgroup/user.slice/app"),
            ),
            ("12:pids:/a\n0::/\n", mounts, Some("/sys/fs/cgroup")),
            ("0::/docker/x/y\n", inner, Some("/sys/fs/cgroup/y")),
            ("0::/elsewhere\n", inner, None),
            ("12:pids:/a\n", mounts, None),
            ("0::/a\n", "24 1 0:22 / /sys rw - sysfs sysfs rw\n", None),
        ] {
            assert_eq!(
                own_folder(own, mounts).as_deref(),
                expect.map(Path::new),
                "{own:?}"
            );
        }
    }

    #[test]
    fn bounds_become_settings() {
        let bounds = Bounds {
            memory_bytes: Some(1 << 20),
            cpus: Some(0.5),
        };
        let settings = settings(&bounds);
        let expect = [
            ("memory.max", "1048576"),
            ("memory.swap.max", "0"),
            ("cpu.max", "50000 100000"),
        ];
        assert_eq!(
            settings
                .iter()
                .map(|(file, value)| (*file, value.as_str()))
                .collect::<Vec<_>>(),
            expect
        );
    }

    #[test]
    fn only_a_folder_laid_out_for_children_is_used() {
        let folder = tempfile::tempdir().expect("folder");
        let write =
            |file: &str, text: &str| fs::write(folder.path().join(file), text).expect("file");
        assert_eq!(
            Delegated::find(Some(folder.path())),
            None,
            "no cgroup at all"
        );
        write("cgroup.procs", "");
        write("cgroup.controllers", "cpuset cpu io memory pids\n");
        write("cgroup.subtree_control", "cpu memory pids\n");
        let delegated = Delegated::find(Some(folder.path())).expect("usable");
        let cgroup = delegated
            .make(
                "sixb-local-x",
                &Bounds {
                    memory_bytes: Some(3),
                    ..Bounds::default()
                },
            )
            .expect("made");
        cgroup.enter(42).expect("entered");
        assert_eq!(
            fs::read_to_string(cgroup.folder().join("memory.max")).expect("setting"),
            "3"
        );
        assert_eq!(
            fs::read_to_string(cgroup.folder().join("cgroup.procs")).expect("process"),
            "42"
        );
        write("cgroup.controllers", "cpu pids\n");
        assert_eq!(
            Delegated::find(Some(folder.path())),
            None,
            "memory is missing"
        );
    }

    #[test]
    fn kills_are_counted_by_name() {
        assert_eq!(
            memory_kills("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"),
            2
        );
        assert_eq!(memory_kills(""), 0);
    }
}
