# What a fresh command inherits: three descriptors, and nothing behind them that leads anywhere.
fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
# The listing itself holds one.
fds = [fd for fd in fds if os.path.exists(f"/proc/self/fd/{fd}")]
kinds = {fd: os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in fds}
if sys.argv[1] == "list":
    verdict(" ".join(map(str, fds)))
if sys.argv[1] == "kinds":
    verdict(" ".join(kinds.values()))
if sys.argv[1] == "sockets":
    verdict("reached" if any(kind == "socket" for kind in kinds.values()) else "none")
