#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line of `tern serve`: addresses, keys, models, and refusals before it listens."""
import concurrent.futures
import http.client
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from serving import Server


class Command(command.TestCase):
    def setUp(self):
        self.env = command.environment()
        self.env.pop("TERN_API_KEY", None)

    def test_only_the_url_on_standard_output(self):
        with Server() as server:
            self.assertEqual(server.line, f"http://127.0.0.1:{server.port}")
            server.stop()
            self.assertEqual(server.out, b"")
            self.assertIn("model model0: ", server.err)

    @unittest.skipUnless(command.NATIVE and os.name == "posix", "signals")
    def test_the_end_does_not_wait_for_a_template(self):
        path = command.scratch("slow.jinja")
        with open(path, "w", encoding="utf-8") as f:
            f.write("{% set s = '\u00e9' * 4000000 %}{% for i in range(99) %}"
                    "{{ s[3999999 - i] }}{% endfor %}")
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
        with Server("--template", path) as server, \
                concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(server.post, "/v1/chat/completions", body)
            time.sleep(0.2)
            print(f"ended {1000 * server.stop():.0f} ms later (goal 200)")
            self.assertEqual(server.code, 0)
            try:
                status, error = answer.result(command.TIMEOUT)
                self.assertEqual(status, 503, error)
            except (ConnectionError, http.client.HTTPException):
                pass  # it ended before the answer was sent

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_an_address_that_cannot_be_written(self):
        """A reader of the address is not left waiting."""
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command.argv("serve", command.model(), "--port", "0", "-q"),
                                  stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                  timeout=command.TIMEOUT, check=False)
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stderr, rb"\Atern: error: the address [^\n]*\n\Z")

    def test_other_machines_need_a_key(self):
        model = command.model()
        for host in ("0.0.0.0", "::", "192.0.2.1"):
            error = self.refused(2, "serve", model, "--host", host, env=self.env)
            self.assertIn("key", error)
        self.assertIn("numeric", self.refused(2, "serve", model, "--host", "example.com"))
        env = dict(self.env, TERN_API_KEY="a b")
        self.refused(2, "serve", model, env=env)
        with Server("--host", "0.0.0.0", env=dict(self.env, TERN_API_KEY="k")) as server:
            server.key = "k"
            self.assertEqual(server.get("/v1/models")[0], 200)

    def test_unknown_headers_are_not_allowed(self):
        model = command.model()
        for origin in ("", "x", "example.com", "*", "https://", "://a", "https://example.com/",
                       "https://example.com/a", "http://example.com b"):
            error = self.refused(2, "serve", model, "--port", "0", "--allow-origin", origin)
            self.assertIn("--allow-origin", error)
        for host in ("", "http://localhost", "a:8080", "a/b", "*", "[::1]:80", "[::1", "::1"):
            error = self.refused(2, "serve", model, "--port", "0", "--allow-host", host)
            self.assertIn("--allow-host", error)
        good = ("--allow-origin", "null", "--allow-origin", "http://localhost:3000",
                "--allow-origin", "app://obsidian.md", "--allow-host", "laptop.local",
                "--allow-host", "[fe80::1]")
        with Server(*good) as server:
            status, headers, _ = server.request("GET", "/v1/models", headers={
                "Origin": "app://obsidian.md", "Host": "laptop.local:1234"})
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]),
                             (200, "app://obsidian.md"))

    def test_a_port_that_is_taken(self):
        with Server() as server:
            error = self.refused(4, "serve", command.model(), "--port", str(server.port))
            self.assertIn(str(server.port), error)
        self.refused(2, "serve", command.model(), "--port", "65536")

    def test_keys_are_not_taken_from_the_command_line(self):
        self.refused(2, "serve", command.model(), "--api-key", "k")
        empty = command.scratch("empty-key")
        open(empty, "w").close()
        self.refused(2, "serve", command.model(), "--api-key-file", empty)
        self.refused(5, "serve", command.model(), "--api-key-file", empty + ".none")

    def test_a_key_from_a_file(self):
        path = command.scratch("key")
        for data in (b"k", b"k\n", b"\xef\xbb\xbfk\r\n"):
            with open(path, "wb") as f:
                f.write(data)
            with self.subTest(data=data), Server("--api-key-file", path) as server:
                self.assertEqual(server.get("/v1/models")[0], 401)
                server.key = "k"
                self.assertEqual(server.get("/v1/models")[0], 200)

    def test_overlong_requests_are_refused(self):
        error = self.refused(3, "serve", command.model(), "--ram", "48M", "--parallel", "64", "-q")
        self.assertIn("64 answers", error)
        self.refused(2, "serve", command.model(), "--ctx", "2048")
        self.refused(5, "serve", command.scratch("no-such-model.tern"))

    def test_several_models(self):
        one, two = command.model(), command.scratch("second.tern")
        shutil.copy(one, two)
        with Server(models=[one, two]) as server:
            ids = server.model_ids()
            self.assertEqual(ids, ["model0", "second"])
            ask = {"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}
            texts = []
            for name in ids:
                status, answer = server.post("/v1/completions", dict(ask, model=name))
                self.assertEqual((status, answer["model"]), (200, name))
                texts.append(answer["choices"][0]["text"])
            self.assertEqual(texts[0], texts[1])
            self.assertEqual(server.post("/v1/completions", ask)[0], 400)
            self.assertEqual(server.post("/v1/completions", dict(ask, model="third"))[0], 404)
        self.refused(2, "serve", one, one)

    def test_several_models_are_planned_together(self):
        one, two = command.model(), command.scratch("twin.tern")
        shutil.copy(one, two)
        def sizes(*flags):
            with Server("--parallel", "1", "--kv", "f32", *flags, models=[one, two]) as server:
                server.stop()
                return re.findall(r"context (\d+) each, kv (\w+)", server.err)
        # With little memory both models get less, rather than the first one everything.
        (n_one, kv_one), (n_two, kv_two) = sizes("--ram", "24M")
        self.assertEqual((n_one, kv_one), (n_two, kv_two))
        self.assertNotEqual(sizes("--ram", "1G")[0], (n_one, kv_one))
        error = self.refused(3, "serve", one, two, "--ram", "48M", "--parallel", "16", "-q")
        self.assertIn("fewer models", error)
        self.assertIn('"twin"', error)


if __name__ == "__main__":
    command.main()
