//! The attempts. A row is one test: its name, the program or scene, the verdicts with which the sandbox held, what is tried.

use crate::{deadlines, inherited, load, names, planted, races, row, siblings, trees};

/// A row whose program runs inside: `name: "file" "arguments" => ["verdict"], "what is tried";`, with `@ all` in a sandbox
/// that shares the host's network.
macro_rules! programs {
    ($($name:ident: $file:literal $args:literal $(@ $network:ident)? => [$($expect:literal),+], $tries:literal;)*) => {
        $(#[test]
        fn $name() {
            let program = crate::program::Program {
                file: $file,
                source: include_str!(concat!("attacks/", $file)),
                args: $args,
                host_network: concat!($(stringify!($network))?) == "all",
            };
            row::check(&row::Row {
                name: stringify!($name),
                tries: $tries,
                stage: row::Stage::Inside(program),
                expect: &[$($expect),+],
            });
        })*
    };
}

/// A row that needs the host's side, too: `name: function => ["verdict"], "what is tried";`.
macro_rules! scenes {
    ($($name:ident: $scene:path => [$($expect:literal),+], $tries:literal;)*) => {
        $(#[test]
        fn $name() {
            row::check(&row::Row {
                name: stringify!($name),
                tries: $tries,
                stage: row::Stage::Scene($scene),
                expect: &[$($expect),+],
            });
        })*
    };
}

// The supervisor, process 1, and the leaders: everything that is not a command.
programs! {
    supervisor_mem_read: "file.py" "read /proc/1/mem" => ["EACCES"], "read the supervisor's memory";
    supervisor_mem_write: "file.py" "both /proc/1/mem" => ["EACCES"], "write the supervisor's memory";
    supervisor_mem_by_task: "file.py" "both /proc/1/task/1/mem" => ["EACCES"], "the same by its thread";
    supervisor_environ: "file.py" "read /proc/1/environ" => ["EACCES"], "read the supervisor's environment";
    supervisor_root: "file.py" "list /proc/1/root/" => ["EACCES"], "the supervisor's root folder";
    supervisor_cwd: "file.py" "list /proc/1/cwd/" => ["EACCES"], "the supervisor's working directory";
    supervisor_fd_list: "file.py" "list /proc/1/fd" => ["EACCES"], "list the supervisor's descriptors: one is the control socket";
    supervisor_fd_open: "file.py" "both /proc/1/fd/10" => ["EACCES"], "open the supervisor's control socket";
    supervisor_fdinfo: "file.py" "list /proc/1/fdinfo" => ["EACCES"], "what the supervisor's descriptors are";
    supervisor_exe_read: "file.py" "read /proc/1/exe" => ["EACCES"], "read the supervisor's program";
    supervisor_exe_write: "file.py" "exe /proc/1/exe" => ["EACCES"], "overwrite the supervisor's program (CVE-2019-5736)";
    supervisor_exe_name: "file.py" "readlink /proc/1/exe" => ["EACCES"], "where the supervisor's program lies on the host";
    supervisor_maps: "file.py" "read /proc/1/maps" => ["EACCES"], "the supervisor's addresses";
    supervisor_map_files: "file.py" "list /proc/1/map_files" => ["EACCES"], "the supervisor's mapped files";
    supervisor_auxv: "file.py" "read /proc/1/auxv" => ["EACCES"], "the supervisor's random bytes and addresses";
    supervisor_stack: "file.py" "read /proc/1/stack" => ["EACCES", "EPERM"], "the supervisor's kernel stack";
    supervisor_syscall: "file.py" "read /proc/1/syscall" => ["EACCES", "EPERM"], "the supervisor's registers";
    supervisor_ns: "file.py" "read /proc/1/ns/mnt" => ["EACCES"], "the supervisor's namespaces, to enter them";
    supervisor_comm_write: "file.py" "write /proc/1/comm" => ["EACCES"], "rename the supervisor";
    supervisor_clear_refs: "file.py" "write /proc/1/clear_refs" => ["EACCES"], "the supervisor's page flags";
    supervisor_oom: "file.py" "write /proc/1/oom_score_adj" => ["EACCES"], "make the kernel kill the supervisor first";
    supervisor_uid_map: "file.py" "write /proc/1/uid_map" => ["EACCES", "EPERM"], "map more users into the namespace";
    supervisor_ptrace_attach: "syscall.c" "ptrace_attach" => ["EPERM"], "trace the supervisor";
    supervisor_ptrace_seize: "syscall.c" "ptrace_seize" => ["EPERM"], "trace the supervisor, without stopping it";
    supervisor_readv: "syscall.c" "process_vm_readv" => ["EPERM"], "read the supervisor's memory by call";
    supervisor_writev: "syscall.c" "process_vm_writev" => ["EPERM"], "write the supervisor's memory by call";
    supervisor_madvise: "syscall.c" "process_madvise" => ["EPERM"], "page the supervisor out";
    supervisor_getfd: "syscall.c" "pidfd_getfd_all" => ["EPERM"], "take the control socket out of the supervisor";
    supervisor_kcmp: "syscall.c" "kcmp" => ["EPERM"], "compare kernel pointers with the supervisor's";
    supervisor_move_pages: "syscall.c" "move_pages" => ["EPERM"], "the supervisor's memory placement";
    supervisor_migrate_pages: "syscall.c" "migrate_pages" => ["EPERM"], "move the supervisor's memory";
    supervisor_robust_list: "syscall.c" "get_robust_list" => ["EPERM", "EACCES"], "an address in the supervisor";
    supervisor_prlimit: "syscall.c" "prlimit_other" => ["EPERM"], "take the supervisor's descriptors away by a limit";
    supervisor_signals: "signals.py" "supervisor" => ["reached"], "each signal to the supervisor: sent, and without effect";
    supervisor_handlers: "signals.py" "handlers" => ["none"], "signals that the supervisor handles, which so reach it";
    supervisor_forged_segv: "syscall.c" "forged_segv" => ["EPERM", "reached"], "a fault with a made-up address, for its handler";
    supervisor_forged_bus: "syscall.c" "forged_bus" => ["EPERM", "reached"], "the same with SIGBUS";
    leader_mem: "file.py" "both /proc/{ppid}/mem" => ["EACCES"], "write the memory of the command's leader";
    leader_fd: "file.py" "list /proc/{ppid}/fd" => ["EACCES"], "list the leader's descriptors: one is its report socket";
    leader_root: "file.py" "list /proc/{ppid}/root/" => ["EACCES"], "the leader's root folder";
    leader_environ: "file.py" "read /proc/{ppid}/environ" => ["EACCES"], "the leader's environment";
    leader_exe: "file.py" "exe /proc/{ppid}/exe" => ["EACCES"], "overwrite the leader's program";
    leader_ptrace: "syscall.c" "ptrace_seize 0" => ["EPERM"], "trace the leader";
    leader_getfd: "syscall.c" "pidfd_getfd_all 0" => ["EPERM"], "take the report socket out of the leader, to report in its name";
    leader_readv: "syscall.c" "process_vm_readv 0" => ["EPERM"], "read the leader's memory by call";
    leader_prlimit: "syscall.c" "prlimit_other 0" => ["EPERM"], "limit the leader";
    every_mem: "every_process.py" "mem" => ["nothing"], "the memory of any process but its own";
    every_root: "every_process.py" "root" => ["nothing"], "the root folder of any process";
    every_cwd: "every_process.py" "cwd" => ["nothing"], "the working directory of any process";
    every_fd: "every_process.py" "fd" => ["nothing"], "the descriptors of any process";
    every_ns: "every_process.py" "ns" => ["nothing"], "the namespaces of any process";
    every_environ: "every_process.py" "environ" => ["nothing"], "the environment of any process";
    every_cmdline: "every_process.py" "cmdline" => ["nothing"], "the host's arguments in any process";
}

