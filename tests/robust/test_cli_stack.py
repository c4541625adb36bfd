#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern with a small stack: refused with numbers, or sufficient for every command at every CPU
level.

The overhead of sanitizers per frame depends on the width of the registers; their builds are only
tested for the refusal.  Linux only."""
import os
import re
import resource
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import DEMO, NATIVE, scratch

IS_SANITIZED = bool(os.environ.get("TERN_SANITIZE"))


@unittest.skipUnless(NATIVE and sys.platform.startswith("linux"), "needs Linux")
class SmallStack(command.TestCase):
    def setUp(self):
        self.model = command.model()
        self.out = scratch(self.id() + ".tern")

    def start(self, kib, *arguments, environment_bytes=0):
        """The environment is on the stack too, so it contains only the given bytes."""
        env = {"PATH": os.environ["PATH"], "FILLER": "x" * environment_bytes}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH"):
            if name in os.environ:
                env[name] = os.environ[name]
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        return subprocess.Popen(
            command.argv(*arguments), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (kib << 10, hard)))

    def run_with(self, kib, *arguments, stdin=b"", environment_bytes=0):
        with self.start(kib, *arguments, environment_bytes=environment_bytes) as process:
            out, err = process.communicate(stdin, timeout=command.TIMEOUT)
        return process.returncode, out, err.decode()

    def commands(self):
        """(arguments, standard input)"""
        m = self.model
        return ((("convert", DEMO, "-o", self.out, "-q"), b""), (("info", m), b""),
                (("info", DEMO), b""), (("list",), b""), (("tokenize", m), b"Once"),
                (("run", m, "-p", "Once", "-n", "3"), b""), (("probe",), b""),
                (("chat", m, "-n", "3"), b"Hello\n/save " + scratch("s.json").encode() + b"\nMore\n"),
                (("chat", m, "-n", "3", "--jsonl"), b'{"role":"user","content":"Hi"}\n'),
                (("embed", m), b"one\ntwo\n"), (("verify", m), b""))

    def test_refused_with_numbers(self):
        if self.run_with(32, "--version")[0] != 0:
            self.skipTest("a sanitizer needs more by itself")
        for arguments, stdin in self.commands():
            for kib, filler in ((32, 0), (52, 0), (84, 40000)):
                with self.subTest(arguments=arguments, kib=kib):
                    code, out, err = self.run_with(kib, *arguments, stdin=stdin,
                                                   environment_bytes=filler)
                    self.assertEqual((code, out), (3, b""), err)
                    found = re.search(r"the stack may have (\d+) bytes, arguments and environment "
                                      r"hold (\d+) of them, tern needs 53248 more; raise the "
                                      r"limit: ulimit -s (\d+)\n", err)
                    self.assertTrue(found, err)
                    limit, held, wanted = map(int, found.groups())
                    self.assertEqual(limit, kib << 10)
                    self.assertGreater(held, filler)
                    self.assertGreater(53248 + held, limit)
                    self.assertGreater(wanted << 10, 53248 + held)
                    self.assertFalse(os.path.exists(self.out))

    def check_enough(self, *arguments, stdin=b"", kib=64, environment_bytes=0):
        code, _, err = self.run_with(kib, *arguments, stdin=stdin,
                                     environment_bytes=environment_bytes)
        self.assertEqual(code, 0, f"{arguments}: {err}")

    @unittest.skipIf(IS_SANITIZED, "a sanitizer's frames are larger")
    def test_64_kib_are_enough(self):
        for arguments, stdin in self.commands():
            with self.subTest(arguments=arguments):
                self.check_enough(*arguments, stdin=stdin)
                self.check_enough(*arguments, stdin=stdin, kib=112, environment_bytes=46000)

    @unittest.skipIf(IS_SANITIZED, "a sanitizer's frames are larger")
    def test_at_every_cpu_level(self):
        verified = self.ok("verify", self.model).text.splitlines()
        levels = [line.split()[0] for line in verified if " with kernels of this level" in line]
        self.assertTrue(levels)
        for level in levels:
            for arguments in (("run", self.model, "-p", "Once", "-n", "2"),
                              ("bench", self.model, "-p", "4", "-n", "2", "-r", "1"),
                              ("logits", self.model, "--ids", "1 2 3", "-o", scratch("logits.f32"))):
                with self.subTest(level=level, command=arguments[0]):
                    self.check_enough(*arguments, "--cpu", level)

    @unittest.skipIf(IS_SANITIZED, "a sanitizer's frames are larger")
    def test_server(self):
        with self.start(64, "serve", self.model, "--port", "0") as process:
            address = process.stdout.readline().decode().strip()
            port = int(address.rsplit(":", 1)[1])
            import http.client
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=command.TIMEOUT)
            connection.request("POST", "/v1/completions", '{"prompt":"Once","max_tokens":3}')
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=command.TIMEOUT)
        self.assertEqual(process.returncode, 0)


if __name__ == "__main__":
    command.main()
