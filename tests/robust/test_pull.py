#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern pull, tern list and tern remove against a hub on this computer: what arrives is right or
reported, interrupted downloads continue, and nothing in the hub's responses becomes a path."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

try:
    import resource
except ImportError:  # Windows
    resource = None

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import DEMO, NATIVE, read_bytes, scratch
from hub import REVISION, Hub, entry

CURL = next((p for p in ("/usr/bin/curl", "/usr/local/bin/curl", "/opt/homebrew/bin/curl")
             if os.path.exists(p)), None)
FOLDER = "tern-tests/fairy-tales"
WEIGHTS = "model.safetensors"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def demo_files():
    names = sorted(os.listdir(DEMO))
    return {name: read_bytes(os.path.join(DEMO, name)) for name in names}


@unittest.skipUnless(NATIVE and CURL, "needs curl")
class Pull(command.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.files = demo_files()
        cls.hub = Hub({FOLDER: dict(cls.files, **{"README.md": b"# Tales", ".gitattributes": b""})})
        cls.addClassCleanup(cls.hub.close)
        cls.expected = command.read_bytes(command.model(DEMO, "--name", "fairy-tales"))

    def setUp(self):
        self.hub.reset()
        self.hub.repositories[FOLDER].update(self.files)
        self.data = scratch("data")
        shutil.rmtree(self.data, ignore_errors=True)
        self.models = os.path.join(self.data, "tern", "models")
        self.downloads = os.path.join(self.data, "tern", "downloads")

    def environment(self, **changes):
        env = command.environment(**dict({"XDG_DATA_HOME": self.data, "HOME": self.data,
                                          "HF_ENDPOINT": self.hub.address}, **changes))
        for name in (*PROXIES, "HF_TOKEN"):
            if name not in changes:
                env.pop(name, None)
        return env

    def pull(self, *arguments, code=0, **changes):
        result = command.tern("pull", *(arguments or (FOLDER,)), env=self.environment(**changes))
        self.assertEqual(result.code, code, result.err)
        return result

    def check_model(self, name="fairy-tales"):
        self.assertEqual(read_bytes(os.path.join(self.models, name + ".tern")), self.expected)

    def failed(self, code, *arguments, **changes):
        """Pulls and fails: one line of error, no model. Returns the line."""
        result = self.pull(*arguments, code=code, **changes)
        errors = [line for line in result.err.splitlines() if line.startswith("tern: error: ")]
        self.assertEqual(len(errors), 1, result.err)
        self.assertEqual(result.out, b"")
        if os.path.isdir(self.models):
            self.assertEqual([f for f in os.listdir(self.models) if f.endswith(".tern")], [])
        return errors[0]

    def act(self, pattern, action, times=None):
        """The hub runs `action` for the first `times` requests of a path that matches the pattern.
        """
        left = [times]

        def act(handler):
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    return False
            return action(handler)
        self.hub.actions.append((pattern, act))

    # ---- normal use ----

    def test_folder(self):
        result = self.pull()
        self.check_model()
        self.assertIn("Try: tern chat fairy-tales", result.err)
        self.assertEqual(result.out, b"")
        self.assertEqual(os.listdir(self.downloads), [])
        names = {path.rsplit("/", 1)[1] for path, _ in self.hub.files_requested()}
        self.assertEqual(names, set(self.files))
        # The list names its origin, and the name works.
        rows = json.loads(self.ok("list", "--json", env=self.environment()).text)
        row = next(row for row in rows if row["name"] == "fairy-tales")
        self.assertEqual((row["source"], row["revision"]), (FOLDER, REVISION))
        self.ok("run", "fairy-tales", "--raw", "-p", "Once", "-n", "2", env=self.environment())

    def test_again(self):
        self.pull()
        self.hub.reset()
        self.assertIn("is here already", self.pull().err)
        self.assertEqual(self.hub.requests, [])

    def test_json(self):
        lines = [json.loads(line) for line in self.pull(FOLDER, "--json").text.splitlines()]
        total = sum(map(len, self.files.values()))
        self.assertEqual(lines[-2], {"bytes": total, "total": total})
        self.assertTrue(os.path.samefile(lines[-1]["path"],
                                         os.path.join(self.models, "fairy-tales.tern")))

    def test_gguf(self):
        data = read_bytes(command.shared("reference", "gguf", "demo", "i2_s.gguf"))
        self.hub.repositories["a/Tales-GGUF"] = {"ggml-model-i2_s.gguf": data,
                                                 "mmproj-x.gguf": b"vision"}
        self.pull("a/Tales-GGUF")
        self.ok("info", "Tales", env=self.environment())
        self.hub.repositories["a/two"] = {"a.gguf": data, "b.gguf": data}
        error = self.failed_only(5, "a/two")
        self.assertIn("a.gguf, b.gguf", error)
        self.pull("a/two:b.gguf")
        self.assertIn("a.gguf, b.gguf", self.failed_only(5, "a/two:c.gguf", remove="two"))

    def failed_only(self, code, *arguments, remove=None):
        if remove:
            self.ok("remove", remove, env=self.environment())
        result = self.pull(*arguments, code=code)
        return result.err

    def test_keep(self):
        self.pull(FOLDER, "--keep")
        kept = os.path.join(self.downloads, "fairy-tales")
        self.assertEqual(sorted(os.listdir(kept)), sorted([*self.files, "pull.json"]))
        for name, data in self.files.items():
            self.assertEqual(read_bytes(os.path.join(kept, name)), data)
        # It is used if the model was deleted, and removed with the model.
        os.remove(os.path.join(self.models, "fairy-tales.tern"))
        self.hub.reset()
        self.pull(FOLDER, "--keep")
        self.assertEqual(self.hub.files_requested(), [])
        self.check_model()
        self.pull()
        self.assertEqual(sorted(os.listdir(kept)), sorted([*self.files, "pull.json"]))
        self.ok("remove", "fairy-tales", env=self.environment())
        self.assertEqual(os.listdir(self.downloads), [])

    def test_pulling_another_file_keeps_files(self):
        data = read_bytes(command.shared("reference", "gguf", "demo", "i2_s.gguf"))
        self.hub.repositories["a/two"] = {"a.gguf": data, "b.gguf": data}
        self.pull("a/two:a.gguf", "--keep")
        os.remove(os.path.join(self.models, "two.tern"))
        self.assertIn("keeps another download", self.failed(2, "a/two:b.gguf"))
        self.assertEqual(read_bytes(os.path.join(self.downloads, "two", "a.gguf")), data)

    def test_remove(self):
        self.pull()
        result = self.ok("rm", "fairy-tales", env=self.environment())
        self.assertIn("fairy-tales.tern", result.err)
        self.assertEqual(os.listdir(self.models), [])
        self.assertIn("no model", self.refused(5, "remove", "fairy-tales", env=self.environment()))
        for name in ("../x", "a/b", "..", "", "nul"):
            self.refused(2, "remove", name, env=self.environment())
        # Files that tern did not put there are not deleted.
        elsewhere = scratch("elsewhere")
        os.makedirs(elsewhere, exist_ok=True)
        shutil.copy(command.model(), os.path.join(elsewhere, "mine.tern"))
        error = self.refused(2, "remove", "mine", env=self.environment(TERN_MODELS=elsewhere))
        self.assertIn("mine.tern", error)
        self.assertTrue(os.path.exists(os.path.join(elsewhere, "mine.tern")))

    def test_aliases(self):
        self.pull()
        env = self.environment()
        self.assertEqual(self.ok("ls", env=env).text, self.ok("list", env=env).text)
        self.assertEqual(self.ok("show", "fairy-tales", env=env).text,
                         self.ok("info", "fairy-tales", env=env).text)
        self.assertIn("background", self.refused(2, "ps", env=env))

    # ---- known models ----

    def test_known_models(self):
        rows = json.loads(self.pull("--json").text)
        names = [row["name"] for row in rows]
        self.assertIn("bitnet-2b", names)
        for row in rows:
            self.assertGreater(row["memory_bytes"], 0)
            self.assertIn(row["fits"], (True, False))
        row = rows[names.index("bitnet-2b")]
        self.assertEqual((row["repository"], row["file_bytes"], row["verified"], row["licence"]),
                         ("microsoft/bitnet-b1.58-2B-4T-gguf", 1187801280, True, "MIT"))
        self.assertLessEqual(sum(row["best"] for row in rows), 1)
        self.assertEqual(self.hub.requests, [])
        self.assertIn("bitnet-2b", self.ok("pull", env=self.environment()).text)

    def test_a_known_model_has_its_known_file(self):
        repository = "microsoft/bitnet-b1.58-2B-4T-gguf"
        self.hub.repositories[repository] = {"ggml-model-i2_s.gguf": b"x" * 200000}
        for name in ("bitnet-2b", repository, repository + ":ggml-model-i2_s.gguf"):
            self.assertIn("another size", self.failed(7, name))
        self.hub.listing = [dict(entry("ggml-model-i2_s.gguf", b""), size=1187801280,
                                 lfs={"oid": "1" * 64, "size": 1187801280})]
        self.assertIn("another hash", self.failed(7, "bitnet-2b"))
        # The request names the known revision, not the newest.
        self.assertFalse([path for path, _ in self.hub.requests if "/revision/" in path])
        self.assertEqual(self.hub.files_requested(), [])

    def test_names(self):
        self.assertIn("did you mean bitnet-2b?", self.failed(2, "bitnet-2n"))
        self.assertIn("tern pull OWNER/REPO", self.failed(2, "something-else"))
        for name in ("a/b/c", "../x", "a/..", "/x", "a/", "a b/c", "a/b:x.bin", "a/b:../x.gguf",
                     "a/b:", "https://a.example/y", "-x/y", "a/b:con.gguf"):
            self.failed(2, "--", name)
        self.assertIn("device", self.failed(2, "a/nul") + " device")
        self.assertEqual(self.hub.requests, [])

    # ---- redirects ----

    def test_redirects(self):
        other = Hub({})
        self.addCleanup(other.close)
        other.actions.append((WEIGHTS, lambda h: h.send_file(self.files[WEIGHTS])))
        self.act("resolve/.*tokenizer.json", lambda h: h.redirect("/moved/tokenizer.json"))
        self.act("moved/", lambda h: h.send_file(self.files["tokenizer.json"]))
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.redirect(f"{other.address}/cdn/{WEIGHTS}?a=b"))
        self.pull()
        self.check_model()
        self.assertEqual([path for path, _ in other.requests], [f"/cdn/{WEIGHTS}?a=b"])

    def test_redirects_that_are_not_followed(self):
        for location, said in (("http://192.0.2.1/x", "this computer only"),
                               ("ftp://127.0.0.1/x", "not an https address"),
                               ("file:///etc/passwd", "not an https address"),
                               ("https://" + "me:you@127.0.0.1/", "user name"),
                               ("http://127.0.0.1.a.example/x", "this computer only"),
                               ("http://127.0.0.1:1/\\\"x", "cannot be a part"),
                               ("", "does not say where")):
            with self.subTest(location=location):
                self.hub.reset()
                self.act("resolve/", lambda h: h.redirect(location))
                self.assertIn(said, self.failed(7))
        self.hub.reset()
        self.act("resolve/", lambda h: h.redirect(h.path))
        self.assertIn("more than 5 redirects", self.failed(7))
        self.assertEqual(len(self.hub.files_requested()), 6)

    # ---- refusals of the hub ----

    def test_refusals(self):
        for status, said in ((401, "HF_TOKEN"), (403, "accept its licence"), (404, "no such"),
                             (400, "status 400")):
            with self.subTest(status=status):
                self.hub.reset()
                self.act("/tree/", lambda h: h.send_text(status, "no") or True)
                error = self.failed(7)
                self.assertIn(said, error)
                self.assertIn(FOLDER, error)
                self.assertEqual(len(self.hub.requests), 2)  # a permanent refusal: requested once

    def test_servers_in_trouble(self):
        for status in (429, 500, 503):
            with self.subTest(status=status):
                shutil.rmtree(self.data, ignore_errors=True)
                self.hub.reset()
                self.act(f"resolve/.*{WEIGHTS}", lambda h: h.send_text(status, "later") or True, 2)
                self.assertIn("next attempt in 1 s", self.pull().err)
                self.check_model()
        self.hub.reset()
        self.ok("remove", "fairy-tales", env=self.environment())
        self.act(f"resolve/.*{WEIGHTS}",
                 lambda h: h.send_text(429, "later", Retry_After="86400") or True)
        self.assertIn("too many requests", self.failed(7))

    def test_no_hub(self):
        hub = Hub({})
        hub.close()
        self.assertIn("curl: ", self.failed(7, HF_ENDPOINT=hub.address))
        self.assertIn("this computer only", self.failed(2, HF_ENDPOINT="http://example.com"))
        self.assertIn("HF_ENDPOINT", self.failed(2, HF_ENDPOINT="nonsense"))

    def test_nonsense_for_an_answer(self):
        for text in ("", "[", "{}", "[1]", '[{"type":"file"}]', "[" * 100, "\xff",
                     '[{"type":"file","path":"config.json","size":-1}]',
                     '[{"type":"file","path":"config.json","size":1e30}]',
                     '[{"type":"file","path":"x.gguf","size":3,"lfs":{"oid":"zz","size":3}}]'):
            with self.subTest(text=text):
                self.hub.reset()
                self.act("/tree/", lambda h: h.send_text(200, text.encode("latin-1")) or True)
                self.failed(7)
        self.hub.reset()
        self.act("/revision/", lambda h: h.send_text(200, '{"sha":"../../x"}') or True)
        self.assertIn("newest revision", self.failed(7))
        self.hub.reset()
        self.act("/tree/", lambda h: h.send_text(200, b"[" + b" " * (9 << 20) + b"]") or True)
        self.assertIn("more than", self.failed(7))

    def test_hostile_names(self):
        good = [entry(name, data) for name, data in self.files.items()]
        for name in ("../evil", "..", "a/b.json", "a\\b", "C:x", "con", "NUL.json", "com1.gguf",
                     "x\n.json", "x\u0085", "trail.", "trail ", "", "a" * 201, "q?.json"):
            with self.subTest(name=name):
                self.hub.listing = good + [dict(good[0], path=name)]
                self.assertIn("nothing was fetched", self.failed(7))
        self.hub.listing = good + [dict(good[0])]
        self.assertIn("twice", self.failed(7))
        self.hub.listing = good * 250
        self.assertIn("more than 1000 files", self.failed(7))
        self.hub.listing = None
        self.act("/tree/", lambda h: h.send_text(
            200, json.dumps(good), Link='<https://example.com/>; rel="next"') or True)
        self.assertIn("more than 1000 files", self.failed(7))
        self.assertEqual(self.hub.files_requested(), [])

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

    def test_no_ranges(self):
        """A 200 to a range request restarts the download."""
        data = self.files[WEIGHTS]
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.cut(data, 5000000, False), 1)
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.send_file(data, False))
        self.pull()
        self.check_model()

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

    def test_a_file_of_this_name_stays(self):
        os.makedirs(self.models)
        mine = os.path.join(self.models, "fairy-tales.tern")
        shutil.copy(command.model(), mine)
        before = read_bytes(mine)
        result = self.pull(code=2)
        self.assertIn("something else", result.err)
        self.assertEqual(read_bytes(mine), before)

    # ---- curl ----

    def test_without_curl(self):
        script = f"mount --bind /dev/null {CURL} && exec \"$@\""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh",
                               *command.argv("pull", FOLDER)], env=self.environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=command.TIMEOUT, check=False)
        if b"unshare" in done.stderr or b"mount" in done.stderr:
            self.skipTest("mount is not allowed")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn(b"curl was not found", done.stderr)
        self.assertIn(f"{self.hub.address}/{FOLDER}".encode(), done.stderr)
        self.assertIn(b"tern convert", done.stderr)

    def test_curl_of_the_current_folder_and_the_path(self):
        """Neither counts, nor does a configuration file."""
        folder = scratch("traps")
        os.makedirs(folder, exist_ok=True)
        trap = os.path.join(folder, "curl")
        with open(trap, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\ntouch \"$0.used\"\n")
        os.chmod(trap, 0o755)
        with open(os.path.join(folder, ".curlrc"), "w", encoding="ascii") as f:
            f.write("url = \"http://127.0.0.1:1/\"\n")
        env = self.environment(PATH=folder + ":" + os.environ["PATH"], CURL_HOME=folder)
        result = command.tern("pull", FOLDER, env=env, cwd=folder)
        self.assertEqual(result.code, 0, result.err)
        self.assertFalse(os.path.exists(trap + ".used"))
        self.check_model()

    def certificate(self):
        path = scratch("hub.pem")
        openssl = shutil.which("openssl")
        if not openssl:
            self.skipTest("needs openssl")
        subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", path, "-out", path + ".crt"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(path, "ab") as f:
            f.write(read_bytes(path + ".crt"))
        return path

    def test_token_is_sent_to_endpoint_only(self):
        path = self.certificate()
        hub, other = Hub(self.hub.repositories, path), Hub({}, path)
        self.addCleanup(hub.close)
        self.addCleanup(other.close)
        other.actions.append((WEIGHTS, lambda h: h.send_file(self.files[WEIGHTS])))
        hub.actions.append((f"resolve/.*{WEIGHTS}",
                            lambda h: h.redirect(f"{other.address}/{WEIGHTS}")))
        token = "hf_" + hashlib.sha256(b"token").hexdigest()
        trust = {"HF_ENDPOINT": hub.address, "CURL_CA_BUNDLE": path + ".crt"}
        self.pull(HF_TOKEN=token, **trust)
        self.check_model()
        for _, headers in hub.requests:
            self.assertEqual(headers.get("Authorization"), "Bearer " + token)
        self.assertEqual(len(other.requests), 1)
        self.assertNotIn("Authorization", other.requests[0][1])
        # An unknown certificate, and a redirect from https to http.
        self.ok("remove", "fairy-tales", env=self.environment())
        self.assertIn("certificate", self.failed(7, HF_ENDPOINT=hub.address))
        hub.actions[0] = (f"resolve/.*{WEIGHTS}",
                          lambda h: h.redirect(f"{self.hub.address}/{WEIGHTS}"))
        self.assertIn("from https to", self.failed(7, **trust))
        for bad in ("a\"b", "a\\b", "a\nb"):
            error = self.failed(2, HF_TOKEN=bad, **trust)
            self.assertIn("HF_TOKEN", error)
            self.assertNotIn(bad, error)

    def test_no_token_over_http(self):
        self.pull(HF_TOKEN="hf_secret")
        self.assertFalse([h for _, h in self.hub.requests if "Authorization" in h])


