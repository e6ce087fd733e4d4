//! What the suite itself does on the host: folders with a file in them, its own memory, its own processes.
#![expect(
    clippy::disallowed_methods,
    reason = "the suite looks from outside at what a sandbox did to the host"
)]

use std::{fs, path::Path, process::Command};

/// A new folder that any user may change, with one file.
#[derive(Debug)]
pub(super) struct Folder(tempfile::TempDir);

impl Folder {
    pub(super) fn with(name: &str, contents: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(name), contents).expect("a file");
        #[cfg(unix)]
        {
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
            fs::set_permissions(folder.path(), open).expect("mode of the folder");
        }
        Self(folder)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn text(&self) -> &str {
        self.0.path().to_str().expect("a path of text")
    }

    /// The contents of a file.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.path().join(name)).ok()
    }

    /// The names in it, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("list").flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// The most memory this process ever had, in bytes.
pub(super) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc/self/status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("VmHWM");
    line.trim()
        .trim_end_matches(" kB")
        .parse::<u64>()
        .expect("a number of KiB")
        << 10
}

/// This test binary, again.
pub(super) fn this_binary() -> Command {
    Command::new(std::env::current_exe().expect("the path of this test binary"))
}

/// Whether a process of this host has `mark` in its command line. Sees into namespaces, not into virtual machines, whose
/// processes end with them.
pub(super) fn runs(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .map(|process| fs::read(process.path().join("cmdline")))
        .any(|line| line.is_ok_and(|line| memchr::memmem::find(&line, mark.as_bytes()).is_some()))
}
