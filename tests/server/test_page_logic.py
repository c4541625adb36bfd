#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page's Markdown, conversations, streams and files, run by node; its files in `tern chat`."""
import glob
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from serving import Server

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(command.ROOT, "src", "server", "page")


@unittest.skipUnless(shutil.which("node"), "node is missing")
class Logic(command.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = command.scratch("modules")
        os.makedirs(cls.folder)
        for path in glob.glob(os.path.join(SOURCES, "*.js")):
            shutil.copy(path, cls.folder)
        with open(os.path.join(cls.folder, "package.json"), "w", encoding="utf-8") as f:
            f.write('{"type": "module"}')

    def node(self, *args):
        done = subprocess.run(["node", os.path.join(HERE, "page_logic.mjs"), self.folder, *args],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode())
        return done.stdout

    def test_logic(self):
        self.node()

    def test_files_go_both_ways(self):
        known, path = command.scratch("page.json"), command.scratch("from-page.json")
        with Server() as server:
            _, _, data = server.request("GET", "/page.json")
            with open(known, "wb") as f:
                f.write(data)
            text = self.node("saved", known)
            _, answer = server.post("/checksum", text)
        with open(path, "wb") as f:
            f.write(text + b'"checksum": "%s"}\n' % answer["checksum"].encode())
        # The terminal continues the page's conversation, and the page the terminal's.
        self.ok("chat", command.model(), "--session", path, stdin=b"And then?\n")
        loaded = json.loads(self.node("load", path, known))
        first, *_, question, last = loaded["messages"]
        self.assertTrue(first["content"].startswith("Tell me a story.\n\tüñí 😀 \0"))
        self.assertEqual(len(loaded["messages"]), 6)
        self.assertEqual((question["content"], last["role"]), ("And then?", "assistant"))
        self.assertEqual(loaded["messages"][1]["reasoning_content"], "hm")
        self.assertIn("العربية", loaded["system"])
        for name, value in {"temperature": 0.5, "top_k": 7, "max_tokens": 8}.items():
            self.assertEqual(loaded["settings"][name], value)


if __name__ == "__main__":
    command.main()