STANDIN = os.environ.get("TERN_CURL_STANDIN")


@unittest.skipUnless(command.IS_WINE and STANDIN, "for Windows under an emulator")
class Windows(command.TestCase):
    """With a replacement of curl in System32."""

    def setUp(self):
        self.files = demo_files()
        self.hub = Hub({FOLDER: self.files})
        self.addCleanup(self.hub.close)
        prefix = os.environ.get("WINEPREFIX", os.path.expanduser("~/.wine"))
        self.curl = os.path.join(prefix, "drive_c", "windows", "system32", "curl.exe")
        shutil.copy(STANDIN, self.curl)
        self.addCleanup(os.remove, self.curl)

    def environment(self):
        env = command.environment(HF_ENDPOINT=self.hub.address)
        env.pop("HF_TOKEN", None)
        return env

    def test_pull(self):
        env = self.environment()
        command.tern("remove", "fairy-tales", env=env)
        left = [2]

        def cut_twice(handler):
            left[0] -= 1
            return left[0] >= 0 and handler.cut(self.files[WEIGHTS], 4000000)
        self.hub.actions.append((f"resolve/.*{WEIGHTS}", cut_twice))
        lines = self.ok("pull", FOLDER, "--json", env=env).text.splitlines()
        path = command.own_path(json.loads(lines[-1])["path"])
        info = json.loads(self.ok("info", "fairy-tales", "--json", env=env).text)
        self.assertEqual(info["name"], "fairy-tales")
        self.assertIn("bytes=", self.hub.files_requested()[-1][1]["Range"])
        # The bytes equal those of converting the folder.
        expected = command.model(DEMO, "--name", "fairy-tales")
        if os.path.exists(path):
            self.assertEqual(read_bytes(path), read_bytes(expected))
        self.ok("remove", "fairy-tales", env=env)
        self.assertIn("status 404", self.refused(7, "pull", "a/nothing", env=env))

    def test_without_curl(self):
        os.rename(self.curl, self.curl + ".away")
        self.addCleanup(os.rename, self.curl + ".away", self.curl)
        result = command.tern("pull", FOLDER, env=self.environment())
        self.assertEqual(result.code, 7, result.err)
        self.assertIn("curl was not found", result.err)


if __name__ == "__main__":
    command.main()
