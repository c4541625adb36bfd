#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern pull, tern list and tern remove against a hub on this computer: what arrives is right or
reported, interrupted downloads continue, and nothing in the hub's responses becomes a path."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import DEMO, NATIVE, TERN, read_bytes, scratch
from hub import REVISION, Hub, entry
from pulling import CURL, FOLDER, PROXIES, WEIGHTS, Pull, demo_files


@unittest.skipUnless(NATIVE and CURL, "needs curl")
class Pulling(Pull):
    # ---- normal use ----

    def test_folder(self):
        result = self.pull()
        self.check_model()
        self.assertIn(f"Try: {TERN} chat fairy-tales", result.err)
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
        for name in ("a/two:b.gguf", "a/two"):
            self.assertIn("is here already", self.pull(name).err)
        self.assertIn("was made of a/two:b.gguf; tern remove two",
                      self.failed_only(2, "a/two:a.gguf"))
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
        os.remove(os.path.join(self.models, "fairy-tales.tern"))
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

    def test_a_refusal_after_a_redirect(self):
        """Its licence and HF_TOKEN have nothing to do with it."""
        other = Hub({})
        self.addCleanup(other.close)
        self.act(f"resolve/.*{WEIGHTS}", lambda h: h.redirect(f"{other.address}/x"))
        for status in (401, 403, 404):
            other.actions = [("", lambda h: h.send_text(status, "expired") or True)]
            self.assertIn(f"redirects to {other.address}, which answers with status {status}",
                          self.failed(7))

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

    def test_a_hub_on_this_computer_needs_no_proxy(self):
        hub = Hub({})
        hub.close()  # nobody listens there
        self.pull(**{name: hub.address for name in PROXIES})
        self.check_model()

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
        self.assertIn("curl was not found in the system's folders; update Windows", result.err)


if __name__ == "__main__":
    command.main()
