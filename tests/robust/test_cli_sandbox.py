#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern run and tern chat drop sockets, programs and files that no command needs once they compute.
test_sandbox.c tests what the filter refuses."""
import contextlib
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from command import NATIVE, scratch
from terminal import Terminal

LINUX = NATIVE and sys.platform.startswith("linux")
INSIDE, OUTSIDE = (2, 1), (0, 0)


def modes(pid):
    """The kernel's state of each thread: {(Seccomp, NoNewPrivs)}."""
    found = set()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="ascii", errors="replace") as f:
            text = f.read()
        found.add(tuple(int(re.search(rf"^{key}:\s*(\d+)", text, re.MULTILINE).group(1))
                        for key in ("Seccomp", "NoNewPrivs")))
    return found


def own_modes():
    return modes(os.getpid())


@unittest.skipUnless(LINUX, "Linux has one")
class Sandbox(command.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        said = command.tern("run", command.model(), "Hi", "-n", "1", "-v", "--threads", "1").err
        cls.exists = "\nsandbox: " in said
        cls.inside = INSIDE if cls.exists else next(iter(own_modes()))

    @contextlib.contextmanager
    def started(self, *arguments):
        """A process that has written the start of an answer and is still running."""
        process = subprocess.Popen(
            command.argv(*arguments, "--threads", "2", "-q"), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=command.environment())
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=command.TIMEOUT)

    def test_release_builds_have_one(self):
        if os.environ.get("TERN_SANITIZE"):
            self.skipTest("sanitizers read files at the end")
        if not self.exists:  # a kernel or container without seccomp
            said = self.ok("run", command.model(), "Hi", "-n", "1", "-v").err
            self.assertRegex(said, "no sandbox: (this kernel has no|the kernel refuses)")

    def test_run(self):
        endless = ("run", command.model(), "--raw", "-p", "Once", "-n", "1000", "--ignore-eos",
                   "--caps", "off")
        for flags, expected in (((), self.inside), (("--no-sandbox",), next(iter(own_modes())))):
            with self.started(*endless, *flags) as process:
                process.stdout.read(1)
                self.assertEqual(modes(process.pid), {expected})

    def test_speculation_is_not_turned_off(self):
        """Older kernels do so unless asked not to, and computing is slower then."""
        def says(pid):
            with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
                return [line for line in f if line.startswith("Speculation")]
        with self.started("run", command.model(), "--raw", "-p", "Once", "-n", "1000",
                          "--ignore-eos", "--caps", "off") as process:
            process.stdout.read(1)
            self.assertEqual(says(process.pid), says(os.getpid()))

    def test_remaining_files_are_reported(self):
        with_one = ("no more files, programs or sockets", "no more programs or sockets")
        for flags, said in (((), with_one[0]), (("--prefix-cache", scratch("prefix")), with_one[1]),
                            (("--no-sandbox",), None)):
            err = self.ok("run", command.model(), "Hi", "-n", "2", "-v", "--threads", "1",
                          *flags).err
            if not said:
                self.assertIn("no sandbox: --no-sandbox", err)
            elif self.exists:
                self.assertIn(f"\nsandbox: {said}\n", err)
            self.assertNotIn("sandbox", self.ok("run", command.model(), "Hi", "-n", "2",
                                                *flags).err)
        self.assertTrue(os.path.exists(scratch("prefix")))

    def test_chat(self):
        for flags, expected in (((), self.inside), (("--jsonl",), self.inside),
                                (("--no-sandbox",), next(iter(own_modes())))):
            line = b'{"role":"user","content":"Hi"}\n' if flags == ("--jsonl",) else b"Hi\n"
            with self.started("chat", command.model(), *flags, "-n", "3") as process:
                process.stdin.write(line)
                process.stdin.flush()
                process.stdout.read(1)
                self.assertEqual(modes(process.pid), {expected})

    def test_the_editor_is_outside(self):
        script, seen = scratch("look.py"), scratch("seen")
        with open(script, "w", encoding="utf-8") as f:
            f.write("import re, sys\n"
                    "text = open('/proc/self/status').read()\n"
                    f"open({seen!r}, 'w').write(re.search(r'Seccomp:\\s*(\\d)', text).group(1))\n"
                    "open(sys.argv[1], 'w').write('Hello')\n")
        with Terminal("chat", command.model(), "-n", "2", "-q",
                      env={"VISUAL": "", "EDITOR": f"{sys.executable} {script}"}) as t:
            t.expect(b"> ")
            for _ in range(2):
                t.send(b"\x18\x05")
                t.expect(b"Hello")
                t.send(b"\n")
                t.expect(rb"\r\n.*\n> ")
            self.assertEqual(modes(t.process.pid), {self.inside})
            t.send(b"/exit\n")
            self.assertEqual(t.finish()[1], 0)
        with open(seen, encoding="ascii") as f:
            self.assertEqual(int(f.read()), next(iter(own_modes()))[0])

    @unittest.skipIf(os.environ.get("TERN_SANITIZE"), "there is no sandbox")
    def test_the_helper_ends_with_its_process(self):
        for end in (lambda t: t.send(b"/exit\n"), lambda t: os.kill(t.process.pid, 9)):
            with Terminal("chat", command.model(), "-q") as t:
                t.expect(b"> ")
                children = f"/proc/{t.process.pid}/task/{t.process.pid}/children"
                with open(children, encoding="ascii") as f:
                    helpers = f.read().split()
                self.assertEqual(len(helpers), 1)
                end(t)
                command.wait_for(lambda: not os.path.exists(f"/proc/{helpers[0]}/exe"),
                                 "the helper remains")


if __name__ == "__main__":
    command.main()
