# A core dump goes to the host's handler (core_pattern `|program`, which runs as root out there) unless the limit is 1:
# so the limit must be 1, and stay.
import ctypes, resource
libc = ctypes.CDLL(None, use_errno=True)


def now():
    return resource.getrlimit(resource.RLIMIT_CORE)


try:
    if sys.argv[1] == "set":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.argv[1] == "prlimit":
        resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))
    if sys.argv[1] == "raw":
        libc.syscall(ctypes.c_long(160), ctypes.c_long(4), (ctypes.c_ulong * 2)(0, 0))
except OSError:
    pass
verdict("1" if now() == (1, 1) else f"reached {now()}")
