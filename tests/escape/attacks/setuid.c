// Ways to leave a program behind that runs as its owner. In a folder of the host that belongs to root, the owner is root.
#include "attack.h"
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

enum { OPENAT2 = 437, FCHMODAT2 = 452 };

static int made(void) {
    unlink("planted");
    return open("planted", O_CREAT | O_RDWR, 0755);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    // 4000 = the owner's rights, 2000 = the group's.
    mode_t bit = strtol(argv[2], 0, 8);
    uint64_t how[3] = {O_CREAT | O_WRONLY, bit | 0755, 0}, unnamed[3] = {O_TMPFILE | O_WRONLY, bit | 0755, 0};
    int fd = made();
#ifdef SYS_chmod
    TRY("chmod", syscall(SYS_chmod, "planted", bit | 0755));
    TRY("chmod_high_bits", syscall(SYS_chmod, "planted", 0xffff0000ul | bit | 0755));
#endif
    TRY("fchmod", syscall(SYS_fchmod, fd, bit | 0755));
    TRY("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "planted", bit | 0755));
    TRY("fchmodat2", syscall(FCHMODAT2, AT_FDCWD, "planted", bit | 0755, 0));
    unlink("planted");
#ifdef SYS_open
    TRY("open", syscall(SYS_open, "planted", O_CREAT | O_WRONLY, bit | 0755));
    TRY("creat", syscall(SYS_creat, "planted", bit | 0755));
    TRY("mknod", syscall(SYS_mknod, "planted", S_IFREG | bit | 0755, 0));
#endif
    TRY("openat", syscall(SYS_openat, AT_FDCWD, "planted", O_CREAT | O_WRONLY, bit | 0755));
    TRY("tmpfile", syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_WRONLY, bit | 0755));
    TRY("openat2", syscall(OPENAT2, AT_FDCWD, "planted", how, sizeof how));
    TRY("openat2_tmpfile", syscall(OPENAT2, AT_FDCWD, ".", unnamed, sizeof unnamed));
    TRY("mknodat", syscall(SYS_mknodat, AT_FDCWD, "planted", S_IFREG | bit | 0755, 0));
    // What must still work: plain modes, and the argument that means nothing without O_CREAT.
    TRY("plain", ({ fd = made(); long r = syscall(SYS_fchmod, fd, 01777); r ? r : syscall(SYS_openat, AT_FDCWD, "planted", O_RDWR, 07777); }));
    return 2;
}
