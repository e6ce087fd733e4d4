//! The syscall seam of the file view: what a step needs of the kernel, for real.

use std::{
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    },
};

use rustix::{
    fs::CWD,
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags, mount, mount_change,
        move_mount, unmount,
    },
};

use super::trees::{NODEV, NOSUID, RDONLY, clone_path, set_attributes};

/// A mount to attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// A host file or folder, read-only, nosuid, nodev.
    ReadOnly(String),
    /// A device node of the host.
    Device(String),
    /// A tree that was cloned before.
    Tree(usize),
    /// A folder of a file system that was mounted before: nosuid, nodev.
    Part(String),
}

/// What building a file view needs of the kernel. Paths are absolute in the current root.
pub(super) trait Kernel {
    /// Keeps mounts made from now on inside this namespace.
    fn isolate_mounts(&mut self) -> io::Result<()>;
    /// Takes a detached copy of a source, to attach later.
    fn take(&mut self, source: Source) -> io::Result<usize>;
    /// Attaches what was taken.
    fn attach(&mut self, taken: usize, target: &str) -> io::Result<()>;
    /// Mounts a new file system.
    fn mount(&mut self, kind: &str, target: &str, options: &str, exec: bool) -> io::Result<()>;
    /// Makes a folder and its parents.
    fn folder(&mut self, path: &str) -> io::Result<()>;
    /// Makes a file.
    fn file(&mut self, path: &str, content: &str) -> io::Result<()>;
    /// Makes a link.
    fn link(&mut self, path: &str, points_to: &str) -> io::Result<()>;
    /// Whether `path` is a folder; `None` when nothing is there.
    fn is_folder(&mut self, path: &str) -> Option<bool>;
    /// Sets the permissions of a folder.
    fn set_mode(&mut self, path: &str, mode: u32) -> io::Result<()>;
    /// Takes a mount away; what was taken from it stays.
    fn unmount(&mut self, path: &str) -> io::Result<()>;
    /// Makes `path` the root, forgets the old one, and makes the new one read-only.
    fn pivot(&mut self, path: &str) -> io::Result<()>;
}

/// The real kernel.
pub(super) struct Linux {
    trees: Vec<Option<OwnedFd>>,
    taken: Vec<Option<OwnedFd>>,
}

impl Linux {
    pub(super) fn new(trees: Vec<OwnedFd>) -> Self {
        Self {
            trees: trees.into_iter().map(Some).collect(),
            taken: Vec::new(),
        }
    }
}

impl Kernel for Linux {
    fn isolate_mounts(&mut self) -> io::Result<()> {
        Ok(mount_change(
            "/",
            MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
        )?)
    }

    fn take(&mut self, source: Source) -> io::Result<usize> {
        let mount = match source {
            Source::ReadOnly(path) => {
                let mount = clone_path(&path, true)?;
                set_attributes(mount.as_fd(), RDONLY | NOSUID | NODEV, None)?;
                mount
            }
            Source::Device(path) => {
                let mount = clone_path(&path, false)?;
                set_attributes(mount.as_fd(), NOSUID, None)?;
                mount
            }
            Source::Part(path) => {
                let mount = clone_path(&path, false)?;
                set_attributes(mount.as_fd(), NOSUID | NODEV, None)?;
                mount
            }
            Source::Tree(number) => {
                let tree = self.trees.get_mut(number).and_then(Option::take);
                tree.ok_or(io::ErrorKind::NotFound)?
            }
        };
        self.taken.push(Some(mount));
        Ok(self.taken.len() - 1)
    }

    fn attach(&mut self, taken: usize, target: &str) -> io::Result<()> {
        let mount = self
            .taken
            .get_mut(taken)
            .and_then(Option::take)
            .ok_or(io::ErrorKind::NotFound)?;
        Ok(move_mount(
            mount,
            "",
            CWD,
            target,
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH,
        )?)
    }

    fn mount(&mut self, kind: &str, target: &str, options: &str, exec: bool) -> io::Result<()> {
        let noexec = if exec {
            MountFlags::empty()
        } else {
            MountFlags::NOEXEC
        };
        let options = std::ffi::CString::new(options)?;
        // devpts holds device nodes.
        let nodev = if kind == "devpts" {
            MountFlags::empty()
        } else {
            MountFlags::NODEV
        };
        Ok(mount(
            kind,
            target,
            kind,
            MountFlags::NOSUID | nodev | noexec,
            options.as_c_str(),
        )?)
    }

    fn folder(&mut self, path: &str) -> io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(path)
    }

    fn file(&mut self, path: &str, content: &str) -> io::Result<()> {
        fs::write(path, content)
    }

    fn link(&mut self, path: &str, points_to: &str) -> io::Result<()> {
        symlink(points_to, path)
    }

    fn is_folder(&mut self, path: &str) -> Option<bool> {
        Some(fs::symlink_metadata(path).ok()?.is_dir())
    }

    fn set_mode(&mut self, path: &str, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    fn unmount(&mut self, path: &str) -> io::Result<()> {
        Ok(unmount(path, UnmountFlags::DETACH)?)
    }

    fn pivot(&mut self, path: &str) -> io::Result<()> {
        rustix::process::chdir(path)?;
        rustix::process::pivot_root(".", ".")?;
        // The old root is now mounted over the new one, at the same place.
        unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")?;
        let root = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY;
        Ok(rustix::mount::mount_remount("/", root, c"")?)
    }
}
