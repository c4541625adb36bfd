#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Downloads that do not go to plan: wrong bytes, cut connections, signals, a full disk.  The next
tern pull continues them."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

try:
    import resource
except ImportError:  # Windows
    resource = None

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, read_bytes
from hub import Hub, entry
from pulling import CURL, FOLDER, WEIGHTS, Pull


@unittest.skipUnless(NATIVE and CURL, "needs curl")
class Interrupted(Pull):
    # ---- bytes ----

    def test_wrong_bytes(self):
        data = self.files[WEIGHTS]
        self.hub.listing = [entry(name, file) for name, file in self.files.items()]
        for wrong, said in ((data[:-1], "were promised"), (data + b"x", "were promised"),
                            (data[:-1] + bytes([data[-1] ^ 1]), "SHA-256")):
            with self.subTest(said=said, n=len(wrong)):
                self.hub.repositories[FOLDER][WEIGHTS] = wrong
                self.assertIn(said, self.failed(7))
        # Without a length the size is only known at the end.

        def send_without_length(handler):
            handler.send_response(200)
            handler.send_header("Connection", "close")
            handler.end_headers()
            handler.wfile.write(data + b"x")
            handler.close_connection = True
            return True
        self.act(f"resolve/.*{WEIGHTS}", send_without_length)
        self.assertIn("more than", self.failed(7))
        self.hub.reset()
        self.hub.repositories[FOLDER][WEIGHTS] = data
        self.pull()
        self.check_model()

    def test_cut_connections(self):
        data = self.files[WEIGHTS]
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 3000000), 3)
        self.pull()
        self.check_model()
        ranges = [headers.get("Range") for path, headers in self.hub.files_requested()
                  if path.endswith(WEIGHTS)]
        self.assertEqual(ranges[0], None)
        self.assertEqual(len(ranges), 4)
        self.assertTrue(all(r and r.startswith("bytes=") for r in ranges[1:]), ranges)

    def test_a_server_that_is_away_for_a_while(self):
        """As when a laptop changes its network: after an answer, tern connects again."""
        data, servers = self.files[WEIGHTS], [Hub({})]
        port, address = servers[0].port, servers[0].address

        def come_back():
            servers.append(Hub({}, port=port))
            servers[1].actions.append(("", lambda h: h.send_file(data)))

        def leave(handler):
            servers[0].close()  # first: nobody must answer once the connection is cut
            handler.cut(data, 5000000)
            threading.Timer(1.5, come_back).start()
            return True
        servers[0].actions.append(("", leave))
        self.addCleanup(lambda: [server.close() for server in servers[1:]])
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.redirect(f"{address}/x"))
        self.assertIn("(code 7); next attempt", self.pull().err)
        self.check_model()

    def test_a_revision_that_is_gone(self):
        data = self.files[WEIGHTS]
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 5000000), 1)
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.send_text(404, "gone") or True, 1)
        self.failed(7)
        self.act("/tree/", lambda h: h.send_text(404, "gone") or True, 1)
        error = self.failed(7)
        self.assertIn("no longer has revision 01234567", error)
        self.assertIn("tern remove fairy-tales", error)
        self.ok("remove", "fairy-tales", env=self.environment())
        self.pull()
        self.check_model()

    def test_no_ranges(self):
        """A 200 to a range request restarts the download."""
        data = self.files[WEIGHTS]
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 5000000, False), 1)
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.send_file(data, False))
        self.pull()
        self.check_model()

    def test_another_answer_keeps_the_part(self):
        """A 200 of another length is not the file, but perhaps a page about an error."""
        data = self.files[WEIGHTS]
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 5000000), 1)
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.send_text(200, "<html>Log in") or True)
        self.assertIn("the server has 12 bytes where", self.failed(7))
        self.assertEqual(self.part_bytes(), 5000000)
        self.hub.reset()
        self.pull()
        self.check_model()
        self.assertEqual(self.hub.files_requested()[-1][1]["Range"], "bytes=5000000-")

    def test_a_response_without_end(self):
        """All bytes came: the file is not fetched again because its last chunk is missing."""
        data = self.files[WEIGHTS]

        def send_without_end(handler):
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.close_connection = True
            return True
        self.act(f"resolve/.*{WEIGHTS}", send_without_end)
        self.pull()
        self.check_model()
        self.assertEqual(sum(path.endswith(WEIGHTS) for path, _ in self.hub.files_requested()), 1)

    def test_a_mistyped_file_keeps_the_part(self):
        data = self.files[WEIGHTS]
        self.hub.repositories["a/two"] = {"a.gguf": data, "b.gguf": data}
        self.act("resolve/.*a.gguf", lambda h: h.cut(data, 5000000), 1)
        self.act("resolve/", lambda h: h.send_text(404, "gone") or True)
        self.failed(7, "a/two:a.gguf")
        part = os.path.join(self.downloads, "two", "a.gguf.part")
        self.assertIn("has no file", self.failed(5, "a/two:c.gguf"))
        self.assertEqual(os.path.getsize(part), 5000000)
        self.failed(7, "a/two:b.gguf")  # another one replaces it
        self.assertEqual(sorted(os.listdir(os.path.dirname(part))), ["b.gguf.part", "pull.json"])

    def test_repeated_cut_at_same_offset(self):
        data = self.files[WEIGHTS]
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 100000, False))
        self.assertIn("curl: ", self.failed(7))
        self.assertLessEqual(len(self.hub.files_requested()), 12)

    def test_another_range(self):
        data = self.files[WEIGHTS]
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 1000000), 1)
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.send_text(
            206, data[5:], Content_Range=f"bytes 5-{len(data) - 1}/{len(data)}") or True)
        self.assertIn("another range", self.failed(7))

    def test_range_not_satisfiable(self):
        data = self.files[WEIGHTS]
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 1000000), 1)
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.send_text(416, "") or True, 1)
        self.pull()
        self.check_model()

    def test_damaged_partial_file_is_detected(self):
        data = self.files[WEIGHTS]
        folder = os.path.join(self.downloads, "fairy-tales")
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 1000000, False))
        self.failed(7)
        part = os.path.join(folder, WEIGHTS + ".part")
        with open(part, "r+b") as f:
            f.write(b"damaged")
        self.hub.reset()
        self.assertIn("SHA-256", self.failed(7))
        self.assertFalse(os.path.exists(part))
        with open(part, "wb") as f:  # longer than the file can be
            f.write(data + b"x")
        self.pull()
        self.check_model()

    def slowly(self, handler, seconds=0.01):
        data = handler.begin_file(self.files[WEIGHTS])
        try:
            for i in range(0, len(data), 200000):
                handler.wfile.write(data[i:i + 200000])
                time.sleep(seconds)
        except OSError:
            handler.close_connection = True
        return True

    def test_slow_server(self):
        self.act(f"resolve/.*{WEIGHTS}", self.slowly)
        lines = [json.loads(line) for line in self.pull(FOLDER, "--json").text.splitlines()]
        self.assertGreater(len(lines), 2)
        self.check_model()

    def test_no_home(self):
        nowhere = {"XDG_DATA_HOME": "", "HOME": ""}
        self.assertIn("set HOME", self.pull(code=4, **nowhere).err)
        self.assertIn("set HOME", self.refused(5, "remove", "x", env=self.environment(**nowhere)))

    # ---- interruption ----

    def start(self, **changes):
        return subprocess.Popen(command.argv("pull", FOLDER), env=self.environment(**changes),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)

    def part_bytes(self):
        path = os.path.join(self.downloads, "fairy-tales", WEIGHTS + ".part")
        return os.path.getsize(path) if os.path.exists(path) else 0

    def test_ctrl_c_three_times(self):
        self.act(f"resolve/.*{WEIGHTS}", self.slowly)
        reached = 0
        for _ in range(3):
            process = self.start()
            command.wait_for(lambda: self.part_bytes() > reached + 1000000, "no bytes came")
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=command.TIMEOUT)
            self.assertEqual(process.returncode, -signal.SIGINT, err)
            self.assertIn(b"continues", err)
            reached = self.part_bytes()
            self.assertFalse(os.path.exists(os.path.join(self.models, "fairy-tales.tern")))
        self.hub.reset()
        self.assertIn("here already", self.pull().err)
        self.check_model()
        headers = dict(self.hub.files_requested()[-1][1])
        self.assertEqual(headers["Range"], f"bytes={reached}-")

    def test_killed_at_any_moment(self):
        rng = random.Random(1)
        self.act(f"resolve/.*{WEIGHTS}", lambda h: self.slowly(h, 0.002))
        for _ in range(12):
            process = self.start()
            time.sleep(rng.random() * 0.5)
            process.kill()
            process.communicate(timeout=command.TIMEOUT)
        self.pull()
        self.check_model()
        self.assertEqual(os.listdir(self.downloads), [])

    def test_killed_after_renaming_the_model(self):
        # Afterwards there is the download, or a part of it, and the lock, which nobody holds.
        self.pull(FOLDER, "--keep")
        folder = os.path.join(self.downloads, "fairy-tales")
        lock = pathlib.Path(folder + ".lock")
        state = pathlib.Path(folder, "pull.json")
        state.write_text(json.dumps({**json.loads(state.read_text()), "kept": False}))
        lock.touch()
        self.assertIn("is here already", self.pull(FOLDER, "--keep").err)
        self.assertTrue(state.exists())
        self.assertIn("is here already", self.pull().err)
        self.assertEqual(os.listdir(self.downloads), [])
        lock.touch()
        self.pull()
        self.assertEqual(os.listdir(self.downloads), [])

    def test_one_at_a_time(self):
        self.act(f"resolve/.*{WEIGHTS}", lambda h: self.slowly(h, 0.05))
        process = self.start()
        command.wait_for(self.part_bytes, "no bytes came")
        self.assertIn("another process is pulling it", self.failed(4))
        self.assertIn("another process", self.refused(4, "remove", "fairy-tales",
                                                      env=self.environment()))
        process.kill()
        process.communicate(timeout=command.TIMEOUT)

    def test_stale_partial_files_are_removed(self):
        data = self.files[WEIGHTS]
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 1000000, False))
        self.failed(7)
        stale = os.path.join(self.downloads, "fairy-tales")
        self.hub.reset()
        self.hub.repositories["a/other"] = dict(self.files)
        self.pull("a/other")
        self.assertTrue(os.path.isdir(stale))  # it is recent
        self.ok("remove", "other", env=self.environment())
        for name in os.listdir(stale):
            os.utime(os.path.join(stale, name), (time.time() - 8 * 86400,) * 2)
        self.pull("a/other")
        self.assertFalse(os.path.exists(stale))

    # ---- the disk ----

    def test_limited_file_size(self):
        result = subprocess.run(
            command.argv("pull", FOLDER), env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=command.TIMEOUT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertEqual(self.part_bytes(), 1 << 20)
        self.pull()
        self.check_model()

    def test_full_disk(self):
        os.makedirs(self.data)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", self.data],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            self.skipTest("mount is not allowed")
        self.addCleanup(subprocess.run, ["umount", self.data], check=True)
        self.assertRegex(self.failed(4), r"need 0\.03 GB, 0\.01 GB are free")
        self.assertEqual(self.hub.files_requested(), [])

    def test_another_program_writes_to_the_part(self):
        """As another tern pull does where the file system has no locks."""
        data = self.files[WEIGHTS]

        def send(handler):
            rest = handler.begin_file(data)
            handler.wfile.write(rest[:5000000])
            command.wait_for(lambda: self.part_bytes() == 5000000, "no bytes came")
            with open(os.path.join(self.downloads, "fairy-tales", WEIGHTS + ".part"), "ab") as f:
                f.write(b"x")
            handler.wfile.write(rest[5000000:])
            return True
        self.act(f"resolve/.*{WEIGHTS}", send, 1)
        self.assertIn(f"has {len(data) + 1} bytes where {len(data)} were", self.failed(4))
        self.pull()
        self.check_model()

    def test_a_file_of_this_name_stays(self):
        os.makedirs(self.models)
        mine = os.path.join(self.models, "fairy-tales.tern")
        shutil.copy(command.model(), mine)
        before = read_bytes(mine)
        result = self.pull(code=2)
        self.assertIn("something else", result.err)
        self.assertEqual(read_bytes(mine), before)


if __name__ == "__main__":
    command.main()
