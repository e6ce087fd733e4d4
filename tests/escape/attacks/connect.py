# Connects to what listens on the host.
import socket


def connected(family, address):
    probe = socket.socket(family)
    probe.settimeout(3)
    probe.connect(address)


def sent(family, address):
    probe = socket.socket(family, socket.SOCK_DGRAM)
    probe.sendto(b"x", address)


attempt({
    "abstract": lambda: connected(socket.AF_UNIX, "\0" + BAIT["abstract"]),
    "abstract_datagram": lambda: sent(socket.AF_UNIX, "\0" + BAIT["abstract"] + "-datagram"),
    "path": lambda: connected(socket.AF_UNIX, BAIT["socket"]),
    "shown": lambda: connected(socket.AF_UNIX, "/data/shown.socket"),
    "tcp": lambda: connected(socket.AF_INET, ("127.0.0.1", int(BAIT["port"]))),
    "udp_out": lambda: sent(socket.AF_INET, ("192.0.2.1", 53)),
    "tcp6": lambda: connected(socket.AF_INET6, ("::1", int(BAIT["port"]))),
    "dbus": lambda: connected(socket.AF_UNIX, "/run/dbus/system_bus_socket"),
    "docker": lambda: connected(socket.AF_UNIX, "/var/run/docker.sock"),
}[sys.argv[1]])
