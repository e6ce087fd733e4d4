//! Builds the file view of a plan: takes what is needed of the host, lays an empty root, fills it, pivots.

use super::{
    Failure, Stage,
    kernel::{Kernel, Source},
};
use crate::plan::{Part, Plan, Step};

/// Where the new root grows: any folder that every Linux has. It is covered only in this mount namespace.
const STAGING: &str = "/tmp";
/// The root itself holds only folders and a few files.
const ROOT_OPTIONS: &str = "size=4m,mode=755";
/// An empty folder of the view, which covers folders of `/proc`: cheaper than a file system for each.
const EMPTY: &str = "/mnt";

pub(super) fn build(kernel: &mut impl Kernel, plan: &Plan) -> Result<(), Failure> {
    kernel.isolate_mounts().stage(|| "isolate mounts".into())?;
    // First take, then cover: a source may lie below the staging folder.
    let mut taken = Vec::new();
    for step in &plan.steps {
        taken.push(match source(step) {
            Some(source) => Some(
                kernel
                    .take(source.clone())
                    .stage(|| format!("open {source:?}"))?,
            ),
            None => None,
        });
    }
    kernel
        .mount("tmpfs", STAGING, ROOT_OPTIONS, true)
        .stage(|| "mount an empty root".into())?;
    for (step, taken) in plan.steps.iter().zip(taken) {
        apply(kernel, step, taken)?;
    }
    kernel.pivot(STAGING).stage(|| "enter the new root".into())
}

fn source(step: &Step) -> Option<Source> {
    match step {
        Step::Bind { source, .. } => Some(Source::ReadOnly(source.clone())),
        Step::Device { source } => Some(Source::Device(source.clone())),
        Step::Tree { tree, .. } => Some(Source::Tree(*tree)),
        _ => None,
    }
}

fn apply(kernel: &mut impl Kernel, step: &Step, taken: Option<usize>) -> Result<(), Failure> {
    let place = |target: &str| format!("{STAGING}{target}");
    let at = |what: &str, target: &str| format!("{what} {target}");
    match step {
        Step::Folder { target } => kernel.folder(&place(target)).stage(|| at("make", target)),
        Step::Link { target, points_to } => {
            parent(kernel, target)?;
            kernel
                .link(&place(target), points_to)
                .stage(|| at("link", target))
        }
        Step::File { target, content } => {
            parent(kernel, target)?;
            kernel
                .file(&place(target), content)
                .stage(|| at("write", target))
        }
        Step::Bind { target, folder, .. } => attach(kernel, taken, target, *folder),
        Step::Device { source } => attach(kernel, taken, source, false),
        Step::Tree { target, .. } => attach(kernel, taken, target, true),
        Step::Tmpfs {
            target,
            bytes,
            mode,
            exec,
        } => {
            kernel.folder(&place(target)).stage(|| at("make", target))?;
            let options = format!("size={bytes},mode={mode:o}");
            kernel
                .mount("tmpfs", &place(target), &options, *exec)
                .stage(|| at("mount a memory file system on", target))
        }
        Step::SharedTmpfs { bytes, parts } => share(kernel, *bytes, parts),
        Step::Proc => {
            kernel
                .folder(&place("/proc"))
                .stage(|| at("make", "/proc"))?;
            kernel
                .mount("proc", &place("/proc"), "", false)
                .stage(|| "mount a fresh /proc".into())
        }
        Step::DevPts => {
            kernel
                .folder(&place("/dev/pts"))
                .stage(|| at("make", "/dev/pts"))?;
            let options = "newinstance,ptmxmode=0666,mode=620";
            kernel
                .mount("devpts", &place("/dev/pts"), options, false)
                .stage(|| "mount pseudo terminals".into())
        }
        Step::Mask { target } => {
            let path = place(target);
            let cover = match kernel.is_folder(&path) {
                None => return Ok(()),
                Some(true) => Source::ReadOnly(place(EMPTY)),
                Some(false) => Source::Device(place("/dev/null")),
            };
            let at = || at("cover", target);
            let cover = kernel.take(cover).stage(at)?;
            kernel.attach(cover, &path).stage(at)
        }
    }
}

/// One file system of `bytes`, shown in parts: whatever is written where, all of it counts together.
fn share(kernel: &mut impl Kernel, bytes: u64, parts: &[Part]) -> Result<(), Failure> {
    let whole = format!("{STAGING}/mnt");
    kernel.folder(&whole).stage(|| "make /mnt".into())?;
    kernel
        .mount("tmpfs", &whole, &format!("size={bytes},mode=755"), true)
        .stage(|| "mount a memory file system".into())?;
    for (number, Part { target, mode }) in parts.iter().enumerate() {
        let at = || format!("mount a part of a memory file system on {target}");
        let part = format!("{whole}/{number}");
        kernel.folder(&part).stage(at)?;
        kernel.set_mode(&part, *mode).stage(at)?;
        let taken = kernel.take(Source::Part(part)).stage(at)?;
        kernel.folder(&format!("{STAGING}{target}")).stage(at)?;
        kernel
            .attach(taken, &format!("{STAGING}{target}"))
            .stage(at)?;
    }
    kernel
        .unmount(&whole)
        .stage(|| "hide a memory file system".into())
}

