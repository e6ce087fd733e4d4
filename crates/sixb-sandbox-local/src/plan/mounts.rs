//! The file view as a list of steps: an allow-list on an empty root.

use serde::{Deserialize, Serialize};

use super::{HOME, HostFacts, etc, facts::Entry};

/// Bytes of each writable memory file system.
const TMP_BYTES: u64 = 1 << 30;
const HOME_BYTES: u64 = 512 << 20;
const SHM_BYTES: u64 = 256 << 20;
const RUN_BYTES: u64 = 64 << 20;

/// Parts of a fresh `/proc` that tell or change something of the host; each is covered.
const MASKED: &[&str] = &[
    "/proc/acpi",
    "/proc/bus",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/fs",
    "/proc/irq",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/timer_stats",
];

/// One step. Targets are absolute guest paths; parents that do not exist are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// An empty folder.
    Folder { target: String },
    /// A symbolic link.
    Link { target: String, points_to: String },
    /// A file with this content.
    File { target: String, content: String },
    /// A host file or folder, read-only, nosuid, nodev.
    Bind {
        source: String,
        target: String,
        folder: bool,
    },
    /// A device node of the host.
    Device { source: String },
    /// Number `tree` of the plan's trees.
    Tree { tree: usize, target: String },
    /// A sized memory file system.
    Tmpfs {
        target: String,
        bytes: u64,
        mode: u32,
        exec: bool,
    },
    /// One memory file system of `bytes` that shows in parts.
    SharedTmpfs { bytes: u64, parts: Vec<Part> },
    /// A fresh `/proc` of the sandbox's own pid namespace.
    Proc,
    /// Fresh pseudo terminals.
    DevPts,
    /// Covers a file or folder of `/proc`, where it exists.
    Mask { target: String },
}

/// A part of a memory file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) target: String,
    pub(crate) mode: u32,
}

/// What differs between the file views of two sandboxes.
#[derive(Debug, Clone, Default)]
pub(crate) struct View<'a> {
    /// Host name inside.
    pub(crate) hostname: &'a str,
    /// Show the host's resolver.
    pub(crate) host_network: bool,
    /// More lines of `/etc/hosts`.
    pub(crate) hosts: &'a str,
    /// Where the plan's trees go, in order.
    pub(crate) trees: &'a [String],
    /// A working directory that lives inside, in memory.
    pub(crate) working_directory: Option<&'a str>,
    /// Bytes that all that is writable and lives in memory may take together.
    pub(crate) disk_bytes: Option<u64>,
}

/// The steps that build a view.
pub(crate) fn mount_steps(facts: &HostFacts, view: &View<'_>) -> Vec<Step> {
    let text = |path: &str| path.to_owned();
    let mut steps = Vec::new();
    for (path, entry) in &facts.system {
        steps.push(match entry {
            Entry::Link(points_to) => Step::Link {
                target: path.clone(),
                points_to: points_to.clone(),
            },
            kind => Step::Bind {
                source: path.clone(),
                target: path.clone(),
                folder: *kind == Entry::Folder,
            },
        });
    }
    let resolv_conf = if view.host_network {
        facts.resolv_conf.as_str()
    } else {
        ""
    };
    for (target, content) in etc::files(view.hostname, view.hosts, resolv_conf) {
        steps.push(Step::File {
            target: text(target),
            content,
        });
    }
    for path in [
        "/dev",
        "/var/cache",
        "/var/lib",
        "/var/log",
        "/root",
        "/mnt",
    ] {
        steps.push(Step::Folder { target: text(path) });
    }
    steps.extend(facts.devices.iter().map(|source| Step::Device {
        source: source.clone(),
    }));
    for (target, points_to) in [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
        ("/dev/ptmx", "pts/ptmx"),
        ("/var/tmp", "/tmp"),
        ("/var/run", "/run"),
        ("/etc/mtab", "/proc/self/mounts"),
    ] {
        steps.push(Step::Link {
            target: text(target),
            points_to: text(points_to),
        });
    }
    steps.push(Step::DevPts);
    steps.extend(memory_file_systems(view));
    steps.push(Step::Proc);
    steps.extend(MASKED.iter().map(|path| Step::Mask { target: text(path) }));
    // Last, so that a tree below one of the file systems above is seen.
    steps.extend(
        view.trees
            .iter()
            .enumerate()
            .map(|(tree, target)| Step::Tree {
                tree,
                target: target.clone(),
            }),
    );
    steps
}

