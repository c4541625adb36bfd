#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The browser page as the server delivers it: access, headers, and that it loads nothing from
elsewhere. test_page_browser.py has the tests in a browser."""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from serving import Server

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
LIMIT_BYTES = 150_000
IMPORT = re.compile(r'^import .* from "\./([a-z]+\.js)";$', re.MULTILINE)
ADDRESS = re.compile(r"""(?:https?:|["'(=\s])//[\w.-]+\.\w+""")
NAMESPACE = "http://www.w3.org/2000/svg"


def files_of(server):
    """name -> (headers, text) of the page and all files that it references."""
    files, wanted = {}, ["index.html"]
    while wanted:
        name = wanted.pop()
        path = "/" if name == "index.html" else "/page/" + name
        status, headers, data = server.request("GET", path, headers=HTML)
        assert status == 200, (path, status)
        text = data.decode("utf-8")
        files[name] = headers, text
        named = IMPORT.findall(text) + re.findall(r'(?:src|href)="/page/([\w.]+)"', text)
        wanted += [other for other in named if other not in files and other not in wanted]
    return files


class Page(serving.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = files_of(cls.server)

    def test_browsers_get_the_page_and_programs_a_line(self):
        for accept in (None, "*/*", "application/json"):
            headers = {"Accept": accept} if accept else {}
            status, headers, data = self.server.request("GET", "/", headers=headers)
            self.assertEqual((status, data), (200, b"Ollama is running"))
            self.assertEqual(headers["Content-Type"], "text/plain; charset=utf-8")
            self.assertIn("Accept", headers.get_all("Vary"))
        status, headers, data = self.server.request("GET", "/", headers=HTML)
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertTrue(data.startswith(b"<!DOCTYPE html>"))
        status, head, nothing = self.server.request("HEAD", "/", headers=HTML)
        self.assertEqual((status, nothing), (200, b""))
        self.assertEqual(head["Content-Length"], str(len(data)))
        self.assertEqual(head["ETag"], headers["ETag"])
        status, _, _ = self.server.request("POST", "/", b"", HTML)
        self.assertEqual(status, 405)

    def test_headers_of_the_page(self):
        for name, (headers, _) in self.files.items():
            policy = dict(part.strip().split(" ", 1)
                          for part in headers["Content-Security-Policy"].split(";"))
            self.assertEqual(policy["default-src"], "'none'", name)
            self.assertEqual(policy["frame-ancestors"], "'none'")
            self.assertEqual(policy["base-uri"], "'none'")
            self.assertEqual(policy["require-trusted-types-for"], "'script'")
            for what in ("script-src", "style-src", "connect-src", "img-src"):
                self.assertEqual(policy[what], "'self'")
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Referrer-Policy"], "no-referrer")
            self.assertEqual(headers.get_all("Cache-Control"), ["no-cache"])

    def test_a_known_copy_is_not_sent_again(self):
        for name, (headers, _) in self.files.items():
            path = "/" if name == "index.html" else "/page/" + name
            known = dict(HTML, **{"If-None-Match": headers["ETag"]})
            status, again, data = self.server.request("GET", path, headers=known)
            self.assertEqual((status, data, again["ETag"]), (304, b"", headers["ETag"]))
            other = dict(HTML, **{"If-None-Match": '"0"'})
            self.assertEqual(self.server.request("GET", path, headers=other)[0], 200)

    def test_page_loads_no_other_resources(self):
        n_bytes = sum(len(text.encode()) for _, text in self.files.values())
        self.assertLessEqual(n_bytes, LIMIT_BYTES)
        self.assertGreater(len(self.files), 10)
        for name, (_, text) in self.files.items():
            self.assertEqual(ADDRESS.findall(text.replace(NAMESPACE, "")), [], name)
        _, html = self.files["index.html"]
        self.assertEqual(re.findall(r"<script[^>]*>(.+?)</script>", html), [])
        self.assertNotRegex(html, r"<style|\sstyle=|\son[a-z]+=")
        for name, (_, text) in self.files.items():
            self.assertNotRegex(
                text, r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", name)

    def test_scripts_name_existing_files(self):
        ids = set(re.findall(r'\bid="([\w-]+)"', self.files["index.html"][1]))
        for name, (_, text) in self.files.items():
            for found in re.findall(r'\bget\("([\w-]+)"\)', text):
                self.assertIn(found, ids, name)
            for found in re.findall(r'\b(?:icon|iconButton)\("([\w-]+)"', text):
                self.assertIn("icon-" + found, ids, name)

    @unittest.skipUnless(shutil.which("node"), "node is missing")
    def test_scripts_are_well_formed(self):
        folder = command.scratch("page")
        os.makedirs(folder)
        with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as f:
            f.write('{"type": "module"}')
        for name, (_, text) in self.files.items():
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            if name.endswith(".js"):
                done = subprocess.run(["node", "--check", path], stderr=subprocess.PIPE,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stderr.decode())

    def test_other_names_are_not_found(self):
        for path in ("/page/", "/page", "/page/none.js", "/page/../page.c", "/page/%2e%2e/page.c",
                     "/page/index.html/", "/page/app.js%00"):
            status, _, data = self.server.request("GET", path, headers=HTML)
            self.assertIn(status, (400, 404), path)
            self.assertIn("error", json.loads(data))

    def test_models_of_the_page(self):
        status, known = self.server.get("/page.json")
        self.assertEqual(status, 200)
        [model] = known["models"]
        self.assertEqual((model["id"], model["has_chat"], model["is_embedding"]),
                         ("model0", True, False))
        self.assertRegex(model["hash"], "^[0-9a-f]{16}$")
        self.assertGreater(model["n_ctx"], model["default_new_tokens"] // 8)
        self.assertEqual(known["defaults"], {
            "temperature": 0.7, "top_k": 40, "top_p": 0.95, "min_p": 0, "repeat_penalty": 1.1,
            "presence_penalty": 0.6, "frequency_penalty": 0, "repeat_last_n": 64})

    def test_embedding_models_are_not_for_chat(self):
        source = command.shared("reference", "gguf", "tiny-embed-qwen3", "i2_s-pool-mean.gguf")
        embedder = command.scratch("embedder.tern")
        self.ok("convert", source, "-o", embedder)
        with Server(models=[embedder, command.model()]) as server:
            known = server.get("/page.json")[1]["models"]
            self.assertEqual([model["is_embedding"] for model in known], [True, False])
            asked = {"model": known[0]["id"], "messages": [{"role": "user", "content": "Hi"}]}
            status, answer = server.post("/v1/chat/completions", asked)
            self.assertEqual(status, 400)
            self.assertIn("embedding", answer["error"]["message"])

    def test_the_checksum_of_a_saved_conversation(self):
        path = command.scratch("saved.json")
        self.ok("chat", command.model(), "-n", "8", "--session", path, stdin=b"Tell me a story.\n")
        saved = command.read_bytes(path)
        at = saved.rindex(b'"checksum"')
        self.assertEqual(len(saved) - at, 32)
        answer = self.post("/checksum", saved[:at])
        self.assertEqual(answer["checksum"], saved[at + 13:at + 29].decode())
        other = self.post("/checksum", saved[:at - 1])
        self.assertNotEqual(other, answer)


class Flags(command.TestCase):
    def test_without_the_page(self):
        with Server("--no-page") as server:
            status, headers, data = server.request("GET", "/", headers=HTML)
            self.assertEqual((status, data), (200, b"Ollama is running"))
            self.assertNotIn("Content-Security-Policy", headers)
            self.assertEqual(server.request("GET", "/page/app.js")[0], 404)

    def test_the_page_needs_no_key_and_asks_for_it(self):
        env = command.environment(TERN_API_KEY="k")
        with Server(env=env) as server:
            self.assertEqual(server.request("GET", "/", headers=HTML)[0], 200)
            self.assertEqual(server.request("GET", "/page/app.js")[0], 200)
            self.assertEqual(server.request("GET", "/page.json")[0], 401)
            self.assertEqual(server.request("POST", "/checksum", b"x")[0], 401)
            server.key = "k"
            self.assertEqual(server.request("GET", "/page.json")[0], 200)
        with Server("--no-page", env=env) as server:
            self.assertEqual(server.request("GET", "/page/app.js")[0], 401)
            self.assertEqual(server.request("GET", "/")[0], 401)

    def test_a_page_cannot_be_opened_and_left_out(self):
        self.assertIn("--no-page", self.refused(2, "serve", command.model(), "--open", "--no-page"))


@unittest.skipUnless(command.NATIVE and sys.platform.startswith("linux"), "xdg-open is of Linux")
class Open(command.TestCase):
    def opener(self, text):
        """A folder with an xdg-open, and the file that it writes."""
        folder = command.scratch("opener")
        os.makedirs(folder, exist_ok=True)
        path, seen = os.path.join(folder, "xdg-open"), os.path.join(folder, "seen")
        if os.path.exists(seen):
            os.remove(seen)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("SEEN", seen))
        os.chmod(path, stat.S_IRWXU)
        return folder, seen

    def env(self, folder, **more):
        env = command.environment(PATH=f"{folder}:/usr/bin:/bin", **more)
        env.pop("WAYLAND_DISPLAY", None)
        if "DISPLAY" not in more:
            env.pop("DISPLAY", None)
        return env

    def test_the_browser_is_started(self):
        folder, seen = self.opener('#!/bin/sh\n{ echo "$@"; ls /proc/self/fd | wc -l; } '
                                   "> SEEN.part\nmv SEEN.part SEEN\n")
        with Server("--open", env=self.env(folder, DISPLAY=":9")) as server:
            command.wait_for(lambda: os.path.exists(seen), "the opener was not started")
            address, n_files = command.read_bytes(seen).decode().splitlines()
            self.assertEqual(address, server.line + "/")
            self.assertLessEqual(int(n_files), 5)   # three, the folder, and a pipe of the shell
            server.stop()
            self.assertNotIn("--open", server.err)

    def test_without_a_display_or_an_opener(self):
        folder, seen = self.opener("#!/bin/sh\ntouch SEEN\n")
        empty = command.scratch("empty")
        os.makedirs(empty, exist_ok=True)
        cases = {"there is no display": self.env(folder),
                 "there is no xdg-open": dict(self.env(empty, DISPLAY=":9"), PATH=empty)}
        for words, env in cases.items():
            with Server("--open", env=env) as server:
                self.assertEqual(server.get("/health")[0], 200)
                server.stop()
                warnings = [line for line in server.err.splitlines() if "--open" in line]
                self.assertEqual(len(warnings), 1, server.err)
                self.assertIn(words, warnings[0])
                self.assertIn(server.line, warnings[0])
                self.assertEqual(server.code, 0)
        self.assertFalse(os.path.exists(seen))


if __name__ == "__main__":
    command.main()
