# One file call on one path: read, write, append, list, link, rename, truncate, …
how, path = sys.argv[1], sys.argv[2].format(ppid=os.getppid(), **BAIT)


def opened(flags, path=path):
    fd = os.open(path, flags)
    # Nothing is written: if the wall had a hole here, the host behind it should survive this test.
    return os.read(fd, 64) if flags & 3 == os.O_RDONLY else None


def reopened():
    # Through the magic link, a descriptor may be opened again with more rights than it has.
    fd = os.open(path, os.O_RDONLY)
    return opened(os.O_WRONLY, f"/proc/self/fd/{fd}")


def overwritten_in_use():
    # CVE-2019-5736: a program that runs in the sandbox, but comes from outside, is written through /proc/…/exe.
    fd = os.open(path, os.O_PATH)
    return opened(os.O_WRONLY, f"/proc/self/fd/{fd}")


def linked():
    os.link(path, "/workspace/linked")
    return os.stat("/workspace/linked").st_ino


def linked_by_descriptor():
    fd = os.open(path, os.O_RDONLY)
    os.link(f"/proc/self/fd/{fd}", "/workspace/linked", follow_symlinks=True)


def moved_in():
    open("/workspace/own", "w").close()
    os.rename("/workspace/own", path)


def listed():
    return len(os.listdir(path))


attempt({
    "read": lambda: opened(os.O_RDONLY),
    "write": lambda: opened(os.O_WRONLY),
    "both": lambda: opened(os.O_RDWR),
    "create": lambda: opened(os.O_WRONLY | os.O_CREAT),
    "list": listed,
    "readlink": lambda: os.readlink(path),
    "chdir": lambda: os.chdir(path),
    "stat": lambda: os.stat(path).st_size,
    "truncate": lambda: os.truncate(path, 0),
    "remove": lambda: os.unlink(path),
    "chmod": lambda: os.chmod(path, 0o777),
    "chown": lambda: os.chown(path, 0, 0),
    "link": linked,
    "link_fd": linked_by_descriptor,
    "rename_in": moved_in,
    "rename_out": lambda: os.rename(path, "/workspace/moved"),
    "reopen": reopened,
    "exe": overwritten_in_use,
}[how])