/// What is writable and lives in memory: `/tmp`, `/run`, the home and `/dev/shm`, each with a size of its own or all
/// within one.
fn memory_file_systems(view: &View<'_>) -> Vec<Step> {
    let fixed = [
        ("/dev/shm", SHM_BYTES, 0o1777, false),
        ("/tmp", TMP_BYTES, 0o1777, true),
        ("/run", RUN_BYTES, 0o755, false),
        (HOME, HOME_BYTES, 0o700, true),
    ];
    let Some(bytes) = view.disk_bytes else {
        let steps = fixed
            .into_iter()
            .map(|(target, bytes, mode, exec)| Step::Tmpfs {
                target: target.to_owned(),
                bytes,
                mode,
                exec,
            });
        return steps.collect();
    };
    let fixed = fixed.into_iter().map(|(target, _, mode, _)| (target, mode));
    let parts = fixed.chain(view.working_directory.map(|target| (target, 0o755)));
    let parts = parts.map(|(target, mode)| Part {
        target: target.to_owned(),
        mode,
    });
    vec![Step::SharedTmpfs {
        bytes,
        parts: parts.collect(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> HostFacts {
        HostFacts {
            system: vec![
                ("/usr".into(), Entry::Folder),
                ("/bin".into(), Entry::Link("usr/bin".into())),
                ("/etc/ld.so.cache".into(), Entry::File),
            ],
            devices: vec!["/dev/null".into()],
            resolv_conf: "nameserver 192.0.2.53\n".into(),
        }
    }

    fn steps(host_network: bool) -> Vec<Step> {
        let view = View {
            hostname: "sixb",
            host_network,
            trees: &["/workspace".into()],
            ..View::default()
        };
        mount_steps(&facts(), &view)
    }

    #[test]
    fn the_view_is_an_allow_list() {
        let sources: Vec<_> = steps(false)
            .into_iter()
            .filter_map(|step| match step {
                Step::Bind { source, .. } | Step::Device { source } => Some(source),
                _ => None,
            })
            .collect();
        assert_eq!(
            sources,
            ["/usr", "/etc/ld.so.cache", "/dev/null"],
            "nothing else of the host is bound"
        );
    }

    #[test]
    fn a_link_of_the_host_stays_a_link() {
        assert!(steps(false).contains(&Step::Link {
            target: "/bin".into(),
            points_to: "usr/bin".into()
        }));
    }

    #[test]
    fn the_hosts_resolver_shows_only_with_the_hosts_network() {
        let resolver = |host_network| {
            steps(host_network).iter().any(
                |step| matches!(step, Step::File { content, .. } if content.contains("192.0.2.53")),
            )
        };
        assert!(!resolver(false));
        assert!(resolver(true));
    }

    #[test]
    fn every_tmpfs_is_sized_and_trees_come_last() {
        let steps = steps(false);
        assert!(
            steps
                .iter()
                .all(|step| !matches!(step, Step::Tmpfs { bytes: 0, .. }))
        );
        assert!(
            matches!(steps.last(), Some(Step::Tree { tree: 0, target }) if target == "/workspace")
        );
    }

    #[test]
    fn with_a_disk_limit_all_that_is_writable_shares_one_size() {
        let view = View {
            disk_bytes: Some(1 << 20),
            working_directory: Some("/workspace"),
            ..View::default()
        };
        let steps = mount_steps(&facts(), &view);
        assert!(!steps.iter().any(|step| matches!(step, Step::Tmpfs { .. })));
        let shared = steps.iter().find_map(|step| match step {
            Step::SharedTmpfs { bytes, parts } => Some((*bytes, parts)),
            _ => None,
        });
        let (bytes, parts) = shared.expect("a shared file system");
        assert_eq!(bytes, 1 << 20);
        let targets: Vec<_> = parts.iter().map(|part| part.target.as_str()).collect();
        assert_eq!(targets, ["/dev/shm", "/tmp", "/run", HOME, "/workspace"]);
    }
}
