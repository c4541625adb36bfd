# SPDX-License-Identifier: MIT
"""A running `tern serve` for tests, test cases that share one, and raw HTTP."""
import concurrent.futures
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command


class Server:
    """with Server() as s: s.post("/v1/chat/completions", {...})"""

    def __init__(self, *flags, models=None, env=None):
        models = [command.model()] if models is None else models
        self.process = subprocess.Popen(
            command.argv("serve", *models, "--port", "0", *flags),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=env or command.environment())
        self.line = self.process.stdout.readline().decode().strip()
        assert self.line.startswith("http://"), self.process.communicate()[1].decode()
        self.port = int(self.line.rsplit(":", 1)[1])
        self.key = None
        self.code = self.out = self.err = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.code is None:
            self.stop()

    def stop(self, how=signal.SIGTERM, timeout=command.TIMEOUT):
        """Stops it; returns the seconds that took."""
        began = time.monotonic()
        if os.name == "nt" or command.RUNNER:
            self.process.kill()
        else:
            self.process.send_signal(how)
        self.out, err = self.process.communicate(timeout=timeout)
        self.err = err.decode()
        self.code = self.process.returncode
        return time.monotonic() - began

    def is_running(self):
        return self.process.poll() is None

    def connect(self, host="127.0.0.1", timeout=command.TIMEOUT):
        return socket.create_connection((host, self.port), timeout=timeout)

    def raw(self, data, timeout=command.TIMEOUT):
        """Sends bytes; returns the response up to its end or to the end of the connection."""
        with self.connect(timeout=timeout) as s:
            s.sendall(data)
            return read_answer(s)

    def request(self, method, path, body=None, headers=None):
        """(status, headers, bytes)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=command.TIMEOUT)
        headers = dict(headers or {})
        if self.key:
            headers["Authorization"] = "Bearer " + self.key
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, answer.headers, data

    def get(self, path, **headers):
        status, _, data = self.request("GET", path, headers=headers)
        return status, json.loads(data)

    def post(self, path, body):
        status, _, data = self.request("POST", path, body)
        return status, json.loads(data)

    def blocks(self, path, body):
        """The blocks of a server-sent event stream, without comments."""
        status, headers, data = self.request("POST", path, dict(body, stream=True))
        assert status == 200, data
        assert headers["Content-Type"] == "text/event-stream", headers["Content-Type"]
        *blocks, rest = data.decode().split("\n\n")
        assert rest == "", rest
        return [block for block in blocks if not block.startswith(":")]

    def events(self, path, body):
        """The events of a stream as JSON values; OpenAI's last one is "[DONE]"."""
        events = []
        for block in self.blocks(path, body):
            assert block.startswith("data: "), block
            text = block.removeprefix("data: ")
            events.append(text if text == "[DONE]" else json.loads(text))
        return events

    def named_events(self, path, body):
        """The same for events with a line for their type."""
        events = []
        for block in self.blocks(path, body):
            name, text = block.split("\n")
            events.append(json.loads(text.removeprefix("data: ")))
            assert name == "event: " + events[-1]["type"], block
        return events

    def model_ids(self):
        return [model["id"] for model in self.get("/v1/models")[1]["data"]]

    def metric(self, name):
        _, _, data = self.request("GET", "/metrics")
        for line in data.decode().splitlines():
            if line.split(" ")[0].split("{")[0] == "tern_" + name:
                return float(line.split(" ")[-1])
        raise AssertionError(name)

    def wait_for_rest(self, seconds=60.0):
        """Waits until the engine is idle."""
        command.wait_for(lambda: self.metric("jobs") == 0, "jobs are still running", seconds)


class TestCase(command.TestCase):
    """Tests of one server: `self.server` with the demo model and the flags FLAGS."""
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start(*cls.FLAGS)

    @classmethod
    def start(cls, *flags, models=None):
        """Starts `cls.server`, which is stopped after the tests of the class."""
        cls.server = Server(*flags, models=models)
        cls.addClassCleanup(lambda: cls.server.stop())

    def post(self, path, body, status=200, server=None):
        """Posts to `server` (default: that of the class) and expects the status. Returns the
        answer."""
        got, answer = (server or self.server).post(path, body)
        self.assertEqual(got, status, answer)
        return answer


def template_file(template):
    """The path of a file with this chat template."""
    path = command.scratch(f"{hashlib.sha256(template.encode()).hexdigest()}.jinja")
    with open(path, "w", encoding="utf-8") as f:
        f.write(template)
    return path


def serve_template(template, models=None):
    """A server of the demo model, or of `models`, with this chat template."""
    return Server("--template", template_file(template), models=models)


def together(function, items):
    """[function(item) for item in items], concurrently."""
    with concurrent.futures.ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(function, items))


def choice_parts(events, i=0):
    """The deltas of choice i in the events of a chat stream, in order."""
    return [c for e in events if e != "[DONE]" for c in e["choices"] if c["index"] == i]


def choice_text(events, i=0):
    return "".join(c["delta"].get("content", "") for c in choice_parts(events, i))


def post_head(path, length):
    """The head of a raw request with a body of that length."""
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()


def read_answer(s):
    """Reads one answer by its length, or up to the end of the connection."""
    data = b""
    while True:
        head, mark, body = data.partition(b"\r\n\r\n")
        if mark and b"100 Continue" in head:
            data = body
            continue
        if mark:
            for line in head.split(b"\r\n"):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length" and len(body) >= int(value):
                    return data
        try:
            more = s.recv(65536)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


def status_of(data):
    return int(data.split(b" ", 2)[1]) if data.startswith(b"HTTP/1.1 ") else 0
