#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Large bodies: they delay no other request, and the memory that requests hold is bounded."""
import http.client
import json
import os
import socket
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from serving import Server, post_head, read_answer, status_of

MIB = 1 << 20
TEXT = "/v1/completions"


def completion(**more):
    return json.dumps(dict({"prompt": "Once", "max_tokens": 1, "temperature": 0}, **more)).encode()


class Bodies(serving.TestCase):
    def text_of(self, body):
        return self.post(TEXT, body)["choices"][0]["text"]

    def held(self):
        return self.server.metric("request_memory_bytes")

    def wait_for_nothing_held(self):
        command.wait_for(lambda: self.held() == 0, "memory of requests is held")

    def test_a_large_body_delays_no_other_request(self):
        body = completion(unknown=["a string of some length"] * 40000, words="x" * 2 * MIB)
        expected = self.text_of(completion())
        waits, parses = [], []
        for _ in range(7):
            with self.server.connect() as s:
                s.sendall(post_head(TEXT, len(body)) + body[:-1])
                time.sleep(0.05)
                began = time.monotonic()
                s.sendall(body[-1:])
                self.assertEqual(self.server.get("/health")[0], 200)
                waits.append(time.monotonic() - began)
                answer = read_answer(s)
                parses.append(time.monotonic() - began)
            self.assertEqual(status_of(answer), 200)
            self.assertEqual(json.loads(answer.partition(b"\r\n\r\n")[2])["choices"][0]["text"],
                             expected)
        wait, parse = statistics.median(waits), statistics.median(parses)
        print(f"/health beside a body of {len(body) / MIB:.1f} MiB: {1000 * wait:.1f} ms, "
              f"the body {1000 * parse:.1f} ms")
        self.assertLess(wait, parse / 2)

    def test_bad_json_in_a_large_body(self):
        for body in (b"x" * 100000, b'{"prompt":"' + b"x" * 100000, b"[" + b"0," * 60000 + b"0]"):
            self.post(TEXT, body, 400)
        self.post("/api/show", b"x" * 100000, 400)
        self.wait_for_nothing_held()

    def test_json_that_needs_too_much_memory(self):
        before = self.server.metric("resident_memory_bytes")
        for values in (b"[" + b"{}," * 300000 + b"{}]", b"[" + b"0," * 1000000 + b"0]"):
            body = b'{"prompt":"Once","unknown":' + values + b"}"
            self.assertIn("KiB", self.post(TEXT, body, 413)["error"]["message"])
        self.wait_for_nothing_held()
        self.assertLess(self.server.metric("resident_memory_bytes") - before, 8 * MIB)

    def test_memory_of_a_translation_is_held(self):
        blocks = [{"type": "tool_use"}] * 11000
        body = {"max_tokens": 1, "messages": [{"role": "assistant", "content": blocks},
                                             {"role": "user", "content": "Hi."}]}
        answer = self.post("/v1/messages", json.dumps(body).encode(), 413)
        self.assertIn("KiB", answer["error"]["message"])
        items = [{"type": "function_call"}] * 11000
        self.post("/v1/responses", json.dumps({"input": items}).encode(), 413)
        self.wait_for_nothing_held()

    def test_too_many_tools_are_refused_by_their_number(self):
        for path, more in (("/v1/messages", {"messages": [{"role": "user", "content": "Hi."}]}),
                           ("/v1/responses", {"input": "Hi."})):
            body = dict({"max_tokens": 1, "tools": [{"type": "function"}] * 20000}, **more)
            answer = self.post(path, json.dumps(body).encode(), 400)
            self.assertIn("at most 128", answer["error"]["message"])
        self.wait_for_nothing_held()

    def test_marks_in_strings_cost_nothing(self):
        self.text_of(completion(unknown='{[,:"\\' * 300000))
        self.wait_for_nothing_held()

    def test_clients_share_the_planned_memory(self):
        body, n_refused, holding = b"x" * (4 * MIB - 1), 0, []
        for _ in range(12):
            s = self.server.connect()
            s.sendall(post_head(TEXT, 4 * MIB))
            try:
                s.sendall(body)
            except OSError:  # the server has answered and closed
                pass
            holding.append(s)
        command.wait_for(lambda: self.held() >= 20 * MIB, "the bodies are not held")
        self.assertLessEqual(self.held(), 32 * MIB)
        self.assertEqual(self.server.get("/health")[0], 200)
        for s in holding:
            s.settimeout(0.2)
            try:
                answer = read_answer(s)
            except TimeoutError:
                answer = b""
            n_refused += status_of(answer) == 503 and b"\r\nRetry-After: 1\r\n" in answer
            s.close()
        self.assertGreaterEqual(n_refused, 3)
        self.wait_for_nothing_held()
        self.text_of(completion())

    def test_requests_in_progress_hold_memory(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port,
                                                timeout=command.TIMEOUT)
        connection.request("POST", TEXT, completion(
            max_tokens=900, ignore_eos=True, stream=True, n=4))
        answer = connection.getresponse()
        answer.read(100)
        self.assertGreater(self.held(), 900 * 4 * 4)
        answer.close()
        connection.close()
        self.wait_for_nothing_held()

    def test_answers_on_their_way_are_held(self):
        # The answer is many times as long as its request, and these clients do not read it.
        body = json.dumps({"content": "a b " * 60000, "with_pieces": True}).encode()
        before, slow = self.server.metric("resident_memory_bytes"), []
        for _ in range(40):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            s.connect(("127.0.0.1", self.server.port))
            self.addCleanup(s.close)
            s.sendall(post_head("/tokenize", len(body)) + body)
            slow.append(s)
        end = time.monotonic() + command.TIMEOUT
        while self.server.metric("requests_total") < 40 or self.server.metric("connections") > 41:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        time.sleep(1)
        self.assertLessEqual(self.held(), 32 * MIB)
        self.text_of(completion())
        grown = self.server.metric("resident_memory_bytes") - before
        print(f"40 slow readers: {grown / MIB:+.0f} MiB")
        if not os.environ.get("TERN_SANITIZE"):  # sanitizers keep freed memory
            self.assertLess(grown, 64 * MIB)  # 100 MiB and more without accounting
        for s in slow:
            s.close()
        self.wait_for_nothing_held()

    def test_a_short_text_with_a_long_answer(self):
        body = json.dumps({"content": "a b " * 700000, "with_pieces": True})
        status, _, data = self.server.request("POST", "/tokenize", body)
        self.assertEqual(status, 413, data[:300])
        self.wait_for_nothing_held()

    def test_the_plan_names_it(self):
        with Server("--ram", "48M") as small:
            small.stop()
            self.assertRegex(small.err, r"memory: up to [\d.]+ MiB of [\d.]+ MiB, of these "
                                        r"[\d.]+ MiB for bodies and prompts of requests")


if __name__ == "__main__":
    command.main()
