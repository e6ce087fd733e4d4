//! The system calls that no command may use. A deny-list: programs expect everything else.

use std::{collections::BTreeMap, io};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Refused whatever the arguments. One line per reason.
const DENIED: &[&[i64]] = &[
    // The file view.
    &[
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_move_mount,
        libc::SYS_open_tree,
        libc::SYS_fsopen,
        libc::SYS_fsconfig,
        libc::SYS_fsmount,
        libc::SYS_fspick,
        libc::SYS_mount_setattr,
        libc::SYS_swapon,
        libc::SYS_swapoff,
        libc::SYS_quotactl,
        // Handles reach files outside of the view.
        libc::SYS_name_to_handle_at,
        libc::SYS_open_by_handle_at,
        libc::SYS_fanotify_init,
    ],
    // The kernel itself.
    &[
        libc::SYS_kexec_load,
        libc::SYS_kexec_file_load,
        libc::SYS_init_module,
        libc::SYS_finit_module,
        libc::SYS_delete_module,
        libc::SYS_reboot,
        libc::SYS_acct,
        libc::SYS_syslog,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_lookup_dcookie,
        libc::SYS_nfsservctl,
        libc::SYS_vhangup,
    ],
    // Large attack surface, rarely needed: keyrings (not namespaced), userfaultfd, io_uring (works around seccomp).
    &[
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
    ],
    // Other processes' memory and descriptors. Debuggers do not work inside: the price of a simple wall.
    &[
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_kcmp,
        libc::SYS_pidfd_getfd,
        libc::SYS_process_madvise,
    ],
    // Namespaces and the clock.
    &[
        libc::SYS_setns,
        libc::SYS_sethostname,
        libc::SYS_setdomainname,
        libc::SYS_settimeofday,
        libc::SYS_clock_settime,
        libc::SYS_clock_adjtime,
        libc::SYS_adjtimex,
    ],
    // Memory placement of other processes.
    &[libc::SYS_move_pages, libc::SYS_migrate_pages],
    #[cfg(target_arch = "x86_64")]
    &[
        libc::SYS_iopl,
        libc::SYS_ioperm,
        libc::SYS_modify_ldt,
        libc::SYS_uselib,
        libc::SYS_ustat,
        libc::SYS_sysfs,
        libc::SYS__sysctl,
    ],
];

/// Newer than the `libc` crate's tables: quotactl_fd, open_tree_attr.
const DENIED_NEW: &[i64] = &[443, 467];

const NAMESPACE_FLAGS: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    0x80, // CLONE_NEWTIME
];

/// Address families that stay: others (vsock, packet, alg, key, xdp, …) are not namespaced or not needed.
const FAMILIES: &[i32] = &[
    libc::AF_UNIX,
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
];

/// Protocols whose first socket loads a kernel module: SCTP, DCCP, L2TP, UDP-Lite, SMC.
const PROTOCOLS: &[u64] = &[132, 33, 115, 136, 256];

/// Terminal ioctls that type into another process's input, or load a module (a line discipline).
const IOCTLS: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];

/// Calls that set a file's mode, and which argument that is.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    // fchmodat2
    (452, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Calls that set a mode if their flags make a file, and the arguments of flags and mode.
const MODES_OF_NEW: &[(i64, u8, u8)] = &[
    (libc::SYS_openat, 2, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1, 2),
];

/// Refused where memory is limited without a cgroup: files in memory that belong to no process and no mount, so that
/// nobody could count them. `ENOSYS`: programs fall back to a file.
const UNCOUNTED: &[i64] = &[libc::SYS_memfd_create, libc::SYS_memfd_secret];

/// Installs the filters for good. Needs no_new_privs.
pub(super) fn restrict(memory_limited: bool) -> io::Result<()> {
    for filter in filters(memory_limited).map_err(io::Error::other)? {
        seccompiler::apply_filter(&filter).map_err(io::Error::other)?;
    }
    Ok(())
}

fn filters(memory_limited: bool) -> Result<Vec<BpfProgram>, seccompiler::Error> {
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let build = |rules: BTreeMap<i64, Vec<SeccompRule>>,
                 errno: i32|
     -> Result<BpfProgram, seccompiler::Error> {
        let filter = SeccompFilter::new(
            rules,
            SeccompAction::Allow,
            SeccompAction::Errno(errno as u32),
            arch,
        )?;
        Ok(filter.try_into()?)
    };
    // The flags of clone3 and the mode of openat2 are behind a pointer: programs fall back to clone and openat, whose
    // arguments can be checked.
    let mut unknown = BTreeMap::from([
        (libc::SYS_clone3, Vec::new()),
        (libc::SYS_openat2, Vec::new()),
    ]);
    if memory_limited {
        unknown.extend(UNCOUNTED.iter().map(|call| (*call, Vec::new())));
    }
    let mut all = vec![
        build(denials()?, libc::EPERM)?,
        build(unknown, libc::ENOSYS)?,
        build(unchanged()?, 0)?,
    ];
    #[cfg(target_arch = "x86_64")]
    all.push(no_x32());
    Ok(all)
}

fn denials() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED
        .iter()
        .copied()
        .flatten()
        .chain(DENIED_NEW)
        .map(|call| (*call, Vec::new()))
        .collect();
    let mut flags = Vec::new();
    for flag in NAMESPACE_FLAGS {
        let mask = *flag as u64;
        flags.push(rule(&[(0, SeccompCmpOp::MaskedEq(mask), mask)])?);
    }
    // CLONE_NEWTIME shares its bit with the exit signal of clone: only unshare can ask for it.
    rules.insert(libc::SYS_clone, flags[..flags.len() - 1].to_vec());
    rules.insert(libc::SYS_unshare, flags);
    let unwanted: Vec<_> = FAMILIES
        .iter()
        .map(|family| (0, SeccompCmpOp::Ne, *family as u64))
        .collect();
    let mut sockets = vec![rule(&unwanted)?];
    for protocol in PROTOCOLS {
        sockets.push(rule(&[(2, SeccompCmpOp::Eq, *protocol)])?);
    }
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, vec![rule(&unwanted)?]);
    let ioctls = IOCTLS
        .iter()
        .map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    rules.insert(libc::SYS_ioctl, ioctls.collect::<Result<_, _>>()?);
    rules.extend(setuid()?);
    // The limits of another process: the supervisor's would end it, and with it the sandbox. And the limit on core dumps
    // in the one form that `unchanged` leaves over.
    rules.insert(
        libc::SYS_prlimit64,
        vec![
            pointers(&[(0, SeccompCmpOp::Ne, 0)], &[(2, SeccompCmpOp::Ne)])?,
            pointers(
                &[(1, SeccompCmpOp::Eq, CORE)],
                &[(2, SeccompCmpOp::Ne), (3, SeccompCmpOp::Ne)],
            )?,
        ],
    );
    Ok(rules)
}

