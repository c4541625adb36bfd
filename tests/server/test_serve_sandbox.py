#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern serve drops the rights to open files, start programs and connect to others once it listens.
test_sandbox.c tests what the filter refuses."""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from serving import Server

LINUX = command.NATIVE and sys.platform.startswith("linux")


def modes(server):
    """The kernel's state of each thread: (Seccomp, NoNewPrivs)."""
    found = []
    tasks = f"/proc/{server.process.pid}/task"
    for task in os.listdir(tasks):
        with open(f"{tasks}/{task}/status", encoding="ascii", errors="replace") as f:
            text = f.read()
        found.append(tuple(int(re.search(rf"^{key}:\s*(\d+)", text, re.MULTILINE).group(1))
                           for key in ("Seccomp", "NoNewPrivs")))
    return found


class Sandbox(command.TestCase):
    def ask(self, server):
        """An answer, which needs every thread, and the memory in use, which is read from /proc."""
        status, answer = server.post("/v1/chat/completions",
                                     {"messages": [{"role": "user", "content": "Hi"}],
                                      "max_tokens": 4, "temperature": 0})
        self.assertEqual(status, 200)
        self.assertGreater(server.metric("resident_memory_bytes"), 1 << 20)
        return answer["choices"][0]["message"]["content"]

    def test_reports_are_true(self):
        log = command.scratch("log")
        with Server("--log", log, "--threads", "3") as server:
            inside = self.ask(server)
            is_in = server.metric("sandboxed") == 1
            self.assertEqual(server.get("/props")[1]["sandboxed"], is_in)
            if LINUX:
                found = modes(server)
                self.assertGreaterEqual(len(found), 4)
                if is_in:
                    self.assertEqual(set(found), {(2, 1)})
            server.stop()
            said = "sandbox: no more files, programs or connections" if is_in else "no sandbox: "
            if not command.RUNNER and os.name != "nt":
                self.assertEqual(server.code, 0)
                self.assertIn(said, server.err)
                self.assertEqual(len(command.read_bytes(log).splitlines()), 4)
        with Server("--no-sandbox") as server:
            self.assertEqual(self.ask(server), inside)
            self.assertEqual(server.metric("sandboxed"), 0)
            self.assertFalse(server.get("/props")[1]["sandboxed"])
            if LINUX and is_in:
                self.assertNotEqual(set(modes(server)), {(2, 1)})

    @unittest.skipUnless(LINUX, "Linux has one")
    def test_release_builds_of_linux_have_one(self):
        if os.environ.get("TERN_SANITIZE"):
            self.skipTest("sanitizers read files at the end")
        with Server() as server:
            is_in = server.metric("sandboxed") == 1
            server.stop()
        if not is_in:  # a kernel or container without seccomp
            self.assertRegex(server.err, "no sandbox: (this kernel has no|the kernel refuses)")


if __name__ == "__main__":
    command.main()
