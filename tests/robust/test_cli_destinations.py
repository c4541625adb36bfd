#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where tern convert and probe write: refused destinations, files that exist, full disks."""
import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, read_bytes, scratch

POSIX = NATIVE and os.name == "posix"


class Destinations(command.TestCase):
    def test_missing_folder(self):
        out = os.path.join(scratch("nowhere"), "x.tern")
        self.refused(4, "convert", command.DEMO, "-o", out)
        self.assertFalse(os.path.exists(os.path.dirname(out)))

    def test_a_folder(self):
        os.makedirs(scratch("folder.tern"), exist_ok=True)
        self.refused(4, "convert", command.DEMO, "-o", scratch("folder.tern"))
        self.assertEqual(os.listdir(scratch("folder.tern")), [])

    def test_one_of_the_inputs(self):
        folder = scratch("inputs")
        shutil.copytree(command.DEMO, folder)
        before = sorted(os.listdir(folder))
        for name in ("model.safetensors", "config.json"):
            self.refused(2, "convert", folder, "-o", os.path.join(folder, name))
        self.assertEqual(sorted(os.listdir(folder)), before)
        self.assertEqual(os.path.getsize(os.path.join(folder, "model.safetensors")),
                         os.path.getsize(os.path.join(command.DEMO, "model.safetensors")))

    def test_no_file_names(self):
        folder = scratch("here")
        os.makedirs(folder, exist_ok=True)
        for name in ("", "-"):
            self.refused(2, "convert", command.DEMO, "-o", name, cwd=folder)
            self.refused(2, "logits", command.model(), "--ids", "1", "-o", name, cwd=folder)
        self.assertEqual(os.listdir(folder), [])

    def test_default_name_replacing_and_determinism(self):
        folder = scratch("cwd")
        os.makedirs(folder, exist_ok=True)
        first = self.ok("convert", command.DEMO, cwd=folder)
        self.assertEqual(first.out, b"")
        path = os.path.join(folder, "demo.tern")
        data = read_bytes(path)
        again = self.ok("convert", command.DEMO, "-o", path)
        self.assertIn("replaced", again.err)
        self.assertEqual(read_bytes(path), data)
        alias = self.ok("--convert", command.DEMO, "--save", os.path.join(folder, "a.tern"))
        self.assertEqual(alias.out, b"")
        self.assertEqual(read_bytes(os.path.join(folder, "a.tern")), data)
        self.ok("convert", command.DEMO, "--name", "other", cwd=folder)
        self.assertEqual(sorted(os.listdir(folder)), ["a.tern", "demo.tern"])
        self.assertIn("./DIR.tern", self.ok("help", "convert").text)

    def test_only_models_and_empty_files_are_replaced(self):
        path, text = scratch("notes.txt"), b"my notes\n"
        logits = ("logits", command.model(), "--ids", "1 2", "-o", path)
        for arguments in (("convert", command.DEMO, "-o", path), logits):
            with open(path, "wb") as f:
                f.write(text)
            error = self.refused(2, *arguments)
            self.assertIn("not replaced: it holds 9 bytes", error)
            self.assertIn("--force replaces it", error)
            self.assertEqual(read_bytes(path), text)
            self.assertFalse(os.path.exists(path + ".part"))
            self.ok(*arguments, "--force")
            self.assertGreater(os.path.getsize(path), 1000)
            with open(path, "wb"):
                pass
            self.ok(*arguments)  # empty
        model = command.model()
        with open(path, "wb") as f:
            f.write(read_bytes(model)[:100])
        self.refused(2, *logits)
        self.ok("convert", command.DEMO, "-o", path)  # a damaged .tern file may be replaced too
        self.assertEqual(read_bytes(path), read_bytes(model))
        rows = scratch("rows.f32")
        for _ in range(2):
            self.ok(*logits[:-1], rows)

    @unittest.skipUnless(sys.platform == "linux" and command.NATIVE, "machines are recorded there")
    def test_a_recording_takes_a_folder_of_its_own(self):
        folder = scratch("machine")
        os.mkdir(folder)
        self.ok("probe", "--record", folder)  # empty
        self.assertIn("is not empty", self.refused(4, "probe", "--record", folder))
        self.ok("probe", "--record", scratch("machine-2"))  # new

    @unittest.skipUnless(POSIX, "resource limits")
    def test_full_disk(self):
        import resource

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        out = scratch("full.tern")
        done = subprocess.run(command.argv("convert", "-q", command.DEMO, "-o", out),
                              preexec_fn=limit, capture_output=True, timeout=command.TIMEOUT)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        self.assertFalse(os.path.exists(out))
        self.assertFalse(os.path.exists(out + ".part"))

    @unittest.skipUnless(POSIX and hasattr(os, "geteuid") and os.geteuid() != 0,
                         "root may write everywhere")
    def test_not_writable(self):
        folder = scratch("readonly")
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o555)
        self.refused(4, "convert", command.DEMO, "-o", os.path.join(folder, "x.tern"))

    @unittest.skipUnless(POSIX, "locks of files")
    def test_two_at_once(self):
        import fcntl
        out = scratch("shared.tern")
        part = out + ".part"
        logits = scratch("shared.f32")
        for path, arguments in (
                (part, ("convert", "-q", command.DEMO, "-o", out)),
                (logits + ".part", ("logits", command.model(), "--ids", "1", "-o", logits))):
            with self.subTest(path=path), open(path, "wb") as other:
                other.write(b"unfinished")
                other.flush()
                fcntl.flock(other, fcntl.LOCK_EX)
                self.assertIn("another process", self.refused(4, *arguments))
                self.assertEqual(read_bytes(path), b"unfinished")
            self.ok(*arguments)  # the other process is dead
            self.assertFalse(os.path.exists(path))
        os.unlink(out)
        kept = scratch("kept")
        with open(kept, "wb") as f:
            f.write(b"mine")
        os.symlink(kept, part)
        self.ok("convert", "-q", command.DEMO, "-o", out)
        self.assertEqual(read_bytes(kept), b"mine")
        runs = [subprocess.Popen(command.argv("convert", "-q", command.DEMO, "-o", out, "--head",
                                              head), stderr=subprocess.PIPE)
                for head in ("q8", "q4") * 3]
        errors = [run.communicate(timeout=command.TIMEOUT)[1] for run in runs]
        for run, err in zip(runs, errors):
            self.assertIn(run.returncode, (0, 4), err)
        self.assertIn(0, [run.returncode for run in runs])
        self.assertFalse(os.path.lexists(part))
        self.ok("verify", out)

    @unittest.skipUnless(POSIX, "POSIX signals")
    def test_interrupted(self):
        import signal
        out = scratch("interrupted.tern")
        n_interrupted = 0
        for i in range(30):
            process = subprocess.Popen(command.argv("convert", command.DEMO, "-o", out),
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(0.01 + 0.003 * i)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=command.TIMEOUT)
            self.assertFalse(os.path.exists(out + ".part"))
            if process.returncode == 0:
                self.assertTrue(os.path.exists(out))
                os.unlink(out)
            else:
                n_interrupted += 1
                self.assertEqual(process.returncode, -signal.SIGINT, err)
                self.assertFalse(os.path.exists(out))
        self.assertGreater(n_interrupted, 0)


if __name__ == "__main__":
    command.main()
