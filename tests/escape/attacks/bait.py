# Searches what a command can read for the token that only the host has: environments, arguments, keys, messages.
import glob
found = []
for pattern in ("/proc/*/environ", "/proc/*/cmdline", "/proc/*/maps", "/proc/keys", "/proc/kmsg", "/dev/shm/*",
                "/tmp/*", "/run/*", "/home/*/*", "/root/*", "/mnt/*", "/etc/*", "/var/*/*"):
    for path in glob.glob(pattern):
        if path.startswith(f"/proc/{os.getpid()}/") or path.startswith(("/proc/self/", "/proc/thread-self/")):
            continue
        try:
            if os.path.isfile(path) and BAIT["token"].encode() in open(path, "rb").read(1 << 20):
                found.append(path)
        except OSError:
            pass
verdict(f"reached {found}" if found else "not found")
