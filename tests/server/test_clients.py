#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Client libraries that programs use, unmodified, in the versions that fetch_clients.py has
installed; curl; and the commands in the server's README."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import fetch_clients
import filling
import serving
from thinking import SWITCH, thinking_model
from tools import TAGGED

WANTED = os.environ.get("TERN_CLIENTS", "1" if os.environ.get("CI") == "true" else "")


class Case(serving.TestCase):
    """One server with a model that generates and one that embeds."""

    @classmethod
    def setUpClass(cls):
        if not command.NATIVE:
            raise unittest.SkipTest("clients are run natively")
        vectors = command.model(command.shared("reference", "models", "tiny-embed-qwen3"))
        cls.start(models=[command.model(), vectors])
        cls.url = cls.server.line
        cls.chat, cls.vectors = cls.server.model_ids()

    def check(self, argv, **env):
        """Runs a command and expects success. Returns its output."""
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=command.environment(**env),
                              timeout=command.TIMEOUT, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done.stdout


class Libraries(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        caller = serving.serve_template(TAGGED)
        cls.addClassCleanup(caller.stop)
        thinker = serving.serve_template(SWITCH, [thinking_model()])
        cls.addClassCleanup(thinker.stop)
        cls.others = [caller.line, thinker.line]

    def folder(self, name):
        state = fetch_clients.state(name)
        if name == "node" and os.name != "nt":
            import resource
            if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
                self.skipTest("node needs more address space than this run may have")
        large = name in fetch_clients.LARGE and WANTED != "all"
        if state == "complete":
            return os.path.join(fetch_clients.FOLDER, name)
        if not state and WANTED and not large:
            self.fail(f"the clients \"{name}\" were not fetched")
        self.skipTest(state or f"not fetched; TERN_CLIENTS={'all' if large else '1'} does")

    def python(self, name, *argv, **env):
        return self.check([sys.executable, "-s", "-B", *argv], PYTHONPATH=self.folder(name), **env)

    def script(self, name, file, *more):
        return self.python(name, os.path.join(fetch_clients.HERE, file), self.url, self.chat,
                           self.vectors, *more)

    def test_openai_2(self):
        self.script("openai2", "use_openai.py", *self.others, "2.54")

    def test_openai_3(self):
        self.script("openai3", "use_openai.py", *self.others, "3.54")

    def test_anthropic(self):
        self.script("anthropic", "use_anthropic.py", *self.others)

    def test_ollama(self):
        self.script("openai2", "use_ollama.py", *self.others)

    def test_litellm(self):
        self.script("litellm", "use_litellm.py")

    def test_node(self):
        folder = self.folder("node")
        self.check(["node", os.path.join(fetch_clients.HERE, "use_node.mjs"), folder, self.url,
                    self.chat, self.vectors, *self.others])

    def test_llm(self):
        home = command.scratch("llm")
        os.makedirs(home, exist_ok=True)
        with open(os.path.join(home, "extra-openai-models.yaml"), "w", encoding="utf-8") as f:
            f.write(f"- model_id: tern\n  model_name: {self.chat}\n  api_base: {self.url}/v1\n"
                    "  api_key_name: tern\n")
        env = {"LLM_USER_PATH": home, "OLLAMA_HOST": self.url, "LLM_TERN_KEY": "x"}
        ask = ["-m", "llm", "-m", "tern", "Tell me a story.", "--key", "x", "-o", "max_tokens", "20",
               "-o", "temperature", "0", "--no-log"]
        streamed = self.python("openai2", *ask, **env)
        self.assertTrue(streamed.strip())
        self.assertEqual(self.python("openai2", *ask, "--no-stream", **env), streamed)
        # This client requests the list of models first.
        self.assertTrue(self.python("openai2", "-m", "llm", "-m", self.chat + ":latest", "Hi",
                                    "-o", "num_predict", "20", "--no-log", **env).strip())


class Readme(serving.TestCase):
    """The commands in the server's README, with the port of this server."""

    @classmethod
    def setUpClass(cls):
        if not command.NATIVE:
            raise unittest.SkipTest("clients are run natively")
        model = command.scratch("bitnet.tern")
        shutil.copy(command.model(), model)
        cls.start(models=[model])
        with open(os.path.join(command.ROOT, "src", "server", "README.md"),
                  encoding="utf-8") as f:
            text = f.read().replace("localhost:8080", f"127.0.0.1:{cls.server.port}")
        cls.blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)

    check, folder = Case.check, Libraries.folder

    def block(self, language):
        found = [text for name, text in self.blocks if name == language]
        self.assertEqual(len(found), 1, language)
        return found[0]

    def test_curl(self):
        if not shutil.which("curl"):
            self.skipTest("no curl")
        commands = [text[text.index("curl http"):] for _, text in self.blocks
                    if "curl http" in text]
        self.assertTrue(commands)
        with serving.Server(models=[filling.model(filling.QWEN)]) as editors:
            for line in commands:
                fills_in = "/infill" in line
                if fills_in:
                    line = line.replace(self.server.line, editors.line)
                answer = json.loads(self.check(shlex.split(line)))
                self.assertTrue(answer["content"] if fills_in else
                                answer["choices"][0]["message"]["content"])

    def test_python(self):
        folder = self.folder("openai2")
        self.assertTrue(self.check([sys.executable, "-s", "-B", "-c", self.block("python")],
                                   PYTHONPATH=folder).strip())

    def test_node(self):
        folder = self.folder("node")
        path = os.path.join(folder, "readme.mjs")
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.block("js"))
        self.assertTrue(self.check(["node", path]).strip())


class Curl(Case):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("curl"):
            raise unittest.SkipTest("no curl")
        super().setUpClass()

    def curl(self, *args):
        return json.loads(self.check(["curl", "-sS", "--max-time", "120", *args,
                                      self.url + "/v1/completions"]))

    def ask(self, text="Once"):
        return json.dumps({"model": self.chat, "prompt": text, "max_tokens": 2, "temperature": 0})

    def test_forms(self):
        expected = self.curl("-d", self.ask())["choices"]
        path = command.scratch("ask.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.ask())
        for form in (["--http2", "-d", self.ask()], ["--http1.0", "-d", self.ask()],
                     ["-X", "POST", "-T", path], ["-d", "@" + path], ["--json", "@" + path],
                     ["-H", "Expect: 100-continue", "-d", self.ask()],
                     ["-H", "Transfer-Encoding: chunked", "-d", self.ask()],
                     ["-H", "Content-Type:", "-d", self.ask()], ["--compressed", "-d", self.ask()]):
            with self.subTest(form=form[:2]):
                self.assertEqual(self.curl(*form)["choices"], expected)

    def test_standard_input_in_chunks(self):
        done = subprocess.run(["curl", "-sS", "-X", "POST", "-T", "-", self.url + "/v1/completions"],
                              input=self.ask().encode(), stdout=subprocess.PIPE,
                              timeout=command.TIMEOUT)
        self.assertEqual(len(json.loads(done.stdout)["choices"]), 1)

    def test_a_large_body(self):
        """Above 1 MiB curl waits for "100 Continue"."""
        path = command.scratch("large.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.ask("word " * 240000))
        self.assertGreater(os.path.getsize(path), 1200000)
        error = self.curl("-d", "@" + path)["error"]
        self.assertEqual(error["code"], "context_length_exceeded")


if __name__ == "__main__":
    command.main()
