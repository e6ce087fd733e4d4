//! The outer machine: QEMU without KVM, but with a processor that has nested virtualisation, so that microVMs boot in it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Binaries, Lab, command, emulator, fetch, must};
use crate::job::Job;

/// In the order that they need each other.
const MODULES: &[&str] = &[
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "virtio_blk",
    "crc32c-intel",
    "jbd2",
    "mbcache",
    "crc16",
    "ext4",
    "irqbypass",
    "kvm",
    "ccp",
    "kvm-amd",
    "fuse",
    "loop",
    "tun",
    "overlay",
];
/// Programs of this machine that the outer one needs, with their libraries.
const PROGRAMS: &[&str] = &["/bin/bash", "/usr/bin/curl", "/usr/sbin/mke2fs"];
/// The whole lab on two quiet cores takes some ten minutes; busy ones take longer, a hang for ever.
const DEADLINE_SECONDS: &str = "1500";
/// With nested virtualisation, and without what costs emulation much and gives nothing here.
const CPU: &str = "EPYC-Milan,+svm,+npt";
const UP: &str = "sixb-lab up";

/// Where things lie in the outer machine: as `sixb sandbox install` and `cargo xtask agent-image` place them.
const SMOLVM: &str = "root/.local/share/sixb/smolvm/1.32.2";
const IMAGE: &str = "root/.cache/sixb/smolvm/agent-image";

