# A socket of one family, type and protocol.
import socket
attempt(lambda: socket.socket(*map(int, sys.argv[1:4])).close())
