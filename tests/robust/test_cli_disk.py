#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern convert on a disk that fails or is full, and when the process is killed: the destination is
absent, the old file or the complete new one; errors are one line; no other file remains. Linux
only."""
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import DEMO, NATIVE, read_bytes, scratch

LINUX = NATIVE and sys.platform.startswith("linux")
STRACE = shutil.which("strace")
OLD = b"TERN\r\n\x1a\nan older file"  # a .tern file by its magic: only such files are replaced


def limited(n_bytes):
    """Limits the child's files to n_bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))


def can_mount(folder):
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


@unittest.skipUnless(LINUX, "needs Linux")
class Disk(command.TestCase):
    def setUp(self):
        self.dir = scratch("disk")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)
        self.out = os.path.join(self.dir, "x.tern")
        self.complete = read_bytes(command.model())

    def convert(self, prefix=(), **keywords):
        done = subprocess.run([*prefix, *command.argv("convert", DEMO, "-o", self.out, "-q")],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=command.TIMEOUT, **keywords)
        return command.Result(done)

    def put_old(self):
        with open(self.out, "wb") as f:
            f.write(OLD)

    def check_failed(self, result, codes):
        self.assertIn(result.code, codes, result.err)
        self.assertEqual(len(result.err.splitlines()), 1, result.err)
        self.assertTrue(result.err.startswith("tern: error: "), result.err)
        self.assertEqual(read_bytes(self.out), OLD)
        self.assertEqual(os.listdir(self.dir), ["x.tern"])

    def check_whole(self):
        self.assertEqual(read_bytes(self.out), self.complete)

    def test_limited_file_size(self):
        size = len(self.complete)
        limits = (0, 1, 4096, size // 2, size - 1)
        start = subprocess.run(command.argv("--version"), preexec_fn=limited(0), check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if start.returncode < 0:  # ThreadSanitizer writes a file before the program starts
            limits = limits[1:]
        for limit in limits:
            with self.subTest(limit=limit):
                self.put_old()
                self.check_failed(self.convert(preexec_fn=limited(limit)), (4,))
        self.assertEqual(self.convert(preexec_fn=limited(size)).code, 0)
        self.check_whole()

    def test_full_disk(self):
        if not can_mount(self.dir):
            self.skipTest("mount is not allowed")
        try:
            self.put_old()
            result = self.convert()
            self.check_failed(result, (4,))
        finally:
            subprocess.run(["umount", self.dir], check=True)

    def strace(self, call, fault, when):
        log = scratch("strace.log")
        # The leak check of a sanitizer build does not work under strace.
        env = command.environment(ASAN_OPTIONS="detect_leaks=0")
        result = self.convert([STRACE, "-f", "-qq", "-o", log, "-e", f"trace={call}", "-e",
                               f"inject={call}:{fault}:when={when}"], env=env)
        with open(log, encoding="utf-8", errors="replace") as f:
            return result, "INJECTED" in f.read()

    @unittest.skipUnless(STRACE, "needs strace")
    def test_calls_that_fail_once(self):
        writing = range(1, 9)
        for call, error, places in (("pwrite64", "ENOSPC", writing), ("pwrite64", "EIO", writing),
                                    ("fsync", "EIO", writing), ("rename", "EIO", writing),
                                    # The first calls are the dynamic loader's and the monitor's.
                                    ("pread64", "EIO", (60, 80, 100, 150, 200))):
            for when in places:
                with self.subTest(call=call, error=error, when=when):
                    self.put_old()
                    result, injected = self.strace(call, f"error={error}", when)
                    if not injected:
                        break
                    # The folder's fsync comes last, when the new file is complete.
                    if (call, when) == ("fsync", 2):
                        self.check_whole()
                        self.assertEqual(os.listdir(self.dir), ["x.tern"])
                    else:
                        self.check_failed(result, (4, 5))

    @unittest.skipUnless(STRACE, "needs strace")
    def test_interrupted_calls_are_repeated(self):
        for call, when in (("pread64", 5), ("pread64", 100), ("pwrite64", 1), ("pwrite64", 2)):
            with self.subTest(call=call, when=when):
                result, injected = self.strace(call, "error=EINTR", when)
                self.assertEqual((result.code, injected), (0, True), result.err)
                self.check_whole()

    @unittest.skipUnless(STRACE, "needs strace")
    def test_part_file_where_locks_need_writers(self):
        """On NFS, flock on a read-only descriptor fails with EBADF; the part file of a live
        converter must not be removed then."""
        part = self.out + ".part"
        self.put_old()
        with open(part, "wb") as f:
            f.write(b"of somebody else")
        result, injected = self.strace("flock", "error=EBADF", 1)
        self.assertEqual((result.code, injected), (4, True), result.err)
        self.assertIn("another process is writing it", result.err)
        self.assertEqual(read_bytes(part), b"of somebody else")
        self.assertEqual(read_bytes(self.out), OLD)
        # Locked files are opened for writing, so EBADF cannot occur.
        log = scratch("opens.log")
        env = command.environment(ASAN_OPTIONS="detect_leaks=0")
        done = self.convert([STRACE, "-f", "-qq", "-o", log, "-e", "trace=/^open,flock"], env=env)
        self.assertEqual(done.code, 0, done.err)
        with open(log, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
        locked = [lines[i - 1] for i, line in enumerate(lines) if "flock(" in line]
        self.assertEqual(len(locked), 2)  # the dead converter's, then our own
        for line in locked:
            self.assertRegex(line, r'x\.tern\.part", O_RDWR\b')
        self.check_whole()

    def check_after_kill(self):
        """After a kill: the old file, the new one or none; the next conversion cleans up."""
        data = read_bytes(self.out)
        self.assertTrue(data in (OLD, self.complete), f"{len(data)} bytes")
        self.assertEqual(self.convert().code, 0)
        self.check_whole()
        self.assertEqual(os.listdir(self.dir), ["x.tern"])

    @unittest.skipUnless(STRACE, "needs strace")
    def test_killed_at_a_call(self):
        for call in ("pwrite64", "fsync", "rename", "unlink"):
            for when in range(1, 5):
                with self.subTest(call=call, when=when):
                    self.put_old()
                    _, injected = self.strace(call, "signal=KILL", when)
                    self.check_after_kill()
                    if not injected:
                        break

    def test_killed_at_random_moments(self):
        start = time.monotonic()
        self.assertEqual(self.convert().code, 0)
        whole = time.monotonic() - start
        chance = random.Random(1)
        n_unfinished = 0
        for _ in range(30):
            self.put_old()
            child = subprocess.Popen(command.argv("convert", DEMO, "-o", self.out, "-q"),
                                     stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, whole))
            child.send_signal(signal.SIGKILL)
            child.wait()
            n_unfinished += os.path.exists(self.out + ".part")
            self.check_after_kill()
        print(f"killed 30 times, {n_unfinished} times while the part file was there")


if __name__ == "__main__":
    command.main()