// The host: its files, processes, sockets, environment.
programs! {
    host_token: "bait.py" "" => ["not found"], "a token of the host's environment, anywhere";
    host_descriptors: "descriptors.py" "list" => ["0 1 2"], "descriptors that a fresh command inherits";
    host_descriptor_kinds: "descriptors.py" "kinds" => ["/dev/null pipe pipe"], "what the inherited descriptors are";
    host_file_by_root_link: "tricks.py" "proc_self_root" => ["not visible"], "/proc/self/root/…";
    host_file_by_cwd_link: "tricks.py" "proc_self_cwd" => ["not visible"], "/proc/self/cwd/../…";
    host_file_by_fd_link: "tricks.py" "proc_self_fd" => ["not visible"], "/proc/self/fd/N/../…";
    host_file_by_dotdot: "tricks.py" "dotdot" => ["not visible"], "above the root";
    host_file_by_supervisor: "tricks.py" "proc_1_root" => ["not visible"], "/proc/1/root/…";
    host_file_in_old_root: "tricks.py" "old_root" => ["not visible"], "places where an old root may hang";
    host_kill: "signals.py" "host" => ["ESRCH"], "end a process of the host by its number";
    host_kill_group: "signals.py" "host_group" => ["ESRCH"], "end a process group of the host";
    host_kill_all: "signals.py" "all" => ["the process that watches over the command was killed", "reached"], "end all processes: only its own are there";
    host_signal_by_owner: "signals.py" "owner" => ["ESRCH"], "let the kernel signal a process of the host (F_SETOWN)";
    host_pidfd: "syscall.c" "pidfd_open 1073741823" => ["ESRCH", "EINVAL"], "open a process that is not its own";
    host_abstract_socket: "connect.py" "abstract" => ["ECONNREFUSED"], "an abstract socket of the host, without network";
    host_abstract_datagram: "connect.py" "abstract_datagram" => ["ECONNREFUSED"], "an abstract datagram socket of the host";
    host_abstract_with_network: "connect.py" "abstract" @ all => ["EPERM"], "an abstract socket of the host, with its network (Landlock)";
    host_abstract_datagram_with_network: "connect.py" "abstract_datagram" @ all => ["EPERM"], "an abstract datagram socket, with its network";
    host_path_socket: "connect.py" "path" => ["ENOENT"], "a socket of the host by its path";
    host_path_socket_with_network: "connect.py" "path" @ all => ["ENOENT"], "the same, with the host's network";
    host_shown_socket: "connect.py" "shown" => ["reached"], "a socket in a folder that the owner shows: he shows it, too";
    host_dbus: "connect.py" "dbus" @ all => ["ENOENT"], "the system bus";
    host_docker: "connect.py" "docker" @ all => ["ENOENT"], "the socket of docker";
    host_tcp: "connect.py" "tcp" => ["ECONNREFUSED"], "a port on the host's loopback, without network";
    host_tcp6: "connect.py" "tcp6" => ["ECONNREFUSED", "EADDRNOTAVAIL", "EAFNOSUPPORT"], "the same by IPv6";
    host_udp_out: "connect.py" "udp_out" => ["ENETUNREACH"], "a datagram to the world, without network";
    host_tcp_with_network: "connect.py" "tcp" @ all => ["reached"], "the host's loopback with its network: chosen by the owner";
    host_routes: "netlink.py" "route" => ["EPERM"], "a new route";
    host_routes_deleted: "netlink.py" "delroute" => ["EPERM"], "one route less";
    host_addresses: "netlink.py" "address" => ["EPERM"], "a new address";
    host_links: "netlink.py" "link" => ["EPERM"], "change a network interface";
    host_new_links: "netlink.py" "dummy" => ["EPERM"], "a new network interface";
    host_routes_with_network: "netlink.py" "route" @ all => ["EPERM"], "a new route of the host, with its network";
    host_routes_deleted_with_network: "netlink.py" "delroute" @ all => ["EPERM"], "one route of the host less";
    host_links_with_network: "netlink.py" "link" @ all => ["EPERM"], "change a network interface of the host";
}

