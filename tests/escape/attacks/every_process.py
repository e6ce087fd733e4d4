# Looks into every process but its own: what may be opened of any of them?
# `argv` and `environ` are searched for the bait of the host, the rest must not open at all.
what = sys.argv[1]
own, seen = {os.getpid()}, []
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) in own:
        continue
    at = f"/proc/{pid}/{what}"
    try:
        if what in ("root", "cwd"):
            os.stat(f"{at}/.")
        elif what in ("fd", "map_files", "ns"):
            for entry in os.listdir(at):
                os.readlink(f"{at}/{entry}")
        elif what == "mem":
            os.close(os.open(at, os.O_RDWR))
        else:
            data = open(at, "rb").read()
            if what == "cmdline" and BAIT["token"].encode() not in data:
                continue
        seen.append(pid)
    except OSError:
        pass
# Its own kind (the shell above it, its siblings) is another matter: only process 1, the leaders and the host count.
verdict(f"reached {seen}" if seen else "nothing")
