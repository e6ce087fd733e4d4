"""A site on loopback: a folder over http and https, `/echo`, and git's smart protocol below `/git/`.

Arguments: folder, certificate, key. Prints the two ports, then serves until its standard input ends.
"""

import http.server, json, os, ssl, subprocess, sys, threading

folder, certificate, key = sys.argv[1:]


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *args):
        super().__init__(*args, directory=folder)

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def echo(self):
        seen = {"method": self.command, "path": self.path, "headers": self.headers.items()}
        seen["body"] = self.body().decode("latin-1")
        # A site that plays the relay, and says what is for one hop only.
        extra = [("X-Sixb-Denied", "origin"), ("Proxy-Authenticate", "Basic"), ("Set-Cookie", "a=b"), ("X-Site", "1")]
        self.answer(200, extra, json.dumps(seen).encode())

    def git(self):
        path, _, query = self.path.partition("?")
        env = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": folder, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }
        out = subprocess.run(["/usr/bin/git", "http-backend"], input=self.body(), env=env, capture_output=True).stdout
        head, _, body = out.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((int(value[:3]) for name, value in headers if name == "Status"), 200)
        self.answer(status, [pair for pair in headers if pair[0] != "Status"], body)

    def do_GET(self):
        if self.path.startswith("/echo"):
            self.echo()
        elif self.path.startswith("/git/"):
            self.git()
        else:
            super().do_GET()

    do_POST = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *args):
        pass


class Secure(Server):
    def finish_request(self, request, address):
        # The handshake belongs to the connection's own thread.
        request.settimeout(20)
        super().finish_request(context.wrap_socket(request, server_side=True), address)


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
servers = [Server(("127.0.0.1", 0), Handler), Secure(("127.0.0.1", 0), Handler)]
for server in servers:
    threading.Thread(target=server.serve_forever, daemon=True).start()
print(*(server.server_address[1] for server in servers), flush=True)
sys.stdin.read()