// The file view: what is shown read-only stays so, by whatever name.
programs! {
    view_write_usr: "file.py" "write /usr/bin/env" => ["EROFS", "EACCES"], "write a program of the host";
    view_create_usr: "file.py" "create /usr/new" => ["EROFS", "EACCES"], "make a file in a system folder";
    view_create_root: "file.py" "create /new" => ["EROFS", "EACCES"], "make a file in the root folder";
    view_create_etc: "file.py" "create /etc/new" => ["EROFS", "EACCES"], "make a file in /etc";
    view_write_passwd: "file.py" "write /etc/passwd" => ["EROFS", "EACCES"], "change the users";
    view_truncate: "file.py" "truncate /usr/bin/env" => ["EROFS", "EACCES"], "truncate by path";
    view_remove: "file.py" "remove /usr/bin/env" => ["EROFS", "EACCES"], "remove a program of the host";
    view_chmod: "file.py" "chmod /usr/bin/env" => ["EROFS", "EPERM"], "open a program of the host to all";
    view_chown: "file.py" "chown /usr/bin/env" => ["EROFS", "EPERM"], "own a program of the host";
    view_chmod_device: "file.py" "chmod /dev/null" => ["EPERM", "EROFS"], "change the host's /dev/null";
    view_rename_in: "file.py" "rename_in /usr/bin/own" => ["EXDEV", "EACCES", "EROFS"], "move a file into a system folder";
    view_rename_over: "file.py" "rename_in /usr/bin/env" => ["EXDEV", "EACCES", "EROFS"], "move a file over a program of the host";
    view_rename_out: "file.py" "rename_out /usr/bin/env" => ["EXDEV", "EACCES", "EROFS"], "move a program of the host away";
    view_link: "file.py" "link /usr/bin/env" => ["EXDEV", "EACCES", "EPERM"], "a hard link to a program of the host";
    view_link_etc: "file.py" "link /etc/passwd" => ["EXDEV", "EACCES", "EPERM"], "a hard link to /etc/passwd";
    view_link_shown: "file.py" "link /data/file" => ["EXDEV", "EACCES", "EPERM"], "a hard link to a file shown read-only";
    view_link_by_descriptor: "file.py" "link_fd /data/file" => ["EXDEV", "EACCES", "EPERM", "ENOENT"], "the same through /proc/self/fd";
    view_reopen: "file.py" "reopen /data/file" => ["EROFS", "EACCES"], "open a file for reading, then again for writing through /proc/self/fd";
    view_shown_write: "file.py" "write /data/file" => ["EROFS", "EACCES"], "write a file shown read-only";
    view_shown_create: "file.py" "create /data/new" => ["EROFS", "EACCES"], "make a file in a folder shown read-only";
    view_own_exe: "file.py" "exe /proc/self/exe" => ["EROFS", "EACCES", "ETXTBSY"], "overwrite the running interpreter of the host";
    view_memfd_program: "memfd.py" "" => ["1000"], "a program in memory: runs, as nobody else";
    view_chroot: "chroot.py" "" => ["EPERM"], "the way out of a chroot";
    view_shadow: "file.py" "read /etc/shadow" => ["ENOENT"], "the host's passwords";
    view_sys: "file.py" "list /sys" => ["ENOENT"], "the kernel's devices";
    view_cgroup: "file.py" "list /sys/fs/cgroup" => ["ENOENT"], "cgroups of the host";
    view_kcore: "file.py" "stat /proc/kcore" => ["reached 0", "ENOENT"], "the kernel's memory: covered";
    view_kmsg: "file.py" "read /dev/kmsg" => ["ENOENT"], "the kernel's messages";
    view_mem_device: "file.py" "read /dev/mem" => ["ENOENT"], "physical memory";
    view_disk_device: "file.py" "read /dev/vda" => ["ENOENT"], "the host's disk";
    view_fuse_device: "file.py" "both /dev/fuse" => ["ENOENT"], "file systems of its own";
    view_kvm_device: "file.py" "both /dev/kvm" => ["ENOENT"], "virtual machines of its own";
    view_tun_device: "file.py" "both /dev/net/tun" => ["ENOENT"], "network interfaces of its own";
    sysctl_core_pattern: "file.py" "write /proc/sys/kernel/core_pattern" => ["EACCES", "EROFS"], "a program that the kernel starts as root at a crash";
    sysctl_modprobe: "file.py" "write /proc/sys/kernel/modprobe" => ["EACCES", "EROFS", "ENOENT"], "a program that the kernel starts as root for modules";
    sysctl_sysrq: "file.py" "write /proc/sys/kernel/sysrq" => ["EACCES", "EROFS", "ENOENT"], "open the magic keys";
    sysctl_sysrq_trigger: "file.py" "stat /proc/sysrq-trigger" => ["reached 0", "ENOENT"], "press a magic key: covered";
    sysctl_namespaces: "file.py" "write /proc/sys/user/max_user_namespaces" => ["EACCES", "EROFS"], "allow namespaces again";
    sysctl_shared_memory: "file.py" "write /proc/sys/kernel/shmmax" => ["EACCES", "EROFS"], "more shared memory";
    sysctl_network: "file.py" "write /proc/sys/net/ipv4/ip_forward" => ["EACCES", "EROFS", "ENOENT"], "forward packets";
    sysctl_swappiness: "file.py" "write /proc/sys/vm/overcommit_memory" => ["EACCES", "EROFS"], "the host's memory rules";
    sysctl_binfmt: "file.py" "write /proc/sys/fs/binfmt_misc/register" => ["EACCES", "EROFS", "ENOENT"], "an interpreter for the host's programs";
}

