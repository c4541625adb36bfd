#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The client libraries that programs use, unmodified: openai 2.54 and ollama 0.6.3, where this
Python has them (pip install openai==2.54.0 ollama==0.6.3; TERN_CLIENTS=1 makes their absence an
error)."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from serving import Server

STORY = [{"role": "user", "content": "Tell me a story."}]


def find(name):
    try:
        return __import__(name)
    except ImportError:
        if os.environ.get("TERN_CLIENTS") == "1":
            raise
        return None


# Both before any test: what a client leaves behind must not be collected inside an import.
LIBRARIES = {name: find(name) for name in ("openai", "ollama")}


def library(name):
    if not LIBRARIES[name]:
        raise unittest.SkipTest(f"no Python package {name}")
    return LIBRARIES[name]


class Clients(command.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_openai(self):
        openai = library("openai")
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.server.port}/v1", api_key="x")
        self.assertEqual([m.id for m in client.models.list()], ["model0"])
        ask = {"model": "model0", "messages": STORY, "max_tokens": 20, "seed": 1}
        whole = client.chat.completions.create(**ask, logprobs=True, top_logprobs=2)
        text = whole.choices[0].message.content
        self.assertEqual("".join(t.token for t in whole.choices[0].logprobs.content), text)
        events = list(client.chat.completions.create(
            **ask, stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(e.choices[0].delta.content or "" for e in events if e.choices),
                         text)
        self.assertEqual(events[-1].usage.total_tokens, whole.usage.total_tokens)
        self.assertTrue(client.completions.create(model="model0", prompt="Once",
                                                  max_tokens=5).choices[0].text)
        with self.assertRaises(openai.NotFoundError):
            client.chat.completions.create(model="none", messages=STORY)
        with self.assertRaises(openai.BadRequestError) as caught:
            client.chat.completions.create(
                model="model0", messages=[{"role": "user", "content": "word " * 3000}])
        self.assertEqual(caught.exception.code, "context_length_exceeded")

    def test_ollama(self):
        ollama = library("ollama")
        client = ollama.Client(host=f"http://127.0.0.1:{self.server.port}")
        self.assertEqual(client.list().models[0].model, "model0:latest")
        self.assertEqual(client.ps().models[0].name, "model0:latest")
        self.assertEqual(client.show("model0").modelinfo["general.architecture"], "bitnet")
        options = {"num_predict": 20, "seed": 1}
        whole = client.chat("model0", messages=STORY, options=options)
        self.assertEqual(whole.eval_count, 20)
        parts = client.chat("model0", messages=STORY, options=options, stream=True)
        self.assertEqual("".join(p.message.content for p in parts), whole.message.content)
        self.assertTrue(client.generate("model0", "Hi", options=options).response)
        with self.assertRaises(ollama.ResponseError) as caught:
            client.chat("none", messages=STORY)
        self.assertEqual(caught.exception.status_code, 404)
        with self.assertRaises(ollama.ResponseError) as caught:
            client.pull("x")
        self.assertEqual(caught.exception.status_code, 501)


if __name__ == "__main__":
    command.main()
