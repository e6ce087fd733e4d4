# A program in memory: it runs (many tools need that), with no more rights than any other.
fd = os.memfd_create("x")
os.write(fd, open("/usr/bin/id", "rb").read())
os.execve(f"/proc/self/fd/{fd}", ["id", "-u"], {})