// System calls.
programs! {
    mount: "syscall.c" "mount" => ["EPERM"], "mount a file system";
    mount_bind: "syscall.c" "mount_bind" => ["EPERM"], "mount a folder elsewhere";
    mount_proc: "syscall.c" "mount_proc" => ["EPERM"], "mount /proc without its covers";
    mount_cgroup2: "syscall.c" "mount_cgroup2" => ["EPERM"], "mount cgroups, version 2";
    mount_cgroup1: "syscall.c" "mount_cgroup1" => ["EPERM"], "mount cgroups, version 1 (release_agent)";
    mount_remount: "syscall.c" "remount_writable" => ["EPERM"], "make /usr writable";
    mount_umount: "syscall.c" "umount2" => ["EPERM"], "take a cover away";
    mount_pivot_root: "syscall.c" "pivot_root" => ["EPERM"], "another root";
    mount_chroot: "syscall.c" "chroot" => ["EPERM"], "chroot";
    mount_open_tree: "syscall.c" "open_tree" => ["EPERM"], "new mount calls: open_tree";
    mount_open_tree_attr: "syscall.c" "open_tree_attr" => ["EPERM"], "new mount calls: open_tree_attr";
    mount_move: "syscall.c" "move_mount" => ["EPERM"], "new mount calls: move_mount";
    mount_fsopen: "syscall.c" "fsopen" => ["EPERM"], "new mount calls: fsopen";
    mount_fsconfig: "syscall.c" "fsconfig" => ["EPERM"], "new mount calls: fsconfig";
    mount_fsmount: "syscall.c" "fsmount" => ["EPERM"], "new mount calls: fsmount";
    mount_fspick: "syscall.c" "fspick" => ["EPERM"], "new mount calls: fspick";
    mount_setattr: "syscall.c" "mount_setattr" => ["EPERM"], "new mount calls: mount_setattr";
    handle_name: "syscall.c" "name_to_handle_at" => ["EPERM"], "a handle of a file, to forge others from";
    handle_open: "syscall.c" "open_by_handle_at" => ["EPERM"], "open any file of the disk by handle";
    fanotify: "syscall.c" "fanotify_init" => ["EPERM"], "watch all file calls of the host";
    swap_on: "syscall.c" "swapon" => ["EPERM"], "swap to a file of its own";
    swap_off: "syscall.c" "swapoff" => ["EPERM"], "take the host's swap away";
    quota: "syscall.c" "quotactl" => ["EPERM"], "disk quotas";
    quota_fd: "syscall.c" "quotactl_fd" => ["EPERM"], "disk quotas by descriptor";
    device_block: "syscall.c" "mknod_block" => ["EPERM"], "a node for a disk";
    device_char: "syscall.c" "mknod_char" => ["EPERM"], "a node for /dev/mem";
    namespace_user: "syscall.c" "unshare_user" => ["EPERM"], "a user namespace: all capabilities in it";
    namespace_mount: "syscall.c" "unshare_mount" => ["EPERM"], "a mount namespace";
    namespace_pid: "syscall.c" "unshare_pid" => ["EPERM"], "a pid namespace";
    namespace_net: "syscall.c" "unshare_net" => ["EPERM"], "a network namespace";
    namespace_ipc: "syscall.c" "unshare_ipc" => ["EPERM"], "an ipc namespace";
    namespace_uts: "syscall.c" "unshare_uts" => ["EPERM"], "a uts namespace";
    namespace_cgroup: "syscall.c" "unshare_cgroup" => ["EPERM"], "a cgroup namespace";
    namespace_time: "syscall.c" "unshare_time" => ["EPERM"], "a time namespace";
    namespace_user_by_clone: "syscall.c" "clone_user" => ["EPERM"], "a user namespace by clone";
    namespace_user_by_high_bits: "syscall.c" "clone_user_high_bits" => ["EPERM"], "the same, with bits set that the kernel ignores";
    namespace_mount_by_clone: "syscall.c" "clone_mount" => ["EPERM"], "a mount namespace by clone";
    namespace_net_by_clone: "syscall.c" "clone_net" => ["EPERM"], "a network namespace by clone";
    namespace_user_by_clone3: "syscall.c" "clone3_user" => ["ENOSYS"], "a user namespace by clone3, whose flags no filter sees";
    namespace_clone3: "syscall.c" "clone3_plain" => ["ENOSYS"], "clone3 at all";
    namespace_clone3_cgroup: "syscall.c" "clone3_into_cgroup" => ["ENOSYS"], "a process in another cgroup";
    namespace_setns: "syscall.c" "setns_own" => ["EPERM"], "enter a namespace";
    namespace_setns_pidfd: "syscall.c" "setns_pidfd" => ["EPERM"], "enter the supervisor's namespaces";
    namespace_hostname: "syscall.c" "sethostname" => ["EPERM"], "another host name";
    namespace_domainname: "syscall.c" "setdomainname" => ["EPERM"], "another domain name";
    keyring_add: "syscall.c" "add_key" => ["EPERM"], "keys in the kernel: not namespaced";
    keyring_request: "syscall.c" "request_key" => ["EPERM"], "the user's keys";
    keyring_control: "syscall.c" "keyctl" => ["EPERM"], "the user's key rings";
    io_uring_setup: "syscall.c" "io_uring_setup" => ["EPERM"], "calls that no filter sees";
    io_uring_enter: "syscall.c" "io_uring_enter" => ["EPERM"], "the same: enter";
    io_uring_register: "syscall.c" "io_uring_register" => ["EPERM"], "the same: register";
    userfaultfd: "syscall.c" "userfaultfd" => ["EPERM"], "stop the kernel in the middle of a copy";
    bpf: "syscall.c" "bpf" => ["EPERM"], "programs in the kernel";
    perf: "syscall.c" "perf_event_open" => ["EPERM"], "measure the kernel";
    module_init: "syscall.c" "init_module" => ["EPERM"], "load a kernel module";
    module_finit: "syscall.c" "finit_module" => ["EPERM"], "load a kernel module from a file";
    module_delete: "syscall.c" "delete_module" => ["EPERM"], "unload a kernel module";
    kexec: "syscall.c" "kexec_load" => ["EPERM"], "another kernel";
    reboot: "syscall.c" "reboot" => ["EPERM"], "the keys that reboot";
    accounting: "syscall.c" "acct" => ["EPERM"], "record all processes";
    kernel_log: "syscall.c" "syslog" => ["EPERM"], "read the kernel's log";
    hang_up: "syscall.c" "vhangup" => ["EPERM"], "hang up the terminal";
    clock: "syscall.c" "settimeofday" => ["EPERM"], "set the clock";
    clock_set: "syscall.c" "clock_settime" => ["EPERM"], "set the clock, finely";
    clock_adjust: "syscall.c" "adjtimex" => ["EPERM"], "tune the clock";
    trace_me: "syscall.c" "ptrace_traceme" => ["EPERM"], "debuggers at all";
    limit_processes: "syscall.c" "prlimit_raise" => ["EPERM"], "raise the limit on processes";
    limit_files: "syscall.c" "setrlimit_raise" => ["EPERM"], "raise the limit on descriptors";
    socket_vsock: "socket_family.py" "40 1 0" => ["EPERM"], "AF_VSOCK: the hypervisor";
    socket_alg: "socket_family.py" "38 5 0" => ["EPERM"], "AF_ALG: the kernel's ciphers";
    socket_packet: "socket_family.py" "17 3 768" => ["EPERM"], "AF_PACKET: raw frames";
    socket_key: "socket_family.py" "15 3 2" => ["EPERM"], "AF_KEY: IPsec";
    socket_xdp: "socket_family.py" "44 3 0" => ["EPERM"], "AF_XDP: frames by the driver";
    socket_bluetooth: "socket_family.py" "31 3 1" => ["EPERM"], "AF_BLUETOOTH";
    socket_can: "socket_family.py" "29 3 1" => ["EPERM"], "AF_CAN";
    socket_tipc: "socket_family.py" "30 1 0" => ["EPERM"], "AF_TIPC";
    socket_rds: "socket_family.py" "21 5 0" => ["EPERM"], "AF_RDS";
    socket_nfc: "socket_family.py" "39 5 1" => ["EPERM"], "AF_NFC";
    socket_smc: "socket_family.py" "43 1 0" => ["EPERM"], "AF_SMC";
    socket_vsock_with_network: "socket_family.py" "40 1 0" @ all => ["EPERM"], "the hypervisor, with the host's network";
    socket_packet_with_network: "socket_family.py" "17 3 768" @ all => ["EPERM"], "the host's frames, with its network";
    socket_raw: "socket_family.py" "2 3 1" => ["EPERM"], "raw packets";
    socket_raw_with_network: "socket_family.py" "2 3 1" @ all => ["EPERM"], "raw packets on the host's network";
    socket_sctp: "socket_family.py" "2 1 132" => ["EPERM"], "SCTP: loads a kernel module";
    socket_dccp: "socket_family.py" "2 6 33" => ["EPERM", "EINVAL"], "DCCP: loads a kernel module";
    socket_l2tp: "socket_family.py" "2 2 115" => ["EPERM"], "L2TP: loads a kernel module";
    socket_smc_by_protocol: "socket_family.py" "2 1 256" => ["EPERM"], "SMC by its protocol number";
    terminal_input: "tty.py" "TIOCSTI" => ["EPERM"], "type into a terminal (TIOCSTI)";
    terminal_input_high_bits: "tty.py" "TIOCSTI_high_bits" => ["EPERM"], "the same, with bits set that the kernel ignores";
    terminal_linux: "tty.py" "TIOCLINUX" => ["EPERM"], "paste into a console (TIOCLINUX)";
    terminal_discipline: "tty.py" "TIOCSETD" => ["EPERM"], "a line discipline: loads a kernel module";
    core_set: "core.py" "set" => ["1"], "a core dump for the host's handler, by setrlimit";
    core_prlimit: "core.py" "prlimit" => ["1"], "the same by prlimit";
    core_raw: "core.py" "raw" => ["1"], "the same by the bare call";
}