fn attach(
    kernel: &mut impl Kernel,
    taken: Option<usize>,
    target: &str,
    folder: bool,
) -> Result<(), Failure> {
    let path = format!("{STAGING}{target}");
    if folder {
        kernel.folder(&path).stage(|| format!("make {target}"))?;
    } else {
        parent(kernel, target)?;
        kernel.file(&path, "").stage(|| format!("make {target}"))?;
    }
    match taken {
        Some(taken) => kernel
            .attach(taken, &path)
            .stage(|| format!("mount {target}")),
        None => Ok(()),
    }
}

fn parent(kernel: &mut impl Kernel, target: &str) -> Result<(), Failure> {
    match target.rsplit_once('/') {
        Some((parent, _)) if !parent.is_empty() => kernel
            .folder(&format!("{STAGING}{parent}"))
            .stage(|| format!("make {parent}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::plan::{HostFacts, View, mount_steps};

    /// Writes down what it is asked for.
    #[derive(Default)]
    struct Recording {
        calls: Vec<String>,
        taken: usize,
    }

    impl Kernel for Recording {
        fn isolate_mounts(&mut self) -> io::Result<()> {
            self.calls.push("isolate".into());
            Ok(())
        }
        fn take(&mut self, source: Source) -> io::Result<usize> {
            self.calls.push(format!("take {source:?}"));
            self.taken += 1;
            Ok(self.taken - 1)
        }
        fn attach(&mut self, taken: usize, target: &str) -> io::Result<()> {
            self.calls.push(format!("attach {taken} {target}"));
            Ok(())
        }
        fn mount(
            &mut self,
            kind: &str,
            target: &str,
            options: &str,
            _exec: bool,
        ) -> io::Result<()> {
            self.calls.push(format!("mount {kind} {target} {options}"));
            Ok(())
        }
        fn folder(&mut self, _path: &str) -> io::Result<()> {
            Ok(())
        }
        fn file(&mut self, _path: &str, _content: &str) -> io::Result<()> {
            Ok(())
        }
        fn link(&mut self, _path: &str, _points_to: &str) -> io::Result<()> {
            Ok(())
        }
        fn is_folder(&mut self, path: &str) -> Option<bool> {
            match path {
                "/tmp/proc/kcore" => Some(false),
                "/tmp/proc/acpi" => Some(true),
                _ => None,
            }
        }
        fn set_mode(&mut self, _path: &str, _mode: u32) -> io::Result<()> {
            Ok(())
        }
        fn unmount(&mut self, path: &str) -> io::Result<()> {
            self.calls.push(format!("unmount {path}"));
            Ok(())
        }
        fn pivot(&mut self, path: &str) -> io::Result<()> {
            self.calls.push(format!("pivot {path}"));
            Ok(())
        }
    }

    fn calls() -> Vec<String> {
        let steps = mount_steps(
            &HostFacts::default(),
            &View {
                trees: &["/workspace".into()],
                ..View::default()
            },
        );
        let plan = Plan {
            unisolated: false,
            drop_to: None,
            trees: Vec::new(),
            steps,
            writable: Vec::new(),
            host_network: false,
            hostname: "sixb".into(),
            limits: crate::plan::Limits::new(None, None, None),
            listen: Vec::new(),
            hand_over: None,
        };
        let mut kernel = Recording::default();
        build(&mut kernel, &plan).expect("a recording never fails");
        kernel.calls
    }

    fn position(calls: &[String], call: &str) -> usize {
        calls
            .iter()
            .position(|made| made.starts_with(call))
            .unwrap_or_else(|| panic!("{call} in {calls:#?}"))
    }

    #[test]
    fn sources_are_taken_before_the_staging_folder_covers_them() {
        let calls = calls();
        assert_eq!(calls[0], "isolate");
        assert!(position(&calls, "take Tree(0)") < position(&calls, "mount tmpfs /tmp size=4m"));
        assert!(calls.last().is_some_and(|call| call == "pivot /tmp"));
    }

    #[test]
    fn secrets_of_proc_are_covered_after_proc_is_mounted() {
        let calls = calls();
        let proc = position(&calls, "mount proc /tmp/proc");
        for cover in ["/tmp/proc/acpi", "/tmp/proc/kcore"] {
            let covered = calls.iter().position(|call| call.ends_with(cover));
            assert!(covered > Some(proc), "{cover} in {calls:#?}");
        }
        assert!(calls.contains(&"take ReadOnly(\"/tmp/mnt\")".to_owned()));
    }
}