/// Ways to make a setuid or setgid file. In a folder of the host that belongs to root, a guest could leave a program
/// behind that makes whoever starts it root; `nosuid` holds only inside.
fn setuid() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let has = |argument: u8, bit: u32| {
        let bit = u64::from(bit);
        (argument, SeccompCmpOp::MaskedEq(bit), bit)
    };
    let mut rules = BTreeMap::new();
    for bit in [libc::S_ISUID, libc::S_ISGID] {
        for (call, mode) in MODES {
            let all: &mut Vec<_> = rules.entry(*call).or_default();
            all.push(rule(&[has(*mode, bit)])?);
        }
        for (call, flags, mode) in MODES_OF_NEW {
            // `O_TMPFILE` without `O_DIRECTORY`, which comes with it but is no sign of a new file.
            for makes in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
                let all = rules.entry(*call).or_default();
                all.push(rule(&[has(*flags, makes as u32), has(*mode, bit)])?);
            }
        }
    }
    Ok(rules)
}

const CORE: u64 = libc::RLIMIT_CORE as u64;

/// Calls that do nothing and say that they did it: changes of the limit on core dumps, which must stay at 1 (see
/// `no_core_dumps`). Programs that guard secrets set it to 0 and give up if they cannot.
fn unchanged() -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules = BTreeMap::from([(
        libc::SYS_prlimit64,
        vec![pointers(
            &[(0, SeccompCmpOp::Eq, 0), (1, SeccompCmpOp::Eq, CORE)],
            &[(2, SeccompCmpOp::Ne), (3, SeccompCmpOp::Eq)],
        )?],
    )]);
    rules.insert(
        libc::SYS_setrlimit,
        vec![rule(&[(0, SeccompCmpOp::Eq, CORE)])?],
    );
    Ok(rules)
}

/// All conditions must hold. 32-bit comparisons: the kernel ignores the upper half of these arguments, too.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    pointers(conditions, &[])
}

/// Like `rule`, and these arguments are compared with the null pointer, in full: an address may end in 32 zero bits.
fn pointers(
    conditions: &[(u8, SeccompCmpOp, u64)],
    nulls: &[(u8, SeccompCmpOp)],
) -> Result<SeccompRule, seccompiler::BackendError> {
    let numbers = conditions
        .iter()
        .map(|(argument, operator, value)| (*argument, SeccompCmpArgLen::Dword, operator, *value));
    let nulls = nulls
        .iter()
        .map(|(argument, operator)| (*argument, SeccompCmpArgLen::Qword, operator, 0));
    SeccompRule::new(
        numbers
            .chain(nulls)
            .map(|(argument, length, operator, value)| {
                SeccompCondition::new(argument, length, operator.clone(), value)
            })
            .collect::<Result<_, _>>()?,
    )
}

/// The x32 calls share the architecture value of x86-64 but have numbers of their own, from bit 30 on: without this
/// every rule above could be walked around.
#[cfg(target_arch = "x86_64")]
fn no_x32() -> BpfProgram {
    use seccompiler::sock_filter;
    const LOAD_NUMBER: sock_filter = sock_filter {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    };
    const IS_X32: sock_filter = sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16,
        jt: 0,
        jf: 1,
        k: 0x4000_0000,
    };
    const fn answer(k: u32) -> sock_filter {
        sock_filter {
            code: (libc::BPF_RET | libc::BPF_K) as u16,
            jt: 0,
            jf: 0,
            k,
        }
    }
    vec![
        LOAD_NUMBER,
        IS_X32,
        answer(libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile() {
        let filters = filters(true).expect("filters");
        assert!(
            filters.iter().all(|filter| filter.len() < 4096),
            "the kernel takes 4096 instructions"
        );
    }

    #[test]
    fn clone_keeps_its_exit_signal() {
        let rules = denials().expect("rules");
        assert_eq!(
            rules[&libc::SYS_clone].len() + 1,
            rules[&libc::SYS_unshare].len()
        );
    }
}