#[cfg(target_arch = "x86_64")]
programs! {
    x86_kexec_file: "syscall.c" "kexec_file_load" => ["EPERM"], "another kernel from a file";
    x86_iopl: "syscall.c" "iopl" => ["EPERM"], "ports of the machine";
    x86_ioperm: "syscall.c" "ioperm" => ["EPERM"], "a port of the machine";
    x86_ldt: "syscall.c" "modify_ldt" => ["EPERM"], "segments of its own";
    x86_x32: "syscall.c" "x32_getpid" => ["ENOSYS"], "x32 calls: other numbers, same architecture";
    x86_x32_ptrace: "syscall.c" "x32_ptrace" => ["ENOSYS"], "ptrace by its x32 number";
    x86_x32_mount: "syscall.c" "x32_mount" => ["ENOSYS"], "mount by its x32 number";
    x86_int80: "int80.c" "" => ["SIGSYS", "signal 11"], "32-bit calls by int 0x80";
}

// Rights.
programs! {
    rights_setuid_program: "privileges.py" "setuid_program" => ["EPERM"], "a setuid program of the host: runs as the sandbox's user";
    rights_file_capability: "privileges.py" "file_capability" => ["EPERM"], "a program with capabilities of its own";
    rights_setuid: "privileges.py" "setuid" => ["EPERM", "EINVAL"], "become root";
    rights_setgid: "privileges.py" "setgid" => ["EPERM", "EINVAL"], "become root's group";
    rights_setgroups: "privileges.py" "setgroups" => ["EPERM"], "leave groups that forbid something";
    rights_ambient: "privileges.py" "ambient" => ["EPERM"], "an ambient capability";
    rights_new_privs: "privileges.py" "new_privs" => ["EINVAL"], "take no_new_privs back";
    rights_dumpable: "privileges.py" "dumpable" => ["EINVAL"], "core files that root owns";
    rights_securebits: "privileges.py" "securebits" => ["EPERM"], "the rules of capabilities";
    rights_nice: "privileges.py" "nice" => ["EACCES", "EPERM"], "run before all others";
    rights_realtime: "privileges.py" "realtime" => ["EPERM"], "a processor for itself";
    plant_chmod: "setuid.c" "chmod 4000" => ["EPERM"], "make a setuid program: chmod";
    plant_chmod_high_bits: "setuid.c" "chmod_high_bits 4000" => ["EPERM"], "make a setuid program: chmod, with bits set that the kernel ignores";
    plant_chmod_group: "setuid.c" "chmod 2000" => ["EPERM"], "make a setgid program: chmod";
    plant_fchmod: "setuid.c" "fchmod 4000" => ["EPERM"], "make a setuid program: fchmod";
    plant_fchmodat: "setuid.c" "fchmodat 4000" => ["EPERM"], "make a setuid program: fchmodat";
    plant_fchmodat2: "setuid.c" "fchmodat2 4000" => ["EPERM", "ENOSYS"], "make a setuid program: fchmodat2";
    plant_open: "setuid.c" "open 4000" => ["EPERM"], "make a setuid program: open";
    plant_creat: "setuid.c" "creat 4000" => ["EPERM"], "make a setuid program: creat";
    plant_openat: "setuid.c" "openat 4000" => ["EPERM"], "make a setuid program: openat";
    plant_openat_group: "setuid.c" "openat 2000" => ["EPERM"], "make a setgid program: openat";
    plant_tmpfile: "setuid.c" "tmpfile 4000" => ["EPERM"], "make a setuid program: a nameless file";
    plant_openat2: "setuid.c" "openat2 4000" => ["ENOSYS"], "make a setuid program: openat2, whose mode no filter sees";
    plant_openat2_tmpfile: "setuid.c" "openat2_tmpfile 4000" => ["ENOSYS"], "make a setuid program: openat2, nameless";
    plant_mknod: "setuid.c" "mknod 4000" => ["EPERM"], "make a setuid program: mknod";
    plant_mknodat: "setuid.c" "mknodat 4000" => ["EPERM"], "make a setuid program: mknodat";
    plant_plain: "setuid.c" "plain 0" => ["reached"], "plain modes, and mode bits that mean nothing: still work";
}

