#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fill-in-the-middle: /infill of llama.cpp's server, and "suffix" of the other APIs."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import filling
import serving
from filling import BOS, FILE, MIDDLE, PREFIX, REPOSITORY, SUFFIX

HEAD = f"{BOS}{REPOSITORY}myproject\n"
GAP = {"input_prefix": "Once upon a time\n", "prompt": "there was ", "input_suffix": "\nThe end.\n"}
CHUNKS = [{"filename": "a.txt", "text": "A cat.\n"}, {"text": "A <|eot_id|> dog.\n"}]
N_CTX = 1024


class Infill(serving.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.start("--parallel", "2", models=[filling.model(filling.QWEN)])

    def fill(self, status=200, **more):
        return self.post("/infill", dict(GAP, n_predict=24, temperature=0, **more), status)

    def tokens(self, text, **more):
        return self.post("/tokenize", dict(more, content=text))["tokens"]

    # ---- prompts ----

    def test_the_order_of_the_prompt(self):
        gap = (f"{PREFIX}Once upon a time\nthere was {SUFFIX}\nThe end.\n{MIDDLE}")
        answer = self.fill()
        self.assertEqual(answer["prompt"], f"{HEAD}{FILE}filename\n{gap}")
        self.assertEqual(answer["tokens_evaluated"], len(self.tokens(HEAD)) + len(
            self.tokens(f"{FILE}filename\n")) + sum(len(self.tokens(t)) for t in (
                GAP["input_prefix"], GAP["prompt"], GAP["input_suffix"])) + 3)
        extra = self.fill(input_extra=CHUNKS)
        self.assertEqual(extra["prompt"], f"{HEAD}{FILE}a.txt\nA cat.\n{FILE}tmp\n"
                                          f"A <|eot_id|> dog.\n{FILE}filename\n{gap}")
        self.assertEqual(self.tokens("<|eot_id|>"), [4089])
        raw = self.post("/completion", {"prompt": f"{HEAD}{FILE}filename\n{gap}",
                                        "n_predict": 24, "temperature": 0})
        self.assertEqual(raw["content"], answer["content"])
        self.assertEqual(raw["prompt"], answer["prompt"])

    def test_vocabularies(self):
        """Other names, and an order without a middle."""
        for names, want in ((filling.DEEPSEEK, "{0}Once upon a time\nthere was {1}\nThe end.\n{2}"),
                            (filling.CODESTRAL, "{0}\nThe end.\n{1}Once upon a time\nthere was ")):
            with serving.Server(models=[filling.model(names)]) as server:
                answer = self.post("/infill", dict(GAP, n_predict=4), server=server)
                self.assertEqual(answer["prompt"], BOS + want.format(*names))
                answer = self.post("/infill", dict(GAP, n_predict=4, input_extra=CHUNKS[:1]),
                                   server=server)
                self.assertEqual(answer["prompt"], f"{BOS}\n\n--- snippet ---\n\nA cat.\n" +
                                 want.format(*names))

    def test_long_texts_are_cut(self):
        words = [f"word{i}" for i in range(3000)]
        text, n_predict = " ".join(words), 64
        extra = [{"filename": f"{i}.txt", "text": f"file {i}. " * 60} for i in range(30)]
        answer = self.post("/infill", {"input_prefix": text, "input_suffix": text,
                                       "input_extra": extra, "n_predict": n_predict})
        self.assertLessEqual(answer["tokens_evaluated"], N_CTX - n_predict)
        self.assertGreater(answer["tokens_evaluated"], N_CTX * 3 // 4)
        head, rest = answer["prompt"].split(PREFIX)
        before, after = rest.split(SUFFIX)
        self.assertTrue(before.endswith(words[-1]))
        self.assertTrue(after.startswith(words[0]))
        self.assertGreater(len(before), 2 * len(after))
        self.assertTrue(head.startswith(HEAD))
        self.assertTrue(head.endswith(f"file 29. {FILE}filename\n"))
        long = self.post("/infill", {"input_prefix": "", "prompt": text, "input_suffix": text,
                                     "n_predict": 4})
        self.assertIn(words[-1], long["prompt"])

    # ---- the cache ----

    def test_typing_computes_what_is_new(self):
        text = "The king had three sons. " * 30
        first = self.post("/infill", {"input_prefix": text, "prompt": "He", "input_suffix": "",
                                      "n_predict": 4})
        self.assertGreater(first["timings"]["prompt_n"], 100)
        for typed in ("He s", "He said", "He"):
            answer = self.post("/infill", {"input_prefix": text, "prompt": typed,
                                           "input_suffix": "", "n_predict": 4})
            self.assertLess(answer["timings"]["prompt_n"], 12)
            self.assertGreater(answer["tokens_cached"], 100)

    def test_a_long_text_that_grows_keeps_its_beginning(self):
        text = "The old man went into the wood. " * 150
        n_computed = []
        for i in range(12):
            answer = self.post("/infill", {"input_prefix": text + "Then he saw. " * i,
                                           "input_suffix": "", "n_predict": 0})
            n_computed.append(answer["timings"]["prompt_n"])
        self.assertGreater(n_computed[0], 300)
        self.assertGreaterEqual(sum(n < 20 for n in n_computed[1:]), 10)

    def test_recurrent_layers_keep_the_lines_before_the_gap(self):
        """Their state cannot be cut off anywhere, so it is kept where prompts may diverge."""
        source = command.shared("reference", "hybrids", "models", "tiny-qwen35-ternary")
        tokens = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
        extra = [{"text": "abc def. " * 20}]
        body = {"input_prefix": "def f(x): return x\n" * 15, "input_suffix": "\nend\n",
                "input_extra": extra, "n_predict": 4}
        with serving.Server(models=[filling.model(filling.QWEN[:3], source, tokens)]) as server:
            warm = {"input_prefix": "", "input_suffix": "", "input_extra": extra, "n_predict": 0}
            self.post("/infill", warm, server=server)
            answers = [self.post("/infill", dict(body, prompt=typed), server=server)["timings"]
                       for typed in ("", "a", "ab", "abc")]
            self.assertGreater(answers[0]["cache_n"], 150)
            for timings in answers[1:]:
                self.assertLess(timings["prompt_n"], 16)

    def test_warming_the_cache(self):
        """What editors send before a gap is known."""
        extra = [{"filename": "warm.txt", "text": "Snow fell on the roof. " * 20}]
        empty = {"input_prefix": "", "input_suffix": "", "prompt": "", "input_extra": extra,
                 "n_predict": 0, "samplers": [], "cache_prompt": True, "t_max_prompt_ms": 1,
                 "t_max_predict_ms": 1, "id_slot": 0, "stream": False}
        self.assertEqual(self.post("/infill", dict(empty, response_fields=[""])), {})
        answer = self.fill(input_extra=extra)
        self.assertGreater(answer["timings"]["cache_n"], 100)
        self.assertLess(answer["timings"]["prompt_n"], 40)
        answer = self.post("/infill", empty)
        self.assertEqual((answer["content"], answer["tokens_predicted"]), ("", 0))

    # ---- answers ----

    def test_streams_and_several_answers(self):
        whole = self.fill()
        events = self.server.events("/infill", dict(GAP, n_predict=24, temperature=0))
        self.assertEqual("".join(e["content"] for e in events), whole["content"])
        self.assertTrue(events[-1]["stop"])
        body = dict(GAP, n_predict=24, seed=7, temperature=1)
        alone = [self.post("/infill", dict(body, seed=s))["content"] for s in (7, 8, 9)]
        several = self.post("/infill", dict(body, n_cmpl=3))
        self.assertEqual([a["content"] for a in several], alone)
        self.assertEqual([a["index"] for a in several], [0, 1, 2])

    def test_selected_fields(self):
        fields = ["content", "timings/prompt_n", "timings/nothing", "nothing", "content/x",
                  "generation_settings/stop", "truncated", "timings"]
        whole = self.fill(stop=['"x": {', "]"])
        answer = self.fill(stop=['"x": {', "]"], response_fields=fields)
        self.assertEqual(sorted(answer), sorted(f for f in fields if "nothing" not in f and
                                                f != "content/x"))
        self.assertEqual(answer["content"], whole["content"])
        self.assertEqual(answer["generation_settings/stop"], ['"x": {', "]"])
        self.assertIn("predicted_ms", answer["timings"])
        self.assertEqual(self.fill(response_fields=[]).keys(), whole.keys())
        events = self.server.events("/infill", dict(GAP, n_predict=3, response_fields=["stop"]))
        self.assertEqual(events[-1], {"stop": True})
        self.assertIn("content", events[0])
        twice = json.dumps(dict(GAP, n_predict=3, response_fields=["stop", "stop"]))
        self.assertEqual(self.server.request("POST", "/infill", twice)[2], b'{"stop":true}')
        for bad in ("content", [1], [None], {"content": 1}, ["x"] * 33):
            self.fill(400, response_fields=bad)

    def test_markers_end_an_answer(self):
        for name in filling.QWEN:
            id_ = self.tokens(name)[0]
            answer = self.fill(logit_bias=[[id_, 100]], return_tokens=True)
            self.assertEqual((answer["content"], answer["stop_type"], answer["tokens"]),
                             ("", "eos", []))
            raw = {"prompt": f"{PREFIX}A{SUFFIX}B{MIDDLE}", "max_tokens": 4, "temperature": 0,
                   "logit_bias": {str(id_): 100}}
            choice = self.post("/v1/completions", raw)["choices"][0]
            self.assertEqual((choice["text"], choice["finish_reason"]), ("", "stop"))
            choice = self.post("/v1/completions", dict(raw, prompt="A"))["choices"][0]
            self.assertEqual(choice["finish_reason"], "length")
            self.assertEqual(self.fill(logit_bias=[[id_, 100]], ignore_eos=True)["stop_type"],
                             "limit")

    def test_indentation(self):
        newline = self.tokens("\n")[0]
        bias = {"n_predict": 60, "temperature": 0, "logit_bias": [[newline, 10]]}
        whole = self.post("/infill", dict(GAP, **bias))["content"]
        lines = whole.split("\n")
        self.assertGreater(len(lines), 2)
        for n_indent in (1, 4):
            answer = self.post("/infill", dict(GAP, n_indent=n_indent, **bias))
            self.assertTrue(whole.startswith(answer["content"]))
            text, _, last = answer["content"].rpartition("\n")
            self.assertLess(len(last), n_indent)
            self.assertEqual(last.strip(), "")
            for line in text.split("\n")[1:]:
                self.assertTrue(line.startswith(" " * n_indent))
            self.assertEqual(answer["stop_type"], "limit")
            events = self.server.events("/infill", dict(GAP, n_indent=n_indent, **bias))
            self.assertEqual("".join(e["content"] for e in events), answer["content"])
        self.assertEqual(self.post("/infill", dict(GAP, n_indent=0, **bias))["content"], whole)

    def test_the_time_limit_waits_for_a_line(self):
        newline = self.tokens("\n")[0]
        bias = {"n_predict": 700, "temperature": 1, "seed": 3, "ignore_eos": True,
                "logit_bias": [[newline, 3]]}
        whole = self.post("/infill", dict(GAP, **bias))["content"]
        answer = self.post("/infill", dict(GAP, t_max_predict_ms=1, **bias))
        self.assertEqual(answer["stop_type"], "limit")
        self.assertTrue(whole.startswith(answer["content"]))
        self.assertIn("\n", answer["content"])
        self.assertLess(len(answer["content"]), len(whole))
        for ms in (0, -1, 1e300):
            self.assertEqual(self.post("/infill", dict(GAP, t_max_predict_ms=ms, **bias))
                             ["content"], whole)

    def test_omitted_steps_of_sampling_are_off(self):
        plain = self.fill(top_k=1, samplers=["top_k"])["content"]
        self.assertEqual(self.fill()["content"], plain)
        settings = self.fill(samplers=["top_k", "top_p", "infill"], top_k=40, top_p=0.9,
                             min_p=0.5, repeat_penalty=2)["generation_settings"]
        self.assertEqual([settings[k] for k in ("top_k", "top_p", "min_p", "temperature",
                                                "repeat_penalty", "presence_penalty")],
                         [40, 0.9, 0, 1, 1, 0])
        letters = self.fill(samplers="ket", min_p=0.5, top_k=5)["generation_settings"]
        self.assertEqual((letters["min_p"], letters["top_k"], letters["temperature"]), (0, 5, 0))

    # ---- refusals ----

    def test_refusals(self):
        for name in GAP:
            for value in (5, [], {}, True):
                body = dict(GAP, **{name: value})
                self.assertIn(name, self.post("/infill", body, 400)["error"]["message"])
        for name in ("input_prefix", "input_suffix"):
            body = {k: v for k, v in GAP.items() if k != name}
            self.assertIn(name, self.post("/infill", body, 400)["error"]["message"])
        for extra in ("a", {}, 5, [5], [None], [[]], [{}], [{"text": 5}], [{"text": None}],
                      [{"text": "a", "filename": 5}], [{"filename": "a"}]):
            error = self.fill(400, input_extra=extra)["error"]
            self.assertEqual(error["type"], "invalid_request_error")
        for more in ({"n_indent": -1}, {"n_indent": "a"}, {"t_max_predict_ms": "1"},
                     {"t_max_prompt_ms": []}, {"n_cmpl": 0}, {"n_cmpl": 9}, {"samplers": 5},
                     {"mirostat": 1}):
            self.fill(400, **more)
        self.post("/completion", {"prompt": "a", "suffix": "b"}, 400)
        chat = {"messages": [{"role": "user", "content": "Hi"}], "suffix": "b"}
        self.post("/v1/chat/completions", chat, 400)
        self.post("/api/chat", chat, 400)
        self.assertEqual(self.server.get("/infill")[0], 405)

    def test_a_model_without_the_tokens(self):
        with serving.Server() as server:
            error = self.post("/infill", GAP, 501, server)["error"]
            self.assertIn("cannot fill in", error["message"])
            for path, prompt in (("/v1/completions", "a"), ("/api/generate", "a")):
                answer = self.post(path, {"prompt": prompt, "suffix": "b", "stream": False}, 400,
                                   server)
                self.assertIn("cannot fill in", json.dumps(answer))
            show = self.post("/api/show", {"model": server.model_ids()[0]}, server=server)
            self.assertNotIn("insert", show["capabilities"])

    # ---- other APIs ----

    def test_suffix(self):
        want = self.post("/infill", {"input_prefix": "Once upon ", "input_suffix": " time.",
                                     "n_predict": 24, "temperature": 0})
        body = {"prompt": "Once upon ", "suffix": " time.", "temperature": 0, "max_tokens": 24}
        answer = self.post("/v1/completions", body)
        self.assertEqual(answer["choices"][0]["text"], want["content"])
        self.assertEqual(answer["usage"]["prompt_tokens"], want["tokens_evaluated"])
        events = self.server.events("/v1/completions", body)[:-1]
        self.assertEqual("".join(e["choices"][0]["text"] for e in events), want["content"])
        plain = self.post("/v1/completions", {"prompt": "Once upon ", "temperature": 0,
                                              "max_tokens": 24})
        for none in ("", None):
            self.assertEqual(self.post("/v1/completions", dict(body, suffix=none))["choices"],
                             plain["choices"])
        ollama = {"prompt": "Once upon ", "suffix": " time.", "stream": False,
                  "options": {"temperature": 0, "num_predict": 24}}
        answer = self.post("/api/generate", ollama)
        self.assertEqual(answer["response"], want["content"])
        self.assertEqual(answer["prompt_eval_count"], want["tokens_evaluated"])
        model = self.server.model_ids()[0]
        self.assertIn("insert", self.post("/api/show", {"model": model})["capabilities"])
        for more in ({"suffix": 5}, {"suffix": ["a"]}, {"prompt": ["a"]}, {"prompt": [5]},
                     {"prompt": None}, {"echo": True}):
            self.post("/v1/completions", dict(body, **more), 400)
        self.post("/api/generate", dict(ollama, suffix=5), 400)

    # ---- tern info ----

    def test_info(self):
        path = filling.model(filling.QWEN)
        ids = json.loads(self.ok("info", path, "--json").text)["fim_ids"]
        self.assertEqual(list(ids.values()), [self.tokens(name)[0] for name in filling.QWEN])
        self.assertIn(f"fills in      {ids['prefix']} {PREFIX}\n", self.ok("info", path).text)
        self.assertIsNone(json.loads(self.ok("info", command.model(), "--json").text)["fim_ids"])
        self.assertIn("fills in      no", self.ok("info", command.model()).text)


if __name__ == "__main__":
    command.main()
