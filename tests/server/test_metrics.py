#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""/metrics: refusals by reason, wherever they happen, and tokens of embeddings; the log has a line
for every refusal."""
import json
import os
import re
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from serving import Server, post_head, read_answer, status_of

CHAT = "/v1/chat/completions"


def refusals(server):
    """{reason: number}, without zeros."""
    _, _, data = server.request("GET", "/metrics")
    found = re.findall(r'^tern_refused_total\{reason="(\w+)"\} (\d+)$', data.decode(), re.MULTILINE)
    assert len(found) >= 8, data
    return {reason: int(n) for reason, n in found if int(n) > 0}


class Metrics(command.TestCase):
    def test_refusals_are_counted_by_reason(self):
        host = b"Host: localhost\r\n"
        long = {"prompt": "Once upon a time " * 4000}
        with Server() as server:
            self.assertEqual(refusals(server), {})
            for reason, ask in (
                    ("not_found", lambda: server.request("GET", "/none")),
                    ("not_found", lambda: server.post("/v1/completions", {"model": "none"})),
                    ("not_found", lambda: server.post("/v1/embeddings", {"model": "none"})),
                    ("method_not_allowed", lambda: server.request("GET", CHAT)),
                    ("bad_request", lambda: server.request("POST", CHAT, b"{")),
                    ("bad_request", lambda: server.request("POST", "/tokenize", b"[")),
                    ("bad_request", lambda: server.raw(b"GET /health\r\n\r\n")),
                    ("bad_request", lambda: server.post(CHAT, {"messages": []})),
                    ("bad_request", lambda: server.post(CHAT, {"messages": [{"role": "user"}]})),
                    ("context_length_exceeded", lambda: server.post("/v1/completions", long)),
                    ("forbidden", lambda: server.request("GET", "/", headers={"Host": "evil.x"})),
                    ("too_large", lambda: server.raw(b"POST / HTTP/1.1\r\n" + host +
                                                     b"Content-Length: 99999999\r\n\r\n")),
                    ("unsupported", lambda: server.raw(b"GET / HTTP/2.0\r\n" + host + b"\r\n"))):
                before = refusals(server)
                ask()
                before[reason] = before.get(reason, 0) + 1
                self.assertEqual(refusals(server), before)
            server.get("/health")
            self.assertEqual(server.get("/v1/models")[0], 200)
            self.assertEqual(refusals(server), before)

    def test_a_wrong_key_is_counted(self):
        with Server(env=command.environment(TERN_API_KEY="secret")) as server:
            self.assertEqual(server.get("/v1/models")[0], 401)
            server.key = "secret"
            self.assertEqual(refusals(server), {"unauthorized": 1})

    def test_the_busy_are_counted_and_logged(self):
        body = json.dumps({"prompt": "Once", "max_tokens": 60, "ignore_eos": True}).encode()
        path = command.scratch("log")
        with Server("--log", path) as server:
            clients = [server.connect() for _ in range(150)]
            for s in clients:
                s.sendall(post_head("/v1/completions", len(body)) + body)
            statuses = [status_of(a) for a in serving.together(read_answer, clients)]
            for s in clients:
                s.close()
            n_busy = statuses.count(503)
            self.assertEqual(n_busy + statuses.count(200), 150)
            self.assertGreater(n_busy, 0)
            def lines():
                return command.read_bytes(path).decode().splitlines()
            command.wait_for(lambda: len(lines()) >= 150, "lines are missing")
            self.assertEqual(sum(" 503 " in line for line in lines()), n_busy)
            self.assertEqual(refusals(server), {"busy": n_busy})

    def test_a_prompt_that_is_not_computed_is_not_cached(self):
        def begin(server, n_jobs, **body):
            """Sends a request; its answer is not read."""
            body = json.dumps(dict(body, stream=True, ignore_eos=True)).encode()
            client = server.connect()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(post_head("/v1/completions", len(body)) + body)
            command.wait_for(lambda: server.metric("jobs") == n_jobs, "the request is missing")
            return client

        with Server("--parallel", "1") as server:
            first = begin(server, 1, prompt="Once", max_tokens=1500)
            begin(server, 2, prompt="A fox " * 100).close()  # while it is queued
            command.wait_for(lambda: server.metric("jobs") < 2, "the queued request remains")
            first.close()
            server.wait_for_rest()
            self.assertLess(server.metric("prompt_tokens_total"), 100)
            self.assertLess(server.metric("cached_tokens_total"), 100)

    def test_embeddings_move_the_tokens(self):
        folder = command.shared("reference", "models", "tiny-embed-qwen3")
        with Server(models=[command.model(folder)]) as server:
            n = server.post("/v1/embeddings", {"input": ["one", "two words"]})[1]["usage"]
            self.assertEqual(server.metric("prompt_tokens_total"), n["prompt_tokens"])
            server.post("/api/embed", {"input": [5 * "word "]})
            self.assertGreater(server.metric("prompt_tokens_total"), n["prompt_tokens"] + 5)
            self.assertGreater(server.metric("prompt_seconds_total"), 0)


if __name__ == "__main__":
    command.main()