scenes! {
    host_open_files: inherited::files => ["0 1 2"], "files that the host's program left open when it started the sandbox";
    planted_setuid: planted::setuid => ["none"], "a setuid program in a folder of the host, seen from the host";
    planted_devices: planted::devices => ["none"], "a device node in a folder of the host";
    planted_owners: planted::owners => ["own"], "files of other users in a folder of the host";
    sibling_system_v: siblings::system_v_memory => ["ENOENT"], "shared memory (System V) of another sandbox";
    sibling_posix: siblings::posix_memory => ["ENOENT"], "shared memory (POSIX) of another sandbox";
    sibling_queues: siblings::queues => ["ENOENT", "not made: EACCES"], "message queues of another sandbox";
    sibling_semaphores: siblings::semaphores => ["ENOENT"], "semaphores of another sandbox";
    sibling_sockets: siblings::sockets => ["none of 3"], "abstract, path and TCP sockets of another sandbox";
    sibling_files: siblings::files => ["not visible"], "files of another sandbox";
    sibling_processes: siblings::processes => ["not visible"], "processes of another sandbox";
    race_read: races::read => ["only inside"], "a file swapped for a link while the host reads it";
    race_read_below: races::read_below => ["only inside"], "a folder swapped for a link while the host reads below it";
    race_write_below: races::write_below => ["only inside"], "a folder swapped for a link while the host writes below it";
    race_write_draft: races::write_with_swapped_draft => ["only inside"], "the host's draft swapped for a link";
    race_remove_below: races::remove_below => ["only inside"], "a folder swapped for a link while the host removes below it";
    race_remove_tree: races::remove_tree => ["only inside"], "folders swapped for links while the host removes a whole tree";
    race_list: races::list => ["only inside"], "a folder swapped for a link while the host lists it";
    race_snapshot: races::snapshot => ["only inside"], "a folder swapped for a link during a snapshot";
    name_climbing: names::climbing => ["refused"], "paths that climb, are absolute, hold NUL or are too long";
    name_lookalikes: names::lookalikes => ["plain names"], "names that only look like climbing, hold newlines or no UTF-8";
    name_special_files: names::special_files => ["refused"], "pipes, sockets, devices and a file of 8 EiB for the host to read";
    tree_destroy_deep: trees::destroy_deep => ["removed"], "5000 folders deep, destroyed by the host";
    tree_remove_deep: trees::remove_deep => ["removed"], "5000 folders deep, removed by a call";
    tree_destroy_closed: trees::destroy_deep_and_closed => ["removed"], "a closed folder below what a path can name";
    tree_sweep_closed: trees::sweep_deep_and_closed => ["removed"], "the same, left by a killed owner: others still start";
    tree_list_wide: trees::list_wide => ["few descriptors"], "2000 folders side by side, to use up the host's descriptors";
    tree_list_many: trees::list_many => ["bounded"], "20000 files, listed with a limit of 100";
    dodge_daemon: deadlines::daemon => ["all gone"], "outlive a deadline: daemons that ignore signals";
    dodge_stopped_leader: deadlines::stopped_leader => ["all gone"], "outlive a deadline: stop the leader";
    dodge_stopped_leader_end: deadlines::stopped_leader_and_end => ["all gone"], "outlive a deadline: stop the leader and end";
    dodge_all_stopped: deadlines::all_stopped => ["all gone"], "outlive a deadline: stop everything";
    dodge_killed_leader: deadlines::killed_leader => ["all gone"], "outlive a deadline: kill the leader";
    dodge_runner: deadlines::runner => ["all gone"], "outlive a deadline: fork on and on, faster than the rounds of killing";
    dodge_many_runners: deadlines::many_runners => ["all gone"], "outlive a deadline: 64 of them";
    dodge_runner_alone: deadlines::runner_without_leader => ["all gone"], "outlive a deadline: 8 of them, their leader killed";
    dodge_fork_bomb: deadlines::fork_bomb => ["all gone"], "outlive a deadline: a fork bomb";
    dodge_subreapers: deadlines::subreapers => ["all gone"], "outlive a deadline: orphans that never come back to the leader";
    dodge_dead_thread: deadlines::dead_first_thread => ["all gone"], "outlive a deadline: processes whose first thread ended look dead";
    load_processes: load::processes => ["answers"], "a fork bomb within 64 processes";
    load_threads: load::threads => ["answers"], "threads within 64 processes";
    load_descriptors: load::descriptors => ["answers"], "descriptors within 256";
    load_memory: load::memory => ["answers"], "memory within 128 MiB";
    load_memory_of_many: load::memory_of_many => ["answers"], "memory of 12 processes within 128 MiB together";
    load_memory_of_dead: load::memory_of_the_dead => ["answers"], "the same by processes that look dead";
    load_memory_of_nobody: load::memory_of_nobody => ["answers"], "shared memory, nameless files, /dev/shm within 128 MiB";
    load_disk: load::disk => ["answers"], "files within 8 MiB";
    load_output: load::output => ["answers"], "three floods of output at once";
    load_many_floods: load::many_floods => ["answers"], "24 commands that flood at once";
    load_destroy: load::destroy_under_a_bomb => ["gone"], "destroy under a fork bomb that ignores signals";
}
