# What two sandboxes could share: System V segments, POSIX segments, queues. `make` in one, `find` in the other.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
KEY, how, kind = 0x5178, sys.argv[1], sys.argv[2]


def checked(result):
    if result in (-1, None):
        raise OSError(ctypes.get_errno(), "refused")
    return result


def system_v(flags):
    return lambda: checked(libc.shmget(KEY, 4096, flags)) and None


attempt({
    ("make", "sysv"): system_v(0o1666),
    ("find", "sysv"): system_v(0o666),
    ("make", "posix"): lambda: open("/dev/shm/bait", "w").write("x") and None,
    ("find", "posix"): lambda: open("/dev/shm/bait").read(),
    ("make", "queue"): lambda: checked(libc.mq_open(b"/bait", os.O_CREAT | os.O_RDWR, 0o666, None)) and None,
    ("find", "queue"): lambda: checked(libc.mq_open(b"/bait", os.O_RDWR)) and None,
    ("make", "semaphore"): lambda: checked(libc.semget(KEY, 1, 0o1666)) and None,
    ("find", "semaphore"): lambda: checked(libc.semget(KEY, 1, 0o666)) and None,
}[how, kind])
