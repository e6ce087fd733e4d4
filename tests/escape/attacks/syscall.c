// One system call, with arguments that a kernel which let it through would take (or fail on otherwise than by refusing).
#include "attack.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>

// Calls newer than the headers of old systems. All architectures share these numbers.
enum { OPEN_TREE = 428, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, FSPICK, PIDFD_OPEN, CLONE3, OPENAT2 = 437, PIDFD_GETFD,
       PROCESS_MADVISE = 440, MOUNT_SETATTR = 442, QUOTACTL_FD, OPEN_TREE_ATTR = 467 };

static char page[65536];

// `clone` like `fork`; the child ends at once.
static long clone_with(unsigned long flags) {
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    return pid;
}

static long clone3_with(uint64_t flags) {
    uint64_t args[8] = {flags, 0, 0, 0, SIGCHLD, 0, 0, 0};
    long pid = syscall(CLONE3, args, sizeof args);
    if (pid == 0) _exit(0);
    return pid;
}

// A siginfo that claims any address: a handler of the supervisor's must not believe it.
static long forged_fault(int signal) {
    siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE};
    for (uintptr_t at = 0; at < 64; at++) {
        info.si_addr = (void *)(0x7f0000000000 + (at << 32));
        syscall(SYS_rt_sigqueueinfo, 1, signal, &info);
    }
    return syscall(SYS_rt_sigqueueinfo, 1, signal, &info);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    long pid = argc > 2 ? atol(argv[2]) : 1;
    if (pid == 0) pid = getppid();
    struct iovec own = {page, 8}, other = {(void *)0x400000, 8};
    struct rlimit64 { uint64_t soft, hard; } none = {0, 0}, more = {1 << 30, 1 << 30}, old;
    struct timeval now = {0, 0};
    struct timespec then = {0, 0};
    struct { unsigned int bytes; int type; char handle[128]; } handle = {128, 1, {0}};
    int place;

    // Other processes' memory and descriptors.
    TRY("ptrace_attach", syscall(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0));
    TRY("ptrace_seize", syscall(SYS_ptrace, PTRACE_SEIZE, pid, 0, 0));
    TRY("ptrace_traceme", syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0));
    TRY("process_vm_readv", syscall(SYS_process_vm_readv, pid, &own, 1, &other, 1, 0));
    TRY("process_vm_writev", syscall(SYS_process_vm_writev, pid, &own, 1, &other, 1, 0));
    TRY("process_madvise", syscall(PROCESS_MADVISE, syscall(PIDFD_OPEN, pid, 0), &own, 1, 21, 0));
    TRY("pidfd_getfd", syscall(PIDFD_GETFD, syscall(PIDFD_OPEN, pid, 0), 10, 0));
    TRY("pidfd_getfd_all", ({
        long got = -1, fd = syscall(PIDFD_OPEN, pid, 0);
        for (int number = 0; got < 0 && number < 64; number++) got = syscall(PIDFD_GETFD, fd, number, 0);
        got;
    }));
    TRY("kcmp", syscall(SYS_kcmp, pid, getpid(), 0, 0, 0));
    TRY("move_pages", syscall(SYS_move_pages, pid, 0, 0, 0, 0, 0));
    TRY("migrate_pages", syscall(SYS_migrate_pages, pid, 0, 0, 0));
    TRY("get_robust_list", syscall(SYS_get_robust_list, pid, page, page + 8));
    TRY("prlimit_other", syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &none, 0));
    TRY("prlimit_read_other", syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, 0, &old));
    TRY("prlimit_raise", syscall(SYS_prlimit64, 0, RLIMIT_NPROC, &more, 0));
    TRY("setrlimit_raise", setrlimit(RLIMIT_NOFILE, (void *)&more));

    // Signals to what is outside.
    TRY("kill", kill(pid, SIGKILL));
    TRY("pidfd_open", syscall(PIDFD_OPEN, pid, 0));
    TRY("forged_segv", forged_fault(SIGSEGV));
    TRY("forged_bus", forged_fault(SIGBUS));

    // The file view.
    TRY("mount", mount("none", "/tmp", "tmpfs", 0, 0));
    TRY("mount_bind", mount("/usr", "/tmp", 0, MS_BIND, 0));
    TRY("mount_proc", mount("proc", "/tmp", "proc", 0, 0));
    TRY("mount_cgroup2", mount("cgroup2", "/tmp", "cgroup2", 0, 0));
    TRY("mount_cgroup1", mount("cgroup", "/tmp", "cgroup", 0, "memory"));
    TRY("remount_writable", mount(0, "/usr", 0, MS_REMOUNT | MS_BIND, 0));
    TRY("umount2", umount2("/proc/kcore", MNT_DETACH));
    TRY("pivot_root", syscall(SYS_pivot_root, "/tmp", "/tmp"));
    TRY("chroot", chroot("/tmp"));
    TRY("open_tree", syscall(OPEN_TREE, AT_FDCWD, "/", 1));
    TRY("open_tree_attr", syscall(OPEN_TREE_ATTR, AT_FDCWD, "/", 1, page, 32));
    TRY("move_mount", syscall(MOVE_MOUNT, AT_FDCWD, "/tmp", AT_FDCWD, "/home", 0));
    TRY("fsopen", syscall(FSOPEN, "tmpfs", 0));
    TRY("fsconfig", syscall(FSCONFIG, 0, 0, "source", "x", 0));
    TRY("fsmount", syscall(FSMOUNT, 0, 0, 0));
    TRY("fspick", syscall(FSPICK, AT_FDCWD, "/", 0));
    TRY("mount_setattr", syscall(MOUNT_SETATTR, AT_FDCWD, "/usr", 0, page, 32));
    TRY("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", &handle, &place, 0));
    TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, open("/usr", O_RDONLY), &handle, O_RDONLY));
    TRY("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
    TRY("swapon", syscall(SYS_swapon, "/tmp/swap", 0));
    TRY("swapoff", syscall(SYS_swapoff, "/tmp/swap"));
    TRY("quotactl", syscall(SYS_quotactl, 0x800001 << 8, 0, 0, page));
    TRY("quotactl_fd", syscall(QUOTACTL_FD, open("/tmp", O_RDONLY), 0x800001 << 8, 0, page));
    TRY("mknod_block", mknod("/tmp/disk", S_IFBLK | 0666, 254 << 8));
    TRY("mknod_char", mknod("/tmp/mem", S_IFCHR | 0666, 1 << 8 | 1));

    // Namespaces.
    TRY("unshare_user", unshare(CLONE_NEWUSER));
    TRY("unshare_mount", unshare(CLONE_NEWNS));
    TRY("unshare_pid", unshare(CLONE_NEWPID));
    TRY("unshare_net", unshare(CLONE_NEWNET));
    TRY("unshare_ipc", unshare(CLONE_NEWIPC));
    TRY("unshare_uts", unshare(CLONE_NEWUTS));
    TRY("unshare_cgroup", unshare(CLONE_NEWCGROUP));
    TRY("unshare_time", unshare(0x80));
    TRY("clone_user", clone_with(CLONE_NEWUSER));
    TRY("clone_user_high_bits", clone_with(CLONE_NEWUSER | 0xffffffff00000000));
    TRY("clone_mount", clone_with(CLONE_NEWNS));
    TRY("clone_net", clone_with(CLONE_NEWNET));
    TRY("clone3_user", clone3_with(CLONE_NEWUSER));
    TRY("clone3_plain", clone3_with(0));
    TRY("clone3_into_cgroup", clone3_with(0x200000000));
    TRY("setns_own", syscall(SYS_setns, open("/proc/self/ns/net", O_RDONLY), 0));
    TRY("setns_pidfd", syscall(SYS_setns, syscall(PIDFD_OPEN, 1, 0), CLONE_NEWNS));
    TRY("sethostname", sethostname("x", 1));
    TRY("setdomainname", setdomainname("x", 1));

    // The kernel itself.
    TRY("add_key", syscall(SYS_add_key, "user", "x", "x", 1, -4));
    TRY("request_key", syscall(SYS_request_key, "user", "x", 0, -4));
    TRY("keyctl", syscall(SYS_keyctl, 0, -5, 1));
    TRY("io_uring_setup", syscall(SYS_io_uring_setup, 4, page));
    TRY("io_uring_enter", syscall(SYS_io_uring_enter, 0, 0, 0, 0, 0, 0));
    TRY("io_uring_register", syscall(SYS_io_uring_register, -1, 0, 0, 0));
    TRY("userfaultfd", syscall(SYS_userfaultfd, 1));
    TRY("bpf", syscall(SYS_bpf, 0, page, 48));
    TRY("perf_event_open", ({ page[4] = 64; page[0] = 1; syscall(SYS_perf_event_open, page, 0, -1, -1, 0); }));
    TRY("init_module", syscall(SYS_init_module, page, 64, ""));
    TRY("finit_module", syscall(SYS_finit_module, 0, "", 0));
    TRY("delete_module", syscall(SYS_delete_module, "x", 0));
    TRY("kexec_load", syscall(SYS_kexec_load, 0, 0, 0, 0));
    TRY("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, 0));
    TRY("acct", syscall(SYS_acct, "/tmp/acct"));
    TRY("syslog", syscall(SYS_syslog, 3, page, sizeof page));
    TRY("vhangup", syscall(SYS_vhangup));
    TRY("settimeofday", settimeofday(&now, 0));
    TRY("clock_settime", syscall(SYS_clock_settime, 0, &then));
    TRY("adjtimex", ({ struct timex zero = {0}; adjtimex(&zero); }));
#ifdef __x86_64__
    TRY("kexec_file_load", syscall(SYS_kexec_file_load, 0, 0, 0, 0, 0));
    TRY("iopl", syscall(SYS_iopl, 3));
    TRY("ioperm", syscall(SYS_ioperm, 0x80, 1, 1));
    TRY("modify_ldt", syscall(SYS_modify_ldt, 0, page, 16));
    TRY("x32_getpid", syscall(0x40000000 | SYS_getpid));
    TRY("x32_ptrace", syscall(0x40000000 | 521, PTRACE_TRACEME, 0, 0, 0));
    TRY("x32_mount", syscall(0x40000000 | SYS_mount, "none", "/tmp", "tmpfs", 0, 0));
#endif
    return 2;
}
