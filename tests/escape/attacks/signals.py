# Signals to what must not hear them.
import signal


def all_of_them():
    os.fork() or os.execvp("sleep", ["sleep", "100"])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(-1, signal.SIGTERM)


def each(pid, numbers):
    for number in numbers:
        try:
            os.kill(pid, number)
        except OSError:
            pass


def owner():
    # The kernel sends the signal in the name of whoever owns the descriptor: here, a process of the host.
    import fcntl
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, int(BAIT["pid"]))


def handlers():
    # Process 1 hears nothing of its own namespace but what it handles.
    caught = next(line.split()[1] for line in open("/proc/1/status") if line.startswith("SigCgt:"))
    verdict("none" if int(caught, 16) == 0 else f"reached {caught}")


attempt({
    "host": lambda: os.kill(int(BAIT["pid"]), signal.SIGTERM),
    "host_group": lambda: os.kill(-int(BAIT["pid"]), signal.SIGTERM),
    "owner": owner,
    "all": all_of_them,
    "supervisor": lambda: each(1, range(1, 65)),
    "handlers": lambda: handlers(),
}[sys.argv[1]])
