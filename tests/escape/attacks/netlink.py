# Asks the kernel to change the network: the answer carries the error.
import socket, struct
RTM_NEWLINK, RTM_NEWROUTE, RTM_DELROUTE, RTM_NEWADDR = 16, 24, 25, 20
REQUEST, ACK, CREATE = 1, 4, 0x400


def asked(kind, body):
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    link.settimeout(5)
    link.send(struct.pack("IHHII", 16 + len(body), kind, REQUEST | ACK | CREATE, 1, 0) + body)
    answer = link.recv(65536)
    error = -struct.unpack_from("i", answer, 16)[0]
    if error:
        raise OSError(error, "netlink")


attempt({
    "route": lambda: asked(RTM_NEWROUTE, struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack("HHI", 8, 4, 1)),
    "delroute": lambda: asked(RTM_DELROUTE, struct.pack("BBBBBBBBI", 2, 8, 0, 0, 254, 4, 0, 1, 0) + struct.pack("HH4B", 8, 1, 127, 0, 0, 0)),
    "address": lambda: asked(RTM_NEWADDR, struct.pack("BBBBI", 2, 24, 0, 0, 1) + struct.pack("HH4B", 8, 2, 192, 0, 2, 1)),
    "link": lambda: asked(RTM_NEWLINK, struct.pack("BxHiII", 0, 0, 1, 0, 1)),
    "dummy": lambda: asked(RTM_NEWLINK, struct.pack("BxHiII", 0, 0, 0, 0, 0) + struct.pack("HH", 16, 18) + struct.pack("HH", 9, 1) + b"dummy\0\0\0"),
}[sys.argv[1]])
