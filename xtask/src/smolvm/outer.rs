//! The outer machine: QEMU without KVM, but with a processor that has nested virtualisation, so that microVMs boot in it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Binaries, Lab, command, emulator, fetch, last_total, must};
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
/// The whole lab on two quiet cores takes a quarter of an hour.
const DEADLINE_SECONDS: &str = "1500";
/// No check says nothing for so long: the machine hangs.
const SILENCE: Duration = Duration::from_secs(180);
/// Emulated nested virtualisation is not perfect: every hundred boots or so it loses a microVM, or the outer machine panics.
/// What did not hold then runs again in a new machine, and says so; what fails each time is a failure.
const ROUNDS: usize = 3;
/// With nested virtualisation.
const CPU: &str = "EPYC-Milan,+svm,+npt";
const UP: &str = "sixb-lab up";

/// Where things lie in the outer machine: as `sixb sandbox install` and `cargo xtask agent-image` place them.
const SMOLVM: &str = "root/.local/share/sixb/smolvm/1.32.2";
const IMAGE: &str = "root/.cache/sixb/smolvm/agent-image";

/// Mounts the disk and goes there. The host's KVM must not poll for a guest that halted: both share what is emulated.
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

/// Which checks to run stands at the start of the second disk, up to a NUL.
const RUN: &str = r#"
cd /tmp
export SMOLVM_VM_UID_DROP=off SIXB_LAB_EMULATED=1 SIXB_LAB_STATE=/tmp/s/sixb FAKE_API_KEY=sk-test-000
export SMOLVM_START_TIMEOUT_SECS=120 SMOLVM_AGENT_READY_TIMEOUT_SECS=120
export SIXB_LAB_BIN=$HOME/.local/share/sixb/smolvm/1.32.2/smolvm SIXB_LAB_IMAGE=$HOME/.cache/sixb/smolvm/agent-image
export SIXB_LAB_SIXB=/lab/sixb
/lab/runner "$(tr -d '\0' </dev/vdb)"
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
        words: lab.path("words.img"),
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
    let (mut all, mut held, mut round) = (String::new(), BTreeSet::new(), 1);
    let failed = loop {
        write_words(&machine.words, filter, &held)?;
        let qemu = machine.command();
        job.note(&format!("$ {qemu:?}"));
        let output = watch(qemu)?;
        held.extend(output.lines().filter_map(name_that_held).map(str::to_owned));
        all.push_str(&output);
        match last_total(&output) {
            Ok(counts) if counts.failed == 0 || round == ROUNDS => break counts.failed,
            Err(died) if round == ROUNDS => return Err(died),
            _ => {}
        }
        let again = "what did not hold there runs again in a new emulated machine";
        println!("{again}");
        all.push_str(&format!("{again}\n"));
        round += 1;
    };
    let total = format!("{} passed, {failed} failed", held.len());
    println!("{total}");
    Ok(all + &total + "\n")
}

/// The disk that tells the machine which checks to run: those of `filter` that did not hold yet.
fn write_words(disk: &Path, filter: &str, held: &BTreeSet<String>) -> Result<()> {
    let mut words: Vec<u8> = filter.to_owned().into_bytes();
    for name in held {
        words.extend(format!(",!{name}").into_bytes());
    }
    words.resize(words.len().next_multiple_of(4096).max(4096), 0);
    fs::write(disk, words).with_context(|| format!("cannot write {}", disk.display()))
}

/// `ok     8.46 s  environment::values_arrive_exactly`.
fn name_that_held(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("ok ")?.split_whitespace();
    words.nth(2).filter(|name| name.contains("::"))
}

/// The files of the outer machine.
struct Machine {
    kernel: PathBuf,
    initrd: PathBuf,
    disk: PathBuf,
    words: PathBuf,
}

impl Machine {
    fn command(&self) -> Command {
        let mut qemu = command(
            "setpriv",
            &[
                "--pdeathsig",
                "KILL",
                "timeout",
                "--kill-after=10",
                DEADLINE_SECONDS,
                // It must not outlive `timeout` either.
                "setpriv",
                "--pdeathsig",
                "KILL",
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
        qemu.args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off"]);
        qemu.arg("-kernel").arg(&self.kernel);
        qemu.arg("-initrd").arg(&self.initrd);
        for disk in [&self.disk, &self.words] {
            let file = disk.display();
            let drive = format!("file={file},format=raw,if=virtio,snapshot=on");
            qemu.arg("-drive").arg(drive);
        }
        qemu
    }
}

/// Passes on what the machine prints, from its own first line on. Ends it when it says nothing any more.
fn watch(mut qemu: Command) -> Result<String> {
    // What it complains of is what emulation lacks of the processor.
    let mut child = qemu
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start qemu-system-x86_64")?;
    let printed = BufReader::new(child.stdout.take().context("piped")?);
    let (send, lines) = mpsc::channel();
    let reading = thread::spawn(move || {
        for line in printed.split(b'\n').map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let (mut output, mut up) = (String::new(), false);
    loop {
        let line = match lines.recv_timeout(SILENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                println!("the emulated machine says nothing any more");
                break;
            }
        };
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
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
    child.kill()?;
    child.wait()?;
    drop(lines);
    let _ = reading.join();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_held_is_not_run_again() {
        let line = "ok     8.46 s  environment::values_arrive_exactly";
        assert_eq!(
            name_that_held(line),
            Some("environment::values_arrive_exactly")
        );
        assert_eq!(name_that_held("FAIL   1.00 s  a::b: ok 1 2 c::d"), None);
        assert_eq!(name_that_held("ok then"), None);
        let folder = tempfile::tempdir().expect("folder");
        let disk = folder.path().join("words");
        write_words(&disk, "files::", &BTreeSet::from(["a::b".to_owned()])).expect("written");
        let written = fs::read(&disk).expect("read");
        assert_eq!(written.len(), 4096);
        assert!(written.starts_with(b"files::,!a::b\0"));
    }
}
