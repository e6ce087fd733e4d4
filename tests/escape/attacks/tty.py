# Types into a terminal's input, or changes how it is driven, by ioctl on a fresh pseudo terminal of its own.
import fcntl, struct
main, side = os.openpty()
os.setsid() if os.getpid() != os.getsid(0) else None
calls = {
    "TIOCSTI": (0x5412, b"x"),
    "TIOCSTI_high_bits": (0x5412, b"x"),
    "TIOCLINUX": (0x541C, b"\x03"),
    "TIOCSETD": (0x5423, struct.pack("i", 2)),
}


def high_bits():
    # The kernel takes 32 bits of the number; a filter that compares 64 is walked around.
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(16), ctypes.c_long(side), ctypes.c_ulong(0xFFFF00005412), b"x") < 0:
        raise OSError(ctypes.get_errno(), "ioctl")


attempt(high_bits if sys.argv[1].endswith("high_bits") else lambda: fcntl.ioctl(side, *calls[sys.argv[1]]) and None)
