#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ollama's routes: formats, streams of lines, durations, options, refusals."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving

COUNTS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration",
          "eval_count", "eval_duration")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")


class Ollama(serving.TestCase):
    def lines(self, path, body, status=200):
        got, headers, data = self.server.request("POST", path, dict({"model": "model0"}, **body))
        self.assertEqual(got, status, data)
        self.assertEqual(headers["Content-Type"], "application/x-ndjson")
        self.assertTrue(data.endswith(b"\n"))
        lines = data.decode().split("\n")[:-1]
        self.assertNotIn("", lines)
        return [json.loads(line) for line in lines]

    def whole(self, path, body, status=200):
        return self.post(path, dict({"model": "model0", "stream": False}, **body), status)

    def check_done(self, last):
        self.assertTrue(last["done"])
        self.assertIn(last["done_reason"], ("stop", "length"))
        for name in COUNTS:
            self.assertIsInstance(last[name], int)
            self.assertGreater(last[name], 0, name)
        self.assertRegex(last["created_at"], TIME)
        self.assertNotIn("error", last)

    def test_generate(self):
        ask = {"prompt": "Tell me a story.", "options": {"num_predict": 30, "seed": 3}}
        whole = self.whole("/api/generate", ask)
        self.check_done(whole)
        self.assertTrue(whole["context"])
        lines = self.lines("/api/generate", ask)
        self.assertEqual("".join(l["response"] for l in lines), whole["response"])
        self.assertTrue(all(not l["done"] for l in lines[:-1]))
        self.check_done(lines[-1])
        run = self.ok("run", command.model(), "-p", "Tell me a story.", "-n", "30", "--seed", "3")
        self.assertEqual(whole["response"].rstrip("\n"), run.text.rstrip("\n"))

    def test_chat(self):
        ask = {"messages": [{"role": "user", "content": "Tell me a story."}],
               "options": {"num_predict": 30, "temperature": 0}}
        whole = self.whole("/api/chat", ask)
        self.check_done(whole)
        self.assertEqual(whole["message"]["role"], "assistant")
        lines = self.lines("/api/chat", ask)
        self.assertEqual("".join(l["message"]["content"] for l in lines),
                         whole["message"]["content"])
        self.check_done(lines[-1])
        same = self.whole("/api/generate", {"prompt": "Tell me a story.",
                                            "options": ask["options"]})
        self.assertEqual(same["response"], whole["message"]["content"])

    def test_raw_and_system(self):
        options = {"num_predict": 12, "temperature": 0}
        raw = self.whole("/api/generate", {"prompt": "Once upon", "raw": True, "options": options})
        run = self.ok("run", command.model(), "--raw", "-p", "Once upon", "-n", "12", "--greedy")
        self.assertEqual(raw["response"].rstrip("\n"), run.text.rstrip("\n"))
        plain = self.whole("/api/generate", {"prompt": "Hi", "options": options})
        system = self.whole("/api/generate", {"prompt": "Hi", "system": "Be brief.",
                                              "options": options})
        self.assertGreater(system["prompt_eval_count"], plain["prompt_eval_count"])
        longer = self.whole("/api/generate", {"prompt": "Hi", "system": "Be brief.\0And kind.",
                                              "options": options})
        self.assertGreater(longer["prompt_eval_count"], system["prompt_eval_count"] + 2)

    def test_context(self):
        """The context in one answer is the prefix of the next prompt."""
        options = {"temperature": 0}
        first = self.whole("/api/generate", {"prompt": "Hi", "options": options})
        self.assertEqual(first["done_reason"], "stop")
        next = {"prompt": "Tell me a story.", "options": dict(options, num_predict=12)}
        alone = self.whole("/api/generate", next)
        second = self.whole("/api/generate", dict(next, context=first["context"]))
        n = len(first["context"]) - 1  # one BOS for both
        self.assertEqual(second["prompt_eval_count"], n + alone["prompt_eval_count"])
        self.assertEqual(second["context"][:n + 1], first["context"])
        chat = self.whole("/api/chat", {"options": next["options"], "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": first["response"]},
            {"role": "user", "content": next["prompt"]}]})
        # There the end of the template's text and the answer may merge into one token.
        self.assertAlmostEqual(chat["prompt_eval_count"], second["prompt_eval_count"], delta=1)
        self.assertEqual(self.whole("/api/generate", dict(next, context=[]))["response"],
                         alone["response"])

    def test_logprobs(self):
        ask = {"prompt": "Hi", "messages": [{"role": "user", "content": "Hi"}],
               "logprobs": True, "top_logprobs": 3, "options": {"temperature": 0}}
        for path, text in (("/api/generate", lambda a: a["response"]),
                           ("/api/chat", lambda a: a["message"]["content"])):
            whole = self.whole(path, ask)
            rows = whole["logprobs"]
            self.assertEqual("".join(r["token"] for r in rows), text(whole))
            for row in rows:
                self.assertEqual(bytes(row["bytes"]).decode(), row["token"])
                tops = [t["logprob"] for t in row["top_logprobs"]]
                self.assertEqual((len(tops), tops), (3, sorted(tops, reverse=True)))
                self.assertEqual(row["logprob"], tops[0])
            lines = self.lines(path, ask)
            self.assertEqual([r for l in lines for r in l.get("logprobs", ())], rows)
            for line in lines:
                self.assertEqual("".join(r["token"] for r in line.get("logprobs", ())), text(line))
            self.assertNotIn("logprobs", self.whole(path, dict(ask, logprobs=False,
                                                               top_logprobs=0)))

    def test_empty_requests_load(self):
        for path in ("/api/generate", "/api/chat"):
            for body, reason in (({}, "load"), ({"keep_alive": 0}, "unload"),
                                 ({"keep_alive": "5m"}, "load")):
                answer = self.whole(path, body)
                self.assertEqual((answer["done"], answer["done_reason"]), (True, reason))

    def test_options(self):
        names = ("num_ctx", "num_predict", "num_keep", "seed", "temperature", "top_k", "top_p",
                 "min_p", "repeat_penalty", "repeat_last_n", "presence_penalty",
                 "frequency_penalty", "stop", "num_thread")
        self.whole("/api/generate", {"prompt": "Hi", "options": dict(
            {n: None for n in names}, num_predict=2)})
        self.whole("/api/generate", {"prompt": "Hi", "options": None, "format": "", "images": [],
                                     "suffix": "", "think": False, "stream": False,
                                     "unknown": 1, "keep_alive": 300, "raw": None})
        for n_ctx in (0, 8, 1024, 1 << 20):  # the context stays that of the server
            self.assertEqual(self.whole("/api/generate", {"prompt": "Hi", "options": {
                "num_predict": 20, "num_ctx": n_ctx, "temperature": 0}})["eval_count"], 20)
        self.assertEqual(self.whole("/api/generate", {
            "prompt": "Hi", "options": {"num_predict": 3, "unknown": {}}})["eval_count"], 3)

    def test_names(self):
        for name in ("model0", "model0:latest"):
            answer = self.whole("/api/generate", {"model": name, "prompt": "Hi",
                                                  "options": {"num_predict": 1}})
            self.assertEqual(answer["model"], name)
        for path in ("/api/generate", "/api/chat", "/api/show"):
            answer = self.whole(path, {"model": "model0\0x"}, 400)
            self.assertIn("NUL", answer["error"])
            answer = self.whole(path, {"model": "none"}, 404)
            self.assertEqual(answer, {"error": "model 'none' not found; this server has 'model0'"})

    def test_about_models(self):
        status, _, data = self.server.request("GET", "/")
        self.assertEqual((status, data), (200, b"Ollama is running"))
        self.assertEqual(self.server.request("HEAD", "/")[0], 200)
        self.assertRegex(self.server.get("/api/version")[1]["version"], r"^\d+\.\d+\.\d+$")
        tags = self.server.get("/api/tags")[1]["models"]
        self.assertEqual([m["name"] for m in tags], ["model0:latest"])
        self.assertRegex(tags[0]["digest"], "^[0-9a-f]{64}$")
        self.assertEqual(tags[0]["size"], os.path.getsize(command.model()))
        self.assertRegex(tags[0]["modified_at"], TIME)
        ps = self.server.get("/api/ps")[1]["models"][0]
        self.assertEqual((ps["digest"], ps["context_length"]), (tags[0]["digest"], 1024))
        for key in ("model", "name"):
            show = self.post("/api/show", {key: "model0"})
            info = show["model_info"]
            family = info["general.architecture"]
            self.assertEqual(info[family + ".context_length"], 1024)
            self.assertEqual(show["capabilities"], ["completion"])
            self.assertEqual(set(show["details"]), {"parent_model", "format", "family", "families",
                                                    "parameter_size", "quantization_level"})
            self.assertEqual(show["details"]["quantization_level"], "ternary")
        plain = command.model(command.shared("reference", "hybrids", "models", "tiny-qwen35"))
        with serving.Server(models=[plain]) as server:
            level = server.get("/api/tags")[1]["models"][0]["details"]["quantization_level"]
            self.assertEqual(level, json.loads(command.tern("info", plain, "--json").text)["layout"])

    def test_a_served_model_needs_no_pull(self):
        for name in ("model0", "model0:latest"):
            for more in ({"model": name}, {"name": name}, {"model": name, "stream": True}):
                self.assertEqual(self.lines("/api/pull", more)[-1], {"status": "success"})
        self.post("/api/pull", {"model": 5}, 400)

    def test_nothing_is_written_or_fetched(self):
        self.assertIsInstance(self.post("/api/pull", {"model": "none"}, 501)["error"], str)
        for path in ("/api/push", "/api/create", "/api/copy", "/api/delete",
                     "/api/blobs/sha256:00"):
            for method in ("POST", "DELETE", "GET"):
                status, _, data = self.server.request(method, path, b"{}")
                self.assertEqual(status, 501)
                self.assertIsInstance(json.loads(data)["error"], str)

    def test_refusals(self):
        for body in ({"prompt": 5}, {"prompt": "Hi", "options": 5}, {"prompt": "Hi", "raw": 5},
                     {"prompt": "Hi", "options": {"temperature": "hot"}},
                     {"prompt": "Hi", "options": {"temperature": -1}},
                     {"prompt": "Hi", "format": "yaml"}, {"prompt": "Hi", "format": 5},
                     {"prompt": "Hi", "format": {"type": "object", "minProperties": 1}},
                     {"prompt": "Hi", "images": ["x"]}, {"prompt": "Hi", "think": True},
                     {"prompt": "Hi", "think": "low"}, {"prompt": "Hi", "top_logprobs": 2},
                     {"prompt": "Hi", "logprobs": True, "top_logprobs": 21},
                     {"prompt": "Hi", "template": "x"}, {"prompt": "Hi", "context": 5},
                     {"prompt": "Hi", "context": [1 << 30]},
                     {"prompt": "Hi", "suffix": "x"}, {"prompt": "Hi", "template": ["x"]},
                     {"prompt": "Hi", "images": "x"}, {"prompt": "Hi", "options": {"lora": [5]}},
                     {"prompt": "word " * 3000}):
            answer = self.whole("/api/generate", body, 400)
            self.assertEqual(set(answer), {"error"})
            self.assertIsInstance(answer["error"], str)
        self.whole("/api/chat", {"messages": [{"role": "user"}]}, 400)
        self.whole("/api/chat", {"messages": [{"role": "user", "content": "Hi", "images": ["x"]}]},
                   400)
        self.whole("/api/chat", {"messages": [{"role": "user", "content": "Hi"}],
                                 "tools": [{"type": "function"}]}, 400)


if __name__ == "__main__":
    command.main()
