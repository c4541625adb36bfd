#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Embeddings over HTTP: the vectors of `tern embed` in the formats of OpenAI and Ollama, next to a
model that generates; refusals of texts that are too long or empty, or for the wrong model."""
import array
import base64
import json
import math
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from serving import Server

TEXTS = ["The cat sat on the mat.", "A dog.", "Ünïcödé 🙂"]
OPENAI = "/v1/embeddings"
CONTEXT = 512


def floats(text):
    values = array.array("f", base64.b64decode(text))
    if sys.byteorder == "big":
        values.byteswap()
    return list(values)


class Embeddings(serving.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = command.shared("reference", "models", "tiny-embed-qwen3")
        cls.vectors = command.model(folder)
        cls.start("--ctx", str(CONTEXT), models=[command.model(), cls.vectors])
        cls.chat_id, cls.id = cls.server.model_ids()
        info = cls.server.post("/api/show", {"model": cls.id})[1]["model_info"]
        cls.hidden = info[info["general.architecture"] + ".embedding_length"]

    def post(self, path, body, status=200, server=None):
        return super().post(path, dict({"model": self.id}, **body), status, server)

    def vectors_of(self, **body):
        answer = self.post(OPENAI, body)
        self.assertEqual([d["index"] for d in answer["data"]], list(range(len(answer["data"]))))
        return [d["embedding"] for d in answer["data"]]

    def command_line(self, texts, *flags):
        out = self.ok("embed", self.vectors, "--json", *flags, stdin=json.dumps(texts).encode())
        return [json.loads(line) for line in out.text.splitlines()]

    def test_the_vectors_of_the_command(self):
        lines = self.command_line(TEXTS)
        answer = self.post(OPENAI, {"input": TEXTS})
        self.assertEqual((answer["object"], answer["model"]), ("list", self.id))
        for line, entry in zip(lines, answer["data"]):
            self.assertEqual(entry["object"], "embedding")
            self.assertEqual(entry["embedding"], line["embedding"])
            self.assertAlmostEqual(math.fsum(x * x for x in entry["embedding"]), 1, 5)
        n_tokens = sum(line["tokens"] for line in lines)
        self.assertEqual(answer["usage"], {"prompt_tokens": n_tokens, "total_tokens": n_tokens})
        ollama = self.post("/api/embed", {"input": TEXTS})
        self.assertEqual(ollama["embeddings"], [line["embedding"] for line in lines])
        self.assertEqual((ollama["prompt_eval_count"], ollama["model"]), (n_tokens, self.id))
        self.assertGreater(ollama["total_duration"], 0)

    def test_forms_of_input(self):
        one = self.vectors_of(input=TEXTS[0])
        self.assertEqual(one, self.vectors_of(input=[TEXTS[0]]))
        self.assertEqual(len(one[0]), self.hidden)
        ids = [5, 6, 7, 8]
        run = self.ok("embed", self.vectors, "--raw", "--ids", "5 6 7 8")
        self.assertEqual(list(array.array("f", run.out)),
                         floats(self.vectors_of(input=ids, encoding_format="base64")[0]))
        mixed = self.vectors_of(input=[ids, TEXTS[0], ids])
        self.assertEqual((mixed[0], mixed[1]), (mixed[2], one[0]))
        self.assertEqual(self.post("/api/embeddings", {"prompt": TEXTS[0]}), {"embedding": one[0]})
        self.assertEqual(self.post("/api/embed", {"input": TEXTS[0]})["embeddings"], one)

    def test_base64_is_the_same(self):
        plain = self.vectors_of(input=TEXTS, encoding_format="float")
        coded = self.vectors_of(input=TEXTS, encoding_format="base64")
        for a, b in zip(plain, coded):
            self.assertEqual(list(array.array("f", a)), floats(b))

    def test_dimensions(self):
        n = self.hidden // 2
        lines = self.command_line(TEXTS, "--dim", str(n))
        self.assertEqual(self.vectors_of(input=TEXTS, dimensions=n),
                         [line["embedding"] for line in lines])
        self.assertEqual(self.post("/api/embed", {"input": TEXTS, "dimensions": n})["embeddings"],
                         [line["embedding"] for line in lines])
        self.assertEqual(len(self.vectors_of(input="x")[0]), self.hidden)
        for wrong in (0, -1, self.hidden + 1, 1.5, "5"):
            error = self.post(OPENAI, {"input": "x", "dimensions": wrong}, 400)["error"]
            self.assertEqual(error["param"], "dimensions")

    def test_too_long(self):
        long = [5] * (CONTEXT + 1)
        error = self.post(OPENAI, {"input": [[5], long]}, 400)["error"]
        self.assertEqual(error["code"], "context_length_exceeded")
        self.assertTrue(error["message"].startswith(
            f"This model's maximum context length is {CONTEXT} tokens"))
        text = "word " * (CONTEXT + 10)
        self.post("/api/embed", {"input": text, "truncate": False}, 400)
        cut = self.post("/api/embed", {"input": text})
        self.assertEqual(cut["prompt_eval_count"], CONTEXT)
        self.assertEqual(len(self.vectors_of(input=long[1:])), 1)

    def test_refusals(self):
        vocab = 1 << 31
        for body in ({}, {"input": None}, {"input": []}, {"input": 5}, {"input": {}},
                     {"input": [None]}, {"input": [[]]}, {"input": [5, "x"]}, {"input": [vocab]},
                     {"input": [-1]}, {"input": [1.5]}, {"input": ["x"] * 2049},
                     {"input": "x", "encoding_format": "int8"},
                     {"input": "x", "encoding_format": 5}):
            error = self.post(OPENAI, body, 400)["error"]
            self.assertEqual(set(error), {"message", "type", "param", "code"})
        for path, body in (("/api/embed", {}), ("/api/embed", {"input": 5}),
                           ("/api/embed", {"input": [5]}),
                           ("/api/embed", {"input": "x", "truncate": 1}),
                           ("/api/embeddings", {"prompt": ["x"]})):
            self.assertIn("prompt" if "prompt" in body else "input" if "truncate" not in body
                          else "truncate", self.post(path, body, 400)["error"])
        self.assertEqual(self.post("/api/embed", {"input": ""})["embeddings"], [])
        self.assertEqual(self.post("/api/embed", {"input": []})["embeddings"], [])
        self.assertEqual(self.post("/api/embeddings", {"prompt": ""}), {"embedding": []})

    def test_each_model_has_its_routes(self):
        messages = [{"role": "user", "content": "Hi"}]
        error = self.post("/v1/chat/completions", {"messages": messages}, 400)["error"]
        self.assertIn("embeddings", error["message"])
        self.assertIn("embeddings", self.post("/api/chat", {"messages": messages}, 400)["error"])
        error = self.post(OPENAI, {"model": self.chat_id, "input": "x"}, 400)["error"]
        self.assertEqual(error["param"], "model")
        self.post("/api/embed", {"model": self.chat_id, "input": "x"}, 400)
        self.post(OPENAI, {"model": "none", "input": "x"}, 404)
        # Without a name: the only model for this use.
        self.assertEqual(self.server.post(OPENAI, {"input": "x"})[1]["model"], self.id)
        status, answer = self.server.post("/v1/completions", {"prompt": "Once", "max_tokens": 2})
        self.assertEqual((status, answer["model"]), (200, self.chat_id))
        tags = {m["name"].split(":")[0]: m["capabilities"]
                for m in self.server.get("/api/tags")[1]["models"]}
        self.assertEqual(tags, {self.chat_id: ["completion"], self.id: ["embedding"]})

    def test_answers_continue_during_many_texts(self):
        """Neither kind of work waits for the other to end, and results do not change."""
        ask = {"model": self.chat_id, "prompt": "Once upon a time", "temperature": 0,
               "max_tokens": 60}
        text = self.server.post("/v1/completions", ask)[1]["choices"][0]["text"]
        alone = self.vectors_of(input=TEXTS)
        results, stop = [], threading.Event()
        def embed():
            while not stop.is_set():
                results.append(self.vectors_of(input=TEXTS * 20) == alone * 20)
        threads = [threading.Thread(target=embed) for _ in range(3)]
        for t in threads:
            t.start()
        try:
            for _ in range(3):
                self.assertEqual(self.server.post("/v1/completions", ask)[1]["choices"][0]["text"],
                                 text)
        finally:
            stop.set()
            for t in threads:
                t.join()
        self.assertTrue(results and all(results))

    def test_client_disconnects(self):
        body = json.dumps({"model": self.id, "input": [[5] * CONTEXT] * 500}).encode()
        for _ in range(3):
            with self.server.connect() as s:
                s.sendall(serving.post_head(OPENAI, len(body)) + body)
        self.assertEqual(len(self.vectors_of(input="x")), 1)

    def test_only_an_embedding_model(self):
        with Server(models=[self.vectors]) as server:
            self.assertEqual(server.post(OPENAI, {"input": "x"})[0], 200)
            for path in ("/v1/completions", "/v1/chat/completions", "/api/generate", "/api/chat"):
                status, answer = server.post(path, {"prompt": "x", "messages": []})
                self.assertEqual(status, 400, answer)


if __name__ == "__main__":
    command.main()
