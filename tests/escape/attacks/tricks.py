# Paths that mean the host's root if a link or a parent is taken at its word.
paths = {
    "proc_self_root": ["/proc/self/root{file}", "/proc/thread-self/root{file}"],
    "proc_self_cwd": ["/proc/self/cwd/../../../../..{file}"],
    "proc_self_fd": [f"/proc/self/fd/{fd}/../../../../..{{file}}" for fd in range(3)] + [f"/dev/fd/{fd}{{file}}" for fd in range(3)],
    "dotdot": ["/" + "../" * 64 + ".{file}", "/workspace/../..{file}", "{file}"],
    "proc_1_root": ["/proc/1/root{file}", "/proc/1/cwd{file}", "/proc/1/task/1/root{file}"],
    "old_root": ["/mnt{file}", "/tmp{file}", "/.old{file}", "/oldroot{file}", "/newroot{file}"],
}[sys.argv[1]]
seen = "not visible"
for path in paths:
    try:
        seen = "reached " + open(path.format(**BAIT)).read()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
            seen = f"{path}: {name(error)}"
verdict(seen)
