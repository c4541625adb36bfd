# SPDX-License-Identifier: MIT
"""A model hub on this computer, for tests of tern pull (standard library only)."""
import hashlib
import http.server
import json
import re
import socket
import ssl
import threading

REVISION = "0123456789abcdef0123456789abcdef01234567"
API = re.compile(r"/api/models/([^/]+/[^/]+)/(revision|tree)/([^/?]+)$")
FILE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)$")


def entry(name, data, is_large=True):
    """A file as the tree API lists it."""
    row = {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
    if is_large:
        row["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data),
                      "pointerSize": 134}
    return row


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        hub = self.server.hub
        with hub.lock:
            hub.requests.append((self.path, dict(self.headers)))
        for pattern, action in hub.actions:
            if re.search(pattern, self.path) and action(self):
                return
        api, file = API.match(self.path), FILE.match(self.path)
        if api and api.group(1) in hub.repositories:
            self.answer_api(hub, api.group(1), api.group(2))
        elif file and file.group(3) in hub.repositories.get(file.group(1), {}):
            self.send_file(hub.repositories[file.group(1)][file.group(3)])
        else:
            self.send_text(404, "no such thing")

    def answer_api(self, hub, name, kind):
        if kind == "revision":
            self.send_text(200, json.dumps({"id": name, "sha": REVISION}))
        else:
            files = hub.repositories[name].items()
            rows = hub.listing or [entry(file, data, len(data) > 100000) for file, data in files]
            self.send_text(200, json.dumps(rows))

    def send_text(self, status, text, **headers):
        body = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def redirect(self, location, status=302):
        self.send_text(status, "elsewhere", Location=location)
        return True

    def begin_file(self, data, ranges=True):
        """Sends the head of a file's response. Returns the requested bytes."""
        wanted = re.match(r"bytes=(\d+)-$", self.headers.get("Range", ""))
        first = int(wanted.group(1)) if wanted and ranges else 0
        if first >= len(data) > 0:
            self.send_text(416, "")
            return b""
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        return data[first:]

    def send_file(self, data, ranges=True):
        try:
            self.wfile.write(self.begin_file(data, ranges))
        except OSError:  # the client has disconnected
            self.close_connection = True
        return True

    def cut(self, data, n_bytes, ranges=True):
        """Sends n_bytes of the file, then closes the connection."""
        body = self.begin_file(data, ranges)
        self.wfile.write(body[:n_bytes])
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)
        return True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # clients are killed in these tests


class Hub:
    """`repositories`: {"owner/name": {"file": bytes}}; `actions`: [(pattern of the path, function
    of the handler)], the first that returns true has answered; `listing`: rows instead of the
    repository's own."""

    def __init__(self, repositories, certificate=None, port=0):
        self.repositories = repositories
        self.actions = []
        self.listing = None
        self.requests = []
        self.lock = threading.Lock()
        self.server = Server(("127.0.0.1", port), Handler)
        self.server.hub = self
        scheme = "http"
        if certificate:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.address = f"{scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def reset(self):
        self.actions, self.listing, self.requests = [], None, []

    def files_requested(self):
        return [(path, headers) for path, headers in self.requests if "/resolve/" in path]
