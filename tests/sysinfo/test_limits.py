#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real limits: a control group (version 1, created below our own if allowed) and ulimit -v. Every
run succeeds or is refused with numbers; none is killed."""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE

LINUX = NATIVE and sys.platform.startswith("linux")
MIB = 1 << 20
DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "dist", "demo")
STORY = ("--raw", "-p", "Once upon a time", "--caps", "off", "--ignore-eos", "--seed", "1")


def own_group(controller):
    """Folder of our group of a version 1 controller, or None."""
    with open("/proc/self/cgroup", encoding="ascii") as f:
        paths = dict(line.rstrip("\n").split(":", 2)[1:] for line in f)
    with open("/proc/self/mountinfo", encoding="ascii") as f:
        for line in f:
            before, after = line.split(" - ")
            kind, _, options = after.split()[:3]
            if kind == "cgroup" and controller in options.split(",") and controller in paths:
                return before.split()[4] + paths[controller].rstrip("/")
    return None


class Group:
    """A group below ours for the children of a test; raises SkipTest if it cannot be created."""

    def __init__(self, controller):
        parent = own_group(controller)
        try:
            self.path = tempfile.mkdtemp(prefix="tern-test-", dir=parent) if parent else None
        except OSError:
            self.path = None
        if not self.path or not os.path.exists(self.path + "/cgroup.procs"):
            raise unittest.SkipTest(f"no {controller} group of version 1 can be made here")

    def write(self, name, text):
        with open(f"{self.path}/{name}", "w", encoding="ascii") as f:
            f.write(str(text))

    def read(self, name):
        with open(f"{self.path}/{name}", encoding="ascii") as f:
            return f.read()

    def run(self, *arguments):
        return command.Result(subprocess.run(
            command.argv(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=command.TIMEOUT,
            preexec_fn=lambda: self.write("cgroup.procs", os.getpid())))

    def remove(self):
        os.rmdir(self.path)


def predicted(*flags):
    out = command.tern("probe", command.model(), "--json", *flags).out
    return json.loads(out)["plan"]["predicted_anonymous_bytes"]


@unittest.skipUnless(LINUX, "needs Linux")
class Limits(command.TestCase):
    def check(self, result, where):
        self.assertIn(result.code, (0, 3), f"{where}: {result.err}")
        if result.code == 3:
            self.assertEqual(result.out, b"")
            self.assertIn("limit", result.err)
            self.assertRegex(result.err, r"\d (bytes|MiB|GiB)")

    def test_memory_group(self):
        group = Group("memory")
        self.addCleanup(group.remove)
        need = predicted()
        codes = set()
        for percent in range(25, 160, 9):
            limit = need * percent // 100
            group.write("memory.force_empty", 0)
            group.write("memory.limit_in_bytes", limit)
            result = group.run("run", command.model(), *STORY, "-n", "2000")
            self.check(result, f"{percent} %")
            codes.add(result.code)
        self.assertEqual(codes, {0, 3})
        self.assertIn("oom_kill 0\n", group.read("memory.oom_control") + "\n")

    def test_memory_group_without_a_plan(self):
        """Commands without a plan also refuse a context that cannot fit."""
        group = Group("memory")
        self.addCleanup(group.remove)
        ids = " ".join(["5"] * 40)
        for limit, code in ((3 * MIB, 3), (64 * MIB, 0)):
            group.write("memory.limit_in_bytes", limit)
            for arguments in (("perplexity", command.model(), __file__, "--ctx", "512"),
                              ("logits", command.model(), "--ids", ids, "--greedy", "400")):
                result = group.run(*arguments)
                self.assertEqual(result.code, code, f"{arguments[0]}: {result.err}")
                if code:
                    self.assertRegex(result.err, r"needs \S+ MiB.*\d MiB are available")
        group.write("memory.limit_in_bytes", 128 * MIB)
        result = group.run("bench", command.model(), "-n", "1", "-p", "1", "-r", "1")
        self.assertEqual(result.code, 3, result.err)
        self.assertRegex(result.err, r"needs \S+ MiB.*\d MiB are available")
        self.assertIn("oom_kill 0\n", group.read("memory.oom_control") + "\n")

    def test_convert_in_a_memory_group(self):
        """Too little memory is refused before the part file is created, not by the system."""
        group = Group("memory")
        self.addCleanup(group.remove)
        codes = set()
        with tempfile.TemporaryDirectory() as folder:
            for mib in range(3, 17):
                group.write("memory.limit_in_bytes", mib * MIB)
                result = group.run("convert", DEMO, "-o", folder + "/x.tern", "-q")
                codes.add(result.code)
                if result.code != 0:
                    self.assertEqual(result.code, 3, f"{mib} MiB: {result.err}")
                    self.assertRegex(result.err, r"needs at least 8.0 MiB.*\d MiB are available")
                    self.assertEqual(os.listdir(folder), [])
                else:
                    self.assertEqual(os.listdir(folder), ["x.tern"])
                    os.unlink(folder + "/x.tern")
        self.assertEqual(codes, {0, 3})
        self.assertIn("oom_kill 0\n", group.read("memory.oom_control") + "\n")

    def test_processor_quota(self):
        group = Group("cpu")
        self.addCleanup(group.remove)
        group.write("cpu.cfs_period_us", 100000)
        for quota in (50000, 150000):
            group.write("cpu.cfs_quota_us", quota)
            probe = json.loads(group.run("probe", command.model(), "--json").out)
            self.assertEqual(probe["cores"]["quota"], quota / 100000)
            self.assertEqual(probe["plan"]["threads_decode"], 1)

    def test_address_space(self):
        for mib in range(16, 512, 32):
            result = command.Result(subprocess.run(
                command.argv("run", command.model(), *STORY, "-n", "20"),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                timeout=command.TIMEOUT,
                preexec_fn=lambda n=mib: resource.setrlimit(resource.RLIMIT_AS,
                                                            (n * MIB, n * MIB))))
            if result.code == 127:
                continue  # a refusal of the dynamic loader
            with self.subTest(mib=mib):
                self.check(result, f"{mib} MiB")
        self.assertEqual(result.code, 0, result.err)

    def test_estimates_without_facts(self):
        """tern pull says nothing of a rate that it could not measure, or of unknown memory."""
        result = command.Result(subprocess.run(
            command.argv("pull"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=command.TIMEOUT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (200 * MIB, 200 * MIB))))
        self.assertEqual(result.code, 0, result.err)
        self.assertRegex(result.err, r"This machine: \S+ MiB of memory available\. Memory holds")
        script = "ulimit -v unlimited && mount -t tmpfs none /proc && exec \"$@\""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *command.argv("pull")],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=command.TIMEOUT, check=False)
        if re.search(b"unshare: |mount: |ulimit: ", done.stderr):
            self.skipTest("mount is not allowed, or a limit of this machine stays")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"This machine: an unknown amount of memory available, ", done.stderr)

    def test_too_little_for_any_text(self):
        """The error is reported even if nothing can be allocated, and no output is lost."""
        whole = self.ok("help").out
        for kib in range(1024, 12288, 64):
            for arguments, code in (("help", 0), ("--no-such-flag", 2)):
                result = command.Result(subprocess.run(
                    command.argv(arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, timeout=command.TIMEOUT,
                    preexec_fn=lambda n=kib << 10: resource.setrlimit(resource.RLIMIT_AS, (n, n))))
                if result.code < 0 or result.code == 127:
                    continue  # the system refuses to start it
                with self.subTest(kib=kib, arguments=arguments):
                    self.assertIn(result.code, (code, 3))
                    if result.code == 0:
                        self.assertEqual((result.out, result.err), (whole, ""))
                    else:
                        self.assertRegex(result.err, r"\Atern: error: [^\n]+\n\Z")
        self.assertEqual(result.code, code)


if __name__ == "__main__":
    command.main()