/// Mounts the disk and goes there.
const FIRST_INIT: &str = r#"#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
for module in /modules/*; do case $module in *-kvm.ko) p=halt_poll_ns=0;; *) p=;; esac; /bin/busybox insmod $module $p || echo "not loaded: $module"; done
/bin/busybox mount -t ext4 -o ro,noatime /dev/vda /mnt
/bin/busybox umount /proc
/bin/busybox mount --move /dev /mnt/dev
exec /bin/busybox switch_root /mnt /init
"#;

const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t tmpfs -o size=90% run /run
/bin/busybox mkdir -p /run/bin /dev/pts /dev/shm
/bin/busybox --install -s /run/bin
export PATH=/usr/bin:/bin:/run/bin HOME=/root
mount -t sysfs sys /sys
mount -t devpts devpts /dev/pts
mount -t tmpfs -o size=90% tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
hostname lab
dmesg -n 1
echo "sixb-lab up after $(cut -d' ' -f1 /proc/uptime) s"
bash /lab/run </dev/null 2>&1
sync
poweroff -f
"#;

/// What a machine runs is a word of its kernel's command line: the disk is the same for all.
const RUN: &str = r#"
cd /tmp
export SMOLVM_VM_UID_DROP=off SIXB_LAB_EMULATED=1 SIXB_LAB_STATE=/tmp/s/sixb FAKE_API_KEY=sk-test-000
export SMOLVM_START_TIMEOUT_SECS=300 SMOLVM_AGENT_READY_TIMEOUT_SECS=300
export SIXB_LAB_BIN=$HOME/.local/share/sixb/smolvm/1.32.2/smolvm SIXB_LAB_IMAGE=$HOME/.cache/sixb/smolvm/agent-image
export SIXB_LAB_SIXB=/lab/sixb
for word in $(cat /proc/cmdline); do case $word in sixb.lab=*) checks=${word#sixb.lab=};; esac; done
/lab/runner "$checks"
"#;

/// Runs the checks, one after the other, and gives all that the machine printed. Two at a time take twice as long, and
/// microVMs on both processors of one machine are now and then lost.
pub(super) fn run(
    job: &mut Job,
    lab: &Lab,
    wheel: &Path,
    image: &Path,
    binaries: &Binaries,
    filter: &str,
) -> Result<String> {
    emulator::ensure(job, lab)?;
    let kernel = fetch::kernel(job, lab)?;
    let machine = Machine {
        initrd: initrd(job, lab, &kernel)?,
        disk: disk(job, lab, wheel, image, binaries)?,
        kernel: fs::read_dir(kernel.join("boot"))?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| {
                path.file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
            })
            .context("no kernel in its package")?,
    };
    eprintln!("no usable KVM here: in an emulated machine with nested virtualisation");
    let qemu = machine.command(filter);
    job.note(&format!("$ {qemu:?}"));
    watch(qemu)
}

/// The files of the outer machine.
struct Machine {
    kernel: PathBuf,
    initrd: PathBuf,
    disk: PathBuf,
}

impl Machine {
    fn command(&self, checks: &str) -> Command {
        let mut qemu = command(
            "setpriv",
            &[
                "--pdeathsig",
                "KILL",
                "timeout",
                "--kill-after=10",
                DEADLINE_SECONDS,
                emulator::PROGRAM,
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                CPU,
                "-smp",
                "2",
                "-m",
                "3072",
                "-display",
                "none",
                "-monitor",
                "none",
                "-serial",
                "stdio",
                "-no-reboot",
                "-nic",
                "none",
            ],
        );
        qemu.arg("-append").arg(format!(
            "console=ttyS0 quiet panic=-1 mitigations=off sixb.lab={checks}"
        ));
        qemu.arg("-kernel").arg(&self.kernel);
        qemu.arg("-initrd").arg(&self.initrd);
        qemu.arg("-drive").arg(format!(
            "file={},format=raw,if=virtio,snapshot=on",
            self.disk.display()
        ));
        qemu
    }
}

/// Passes on what the machine prints, from its own first line on.
fn watch(mut qemu: Command) -> Result<String> {
    // What it complains of is what emulation lacks of the processor.
    let mut child = qemu
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start qemu-system-x86_64")?;
    let mut lines = BufReader::new(child.stdout.take().context("piped")?);
    let (mut output, mut line, mut up) = (String::new(), Vec::new(), false);
    while lines.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        let text = match text.find(UP) {
            Some(at) => text[at..].to_owned(),
            None => text,
        };
        up |= text.starts_with(UP);
        if up {
            println!("{text}");
            output.push_str(&text);
            output.push('\n');
        }
    }
    child.wait()?;
    Ok(output)
}

fn initrd(job: &mut Job, lab: &Lab, kernel: &Path) -> Result<PathBuf> {
    let root = lab.path("initrd");
    let _ = fs::remove_dir_all(&root);
    for folder in ["bin", "proc", "dev", "mnt", "modules"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::copy("/bin/busybox", root.join("bin/busybox"))
        .context("no /bin/busybox: install busybox-static")?;
    let found = job.stdout({
        let mut find = command("find", &[]);
        find.arg(kernel.join("lib/modules")).args(["-name", "*.ko"]);
        find
    })?;
    let found = String::from_utf8_lossy(&found);
    for (index, module) in MODULES.iter().enumerate() {
        let file = found
            .lines()
            .find(|path| path.ends_with(&format!("/{module}.ko")))
            .with_context(|| format!("no module {module} in the kernel's package"))?;
        fs::copy(file, root.join(format!("modules/{index:02}-{module}.ko")))?;
    }
    script(&root.join("init"), FIRST_INIT)?;
    let archive = lab.path("initrd.cpio");
    let mut pack = command(
        "sh",
        &[
            "-c",
            "cd \"$1\" && find . | cpio --quiet -o -H newc > \"$2\"",
            "sh",
        ],
    );
    pack.arg(&root).arg(&archive);
    must(job, pack)?;
    Ok(archive)
}

/// The disk: this machine's programs, smolvm, the image and the test runner.
fn disk(
    job: &mut Job,
    lab: &Lab,
    wheel: &Path,
    image: &Path,
    binaries: &Binaries,
) -> Result<PathBuf> {
    let root = lab.path("disk");
    let _ = fs::remove_dir_all(&root);
    for folder in [
        "bin",
        "proc",
        "sys",
        "dev",
        "run",
        "tmp",
        "etc",
        "usr/bin",
        "lib64",
        "lib/x86_64-linux-gnu",
        "var",
        "lab",
    ] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::copy("/bin/busybox", root.join("bin/busybox"))?;
    let mut linked: BTreeSet<String> = BTreeSet::new();
    for program in PROGRAMS {
        let name = Path::new(program).file_name().context("a name")?;
        fs::copy(program, root.join("usr/bin").join(name))
            .with_context(|| format!("no {program}"))?;
        linked.insert((*program).to_owned());
    }
    fs::copy(root.join("usr/bin/bash"), root.join("bin/bash"))?;
    std::os::unix::fs::symlink("bash", root.join("bin/sh"))?;
    fs::copy(root.join("usr/bin/mke2fs"), root.join("usr/bin/mkfs.ext4"))?;
    for (binary, name) in [(&binaries.runner, "runner"), (&binaries.sixb, "sixb")] {
        let mut strip = command("strip", &["-o"]);
        strip.arg(root.join("lab").join(name)).arg(binary);
        must(job, strip)?;
        linked.insert(binary.display().to_string());
    }
    for name in ["smolvm", "libkrun.so"] {
        linked.insert(wheel.join(name).display().to_string());
    }
    for library in libraries(job, &linked)? {
        let name = Path::new(&library).file_name().context("a name")?;
        let folder = if library.contains("ld-linux") {
            "lib64"
        } else {
            "lib/x86_64-linux-gnu"
        };
        fs::copy(&library, root.join(folder).join(name))
            .with_context(|| format!("no {library}"))?;
    }
    for (from, to) in [(wheel, SMOLVM), (image, IMAGE)] {
        let to = root.join(to);
        fs::create_dir_all(to.parent().context("a folder")?)?;
        let mut copy = command("cp", &["-a", "--sparse=always", "--reflink=auto"]);
        copy.arg(from).arg(&to);
        must(job, copy)?;
    }
    for (name, text) in [
        ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
        ("etc/group", "root:x:0:\n"),
        ("etc/hosts", "127.0.0.1 localhost\n"),
        ("etc/resolv.conf", "nameserver 127.0.0.1\n"),
        ("lab/run", RUN),
    ] {
        fs::write(root.join(name), text)?;
    }
    script(&root.join("init"), INIT)?;
    let file = lab.path("disk.img");
    let _ = fs::remove_file(&file);
    must(job, {
        let mut grow = command("truncate", &["-s", "3G"]);
        grow.arg(&file);
        grow
    })?;
    let mut make = command(
        "/usr/sbin/mke2fs",
        &["-q", "-t", "ext4", "-O", "^has_journal", "-d"],
    );
    make.arg(&root).arg(&file);
    must(job, make)?;
    fs::remove_dir_all(&root)?;
    Ok(file)
}

fn libraries(job: &mut Job, programs: &BTreeSet<String>) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for program in programs {
        let text = job.stdout(command("ldd", &[program]))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        all.extend(
            text.split_whitespace()
                .filter(|word| word.starts_with('/'))
                .map(str::to_owned),
        );
    }
    Ok(all)
}

fn script(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text)?;
    let executable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    Ok(fs::set_permissions(path, executable)?)
}
