#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""OpenAI's routes: formats, streams, parameters, errors; and the same bytes as `tern run`."""
import math
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import gguf
import serving

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"


def user(text):
    return [{"role": "user", "content": text}]


class OpenAI(serving.TestCase):
    def chat(self, text, **more):
        return self.post(CHAT, dict({"messages": user(text), "max_tokens": 24}, **more))

    def refusal(self, path, status=400, **body):
        answer = self.post(path, body, status)
        self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
        return answer["error"]

    # ---- complete answers ----

    def test_shape(self):
        a = self.chat("Tell me a story.", model="model0", user="x", unknown=[1, {"a": None}])
        self.assertTrue(a["id"].startswith("chatcmpl-"))
        self.assertEqual((a["object"], a["model"]), ("chat.completion", "model0"))
        choice = a["choices"][0]
        self.assertEqual(choice["index"], 0)
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertIsNone(choice["message"]["refusal"])
        self.assertIn(choice["finish_reason"], ("stop", "length"))
        usage = a["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        timings = a["timings"]
        self.assertEqual((timings["predicted_n"], timings["cache_n"] + timings["prompt_n"]),
                         (usage["completion_tokens"], usage["prompt_tokens"]))
        self.assertEqual(self.chat("Hi", max_tokens=3)["usage"]["completion_tokens"], 3)

    def test_the_same_text_as_run(self):
        for flags, body in ((("--greedy",), {"temperature": 0}), (("--seed", "7"), {"seed": 7}),
                            (("--seed", str(2 ** 64 - 1)), {"seed": 2 ** 64 - 1}),
                            (("--seed", "9", "--temp", "1.5", "--top-k", "0", "--top-p", "1",
                              "--repeat-penalty", "1", "--presence-penalty", "0"),
                             {"seed": 9, "temperature": 1.5, "top_k": 0, "top_p": 1,
                              "repeat_penalty": 1, "presence_penalty": 0})):
            run = self.ok("run", command.model(), "-p", "Tell me a story.", "-n", "40", *flags)
            text = self.chat("Tell me a story.", max_tokens=40, **body)
            text = text["choices"][0]["message"]["content"]
            self.assertEqual(text.rstrip("\n"), run.text.rstrip("\n"))
            raw = self.ok("run", command.model(), "--raw", "-p", "Once upon a", "-n", "40", *flags)
            text = self.post(TEXT, dict(body, prompt="Once upon a", max_tokens=40))
            self.assertEqual(text["choices"][0]["text"].rstrip("\n"), raw.text.rstrip("\n"))

    def test_neighbours_change_nothing(self):
        asks = [dict(messages=user(f"A story about {i} foxes."), seed=i, max_tokens=30 + i)
                for i in range(16)]
        def answer(ask):
            return self.post(CHAT, ask)["choices"][0]["message"]["content"]
        alone = [answer(ask) for ask in asks]
        self.assertEqual(serving.together(answer, asks), alone)

    def test_messages_count(self):
        one = self.chat("And then?", temperature=0)
        two = self.post(CHAT, {"messages": user("A story.") + [
            {"role": "assistant", "content": "Once."}] + user("And then?"),
            "max_tokens": 24, "temperature": 0})
        self.assertGreater(two["usage"]["prompt_tokens"], one["usage"]["prompt_tokens"])

    def test_forms_of_content(self):
        plain = self.chat("a\nb", temperature=0)
        parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
        answer = self.post(CHAT, {"messages": [{"role": "user", "content": parts}],
                                  "max_tokens": 24, "temperature": 0})
        self.assertEqual(answer["choices"], plain["choices"])
        system = [{"role": "system", "content": "Be brief."}] + user("Hi")
        developer = [{"role": "developer", "content": "Be brief."}] + user("Hi")
        counts = [self.post(CHAT, {"messages": m, "max_tokens": 2})["usage"]["prompt_tokens"]
                  for m in (system, developer)]
        self.assertEqual(counts[0], counts[1])

    def test_text_in_the_prompt_is_text(self):
        a = self.chat('{"stream":true} "quoted\\" \x00\x1f \u2028 <|eot_id|>')
        self.assertEqual(a["object"], "chat.completion")

    def test_null_is_absent(self):
        names = ("model", "max_completion_tokens", "temperature", "top_p", "n", "stop", "seed",
                 "stream", "stream_options", "logprobs", "top_logprobs", "logit_bias",
                 "frequency_penalty", "presence_penalty", "response_format", "tools",
                 "tool_choice", "user", "top_k", "min_p", "repeat_penalty")
        self.chat("Hi", **{name: None for name in names})
        self.chat("Hi", tools=[], logit_bias={}, stop=[])

    def test_several_choices(self):
        a = self.chat("Hi", n=3, seed=5)
        self.assertEqual([c["index"] for c in a["choices"]], [0, 1, 2])
        b = self.chat("Hi", seed=6)
        self.assertEqual(a["choices"][1]["message"], b["choices"][0]["message"])

    def test_lengths(self):
        self.assertEqual(self.chat("Hi", max_tokens=None, n_predict=3)["usage"]
                         ["completion_tokens"], 3)
        self.assertEqual(self.chat("Hi", n_predict=9, max_tokens=2)["usage"]["completion_tokens"],
                         2)
        self.assertEqual(self.chat("Hi", max_tokens=9, max_completion_tokens=2)["usage"]
                         ["completion_tokens"], 2)
        for huge in (-1, 2 ** 31, 2 ** 63, 1e308):
            a = self.chat("Hi", max_tokens=huge, temperature=0)
            self.assertIn(a["choices"][0]["finish_reason"], ("stop", "length"))

    def test_stop(self):
        whole = self.chat("A story.", temperature=0)["choices"][0]["message"]["content"]
        word = whole.split()[4]
        for never in (["never"], [f"<|{i}|>" for i in range(15)]):  # editors send many
            a = self.chat("A story.", temperature=0, stop=never + [word])["choices"][0]
            self.assertEqual(a["message"]["content"], whole[:whole.index(word)])
            self.assertEqual(a["finish_reason"], "stop")

    def test_logit_bias(self):
        ids = self.post(TEXT, {"prompt": "Once", "max_tokens": 1, "temperature": 0, "logprobs": 1})
        first = ids["choices"][0]["text"]
        token = self.ok("tokenize", command.model(), "--no-bos", stdin=first.encode()).text.strip()
        banned = self.post(TEXT, {"prompt": "Once", "max_tokens": 1, "temperature": 0,
                                  "logit_bias": {token: -100}})
        self.assertNotEqual(banned["choices"][0]["text"], first)
        forced = self.post(TEXT, {"prompt": "Once", "max_tokens": 5, "temperature": 0,
                                  "logit_bias": {token: 100}})
        self.assertEqual(forced["choices"][0]["text"], first * 5)

    def test_logprobs(self):
        a = self.chat("Hi", logprobs=True, top_logprobs=3, temperature=0)["choices"][0]
        content = a["logprobs"]["content"]
        self.assertEqual("".join(t["token"] for t in content), a["message"]["content"])
        for t in content:
            self.assertEqual(len(t["top_logprobs"]), 3)
            tops = [x["logprob"] for x in t["top_logprobs"]]
            self.assertEqual(tops, sorted(tops, reverse=True))
            self.assertEqual(t["logprob"], tops[0])  # greedy
            self.assertLessEqual(sum(math.exp(x) for x in tops), 1.0001)
            self.assertEqual(bytes(t["bytes"]).decode(), t["token"])

    def test_cached_tokens(self):
        prompt = "The long beginning of a conversation that is said twice. " * 4
        self.chat(prompt)
        usage = self.chat(prompt + "More.")["usage"]
        self.assertGreater(usage["prompt_tokens_details"]["cached_tokens"], 20)

    # ---- completions ----

    def test_prompts(self):
        ids = [int(i) for i in
               self.ok("tokenize", command.model(), stdin=b"Once upon").text.split()]
        ask = {"max_tokens": 6, "temperature": 0}
        texts = [self.post(TEXT, dict(ask, prompt=p))["choices"] for p in
                 ("Once upon", ids, ["Once upon", "The fox"], [ids, ids])]
        self.assertEqual(texts[0][0]["text"], texts[1][0]["text"])
        self.assertEqual(texts[2][0]["text"], texts[0][0]["text"])
        self.assertEqual([c["index"] for c in texts[3]], [0, 1])
        self.assertNotEqual(texts[2][1]["text"], texts[0][0]["text"])

    def test_echo(self):
        a = self.post(TEXT, {"prompt": "Once upon a", "max_tokens": 4, "temperature": 0,
                             "echo": True, "logprobs": 2})["choices"][0]
        lists = a["logprobs"]
        self.assertTrue(a["text"].startswith("Once upon a"))
        self.assertEqual(len({len(lists[name]) for name in
                              ("tokens", "token_logprobs", "top_logprobs", "text_offset")}), 1)
        self.assertEqual("".join(lists["tokens"]), a["text"])
        for offset, token in zip(lists["text_offset"], lists["tokens"]):
            self.assertTrue(a["text"][offset:].startswith(token))
        self.assertNotIn(None, lists["token_logprobs"])  # the first token follows a BOS
        only = self.post(TEXT, {"prompt": "Once upon a", "max_tokens": 0, "echo": True})
        self.assertEqual(only["choices"][0]["text"], "Once upon a")

    def test_tokens_of_a_text_without_its_first_space(self):
        """After a control token that of the first token of SentencePiece is not shown."""
        keys, tensors = gguf.read(os.path.join(command.ROOT, "tests", "data", "models",
                                               "tiny-phi3-ternary", "q2_0.gguf"))
        words = ["<unk>", "<s>", "</s>", "\u2581", "t", "\u2581t"]
        words += [f"x{i}" for i in range(len(words), 64)]
        keys += [("tokenizer.ggml." + name, kind, value) for name, kind, value in (
            ("model", gguf.STRING, "llama"), ("tokens", (gguf.ARRAY, gguf.STRING), words),
            ("scores", (gguf.ARRAY, gguf.F32), [-float(i) for i in range(64)]),
            ("token_type", (gguf.ARRAY, gguf.I32), [2, 3, 3] + [1] * 61),
            ("bos_token_id", gguf.U32, 1), ("eos_token_id", gguf.U32, 2))]
        path = command.scratch("pieces.gguf")
        gguf.write(path, keys, tensors)
        ask = {"prompt": [1], "max_tokens": 3, "temperature": 0, "logprobs": 0,
               "repeat_penalty": 1, "logit_bias": {"5": 100}}
        with serving.Server(models=[command.model(path)]) as server:
            whole = self.post(TEXT, ask, server=server)["choices"][0]
            events = [e["choices"][0] for e in server.events(TEXT, ask)[:-1]]
        self.assertEqual(whole["text"], "t t t")
        self.assertEqual(whole["logprobs"]["tokens"], [" t"] * 3)
        self.assertEqual(whole["logprobs"]["text_offset"], [0, 1, 3])
        shown = [(e["text"], e["logprobs"]["text_offset"]) for e in events if e["logprobs"]]
        self.assertEqual(shown, [("t", [0]), (" t", [1]), (" t", [3])])

    def test_special_tokens_of_raw_prompts(self):
        """Control tokens in a text equal their ids, with a single BOS."""
        text = "Once<|eot_id|>User: Tell me<|eot_id|>"
        [with_bos, without] = [
            [int(i) for i in self.ok("tokenize", command.model(), "--special", *flags,
                                     stdin=text.encode()).text.split()]
            for flags in ((), ("--no-bos",))]
        self.assertEqual(with_bos[1:], without)
        bos = self.server.get("/props")[1]["bos_token"]
        ask = {"max_tokens": 8, "temperature": 0}
        ids = self.post(TEXT, dict(ask, prompt=with_bos))
        self.assertEqual(ids["usage"]["prompt_tokens"], len(with_bos))
        for prompt in (text, bos + text, [bos + text], [text[:4], *without[1:]],
                       [with_bos[0], text]):
            answer = self.post(TEXT, dict(ask, prompt=prompt))
            self.assertEqual(answer["choices"], ids["choices"], prompt)
            self.assertEqual(answer["usage"]["prompt_tokens"], len(with_bos))
        ask = {"n_predict": 8, "temperature": 0}
        self.assertEqual(self.post("/completion", dict(ask, prompt=bos + text))["tokens_evaluated"],
                         len(with_bos))
        raw = {"prompt": text, "raw": True, "stream": False, "options": {"num_predict": 1}}
        self.assertEqual(self.post("/api/generate", raw)["prompt_eval_count"], len(with_bos))
        chat = [self.chat(said, max_tokens=1)["usage"]["prompt_tokens"]
                for said in ("a", "a<|eot_id|>")]
        self.assertGreater(chat[1], chat[0] + 2)  # in a message they stay text

    def test_echo_of_special_tokens(self):
        """Text, tokens and log-probabilities are those that the client sent."""
        bos = self.server.get("/props")[1]["bos_token"]
        ask = {"max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        plain, written = [self.post(TEXT, dict(ask, prompt=p))["choices"][0]
                          for p in ("Once<|eot_id|>upon", bos + "Once<|eot_id|>upon")]
        self.assertTrue(plain["text"].startswith("Once<|eot_id|>upon"))
        self.assertEqual(written["text"], bos + plain["text"])
        for name, first in (("tokens", bos), ("token_logprobs", None), ("top_logprobs", None)):
            self.assertEqual(written["logprobs"][name], [first] + plain["logprobs"][name], name)
        for choice in (plain, written):
            lists = choice["logprobs"]
            for offset, token in zip(lists["text_offset"], lists["tokens"]):
                self.assertEqual(choice["text"][offset:offset + len(token)], token)

    def test_echo_has_a_token_of_the_answer(self):
        """Also if that token ends the answer: programs that score prompts cut it off."""
        eot = int(self.ok("tokenize", command.model(), "--special", "--no-bos",
                          stdin=b"<|eot_id|>").text)
        ask = {"prompt": "Once", "max_tokens": 1, "echo": True, "logprobs": 1,
               "logit_bias": {str(eot): 100}}
        answer = self.post(TEXT, ask)["choices"][0]
        self.assertEqual((answer["text"], answer["finish_reason"]), ("Once", "stop"))
        self.assertEqual(answer["logprobs"]["tokens"][-1], "<|eot_id|>")
        self.assertEqual(len(answer["logprobs"]["tokens"]),
                         1 + len(self.ok("tokenize", command.model(), "--no-bos",
                                         stdin=b"Once").text.split()))

    def score(self, prompt, n_context):
        """Sums log-probabilities as lm-eval's local-completions does."""
        lists = self.post(TEXT, {"model": "model0", "prompt": prompt, "temperature": 0,
                                 "max_tokens": 1, "logprobs": 1, "seed": 1234, "echo": True})[
                                     "choices"][0]["logprobs"]
        logprobs = lists["token_logprobs"][n_context:-1]
        tops = lists["top_logprobs"][n_context:-1]
        return sum(logprobs), all(l == max(t.values()) for l, t in zip(logprobs, tops))

    def test_scores_of_texts_and_of_ids(self):
        """lm-eval's text mode, which sends decoded ids, gives the same result."""
        bos = self.server.get("/props")[1]["bos_token"]
        for context, rest in (("Once upon a", " time"), ("User: Hi<|eot_id|>Assistant:", " Hello"),
                              ("", "The king had"), ("Once", "<|eot_id|>")):
            ids, context_ids = [
                [int(i) for i in self.ok("tokenize", command.model(), "--special",
                                         stdin=text.encode()).text.split()]
                for text in (context + rest, context)]
            expected = self.score(ids, len(context_ids))
            self.assertEqual(self.score(bos + context + rest, len(context_ids)), expected)
            # With a tokenizer that adds no BOS, the server's own BOS must not shift offsets.
            self.assertEqual(self.score(context + rest, len(context_ids) - 1), expected)

    # ---- streams ----

    def test_stream(self):
        ask = {"messages": user("Tell me a story."), "max_tokens": 30, "seed": 3}
        whole = self.post(CHAT, ask)
        events = self.server.events(CHAT, ask)
        self.assertEqual(events[-1], "[DONE]")
        events = events[:-1]
        self.assertEqual({e["object"] for e in events}, {"chat.completion.chunk"})
        self.assertEqual(len({(e["id"], e["created"]) for e in events}), 1)
        first = events[0]["choices"][0]
        self.assertEqual(first["delta"], {"role": "assistant", "content": ""})
        self.assertIsNone(first["finish_reason"])
        self.assertEqual(events[-1]["choices"][0]["delta"], {})
        self.assertEqual(serving.choice_text(events), whole["choices"][0]["message"]["content"])
        self.assertEqual(events[-1]["choices"][0]["finish_reason"],
                         whole["choices"][0]["finish_reason"])
        self.assertNotIn("usage", events[0])
        self.assertEqual([i for i, e in enumerate(events) if "timings" in e], [len(events) - 1])
        self.assertEqual(events[-1]["timings"]["predicted_n"], whole["usage"]["completion_tokens"])

    def test_stream_with_usage_logprobs_and_choices(self):
        events = self.server.events(CHAT, {
            "messages": user("Hi"), "max_tokens": 10, "n": 2, "seed": 4, "logprobs": True,
            "stream_options": {"include_usage": True}})[:-1]
        self.assertEqual(events[-1]["choices"], [])
        self.assertEqual(events[-1]["usage"]["completion_tokens"] > 0, True)
        self.assertFalse([e for e in events[:-1] if "usage" in e or "timings" in e])
        for i in range(2):
            parts = serving.choice_parts(events, i)
            tokens = "".join(t["token"] for c in parts if c["logprobs"]
                             for t in c["logprobs"]["content"])
            self.assertEqual(tokens, serving.choice_text(events, i))
            self.assertEqual(len([c for c in parts if c["finish_reason"]]), 1)

    def test_stream_of_completions(self):
        ask = {"prompt": "Once upon a", "max_tokens": 12, "seed": 3, "echo": True}
        whole = self.post(TEXT, ask)["choices"][0]["text"]
        events = self.server.events(TEXT, ask)
        self.assertEqual("".join(e["choices"][0]["text"] for e in events[:-1]), whole)
        self.assertEqual(events[0]["object"], "text_completion")
        self.assertEqual(events[-2]["timings"]["predicted_n"], 12)

    def test_stream_of_echoed_logprobs(self):
        for n in (0, 6):
            ask = {"prompt": ["Once upon a", "A fox"], "max_tokens": n, "temperature": 0,
                   "echo": True, "logprobs": 2}
            events = self.server.events(TEXT, ask)
            for choice in self.post(TEXT, ask)["choices"]:
                parts = serving.choice_parts(events, choice["index"])
                self.assertEqual("".join(p["text"] for p in parts), choice["text"])
                self.assertGreater(len(choice["logprobs"]["tokens"]), n)
                for name, values in choice["logprobs"].items():
                    self.assertEqual([v for p in parts if p["logprobs"]
                                      for v in p["logprobs"][name]], values, name)

    # ---- refusals ----

    def check_translated(self, name, value):
        """APIs that are translated to chat requests refuse the field too."""
        error = self.post("/v1/responses", {"input": "Hi", name: value}, 400)["error"]
        self.assertEqual(error["param"], name)
        error = self.post("/v1/messages", {"messages": user("Hi"), "max_tokens": 1, name: value},
                          400)["error"]
        self.assertIn(f'"{name}"', error["message"])

    def test_fields_of_other_servers(self):
        """Fields that would change the answer are refused by name and accepted with neutral values;
        unknown fields are ignored."""
        chat = {"messages": user("Hi"), "max_tokens": 1}
        neutral = {"mirostat": 0, "dry_multiplier": 0.0, "typical_p": 1.0, "tfs_z": 1,
                   "top_n_sigma": -1, "grammar": "", "json_schema": None, "cache_prompt": True}
        self.post(CHAT, dict(chat, **neutral))
        self.post("/v1/messages", dict(chat, **neutral))
        self.post("/v1/responses", dict(neutral, input="Hi", max_output_tokens=1))
        options = {k: v for k, v in neutral.items() if isinstance(v, (int, float))}
        self.post("/api/chat", {"messages": user("Hi"), "stream": False,
                                "options": dict(options, num_predict=1)})
        for name, value in (("mirostat", 2), ("dry_multiplier", 0.8), ("typical_p", 0.5),
                            ("xtc_probability", "0.5"), ("tfs_z", 0.5)):
            error = self.post(CHAT, dict(chat, **{name: value}), 400)["error"]
            self.assertEqual(error["param"], name)
            self.post(TEXT, {"prompt": "a", name: value}, 400)
            self.post("/completion", {"prompt": "a", name: value}, 400)
            self.check_translated(name, value)
            error = self.post("/api/chat", {"messages": user("Hi"), "options": {name: value}}, 400)
            self.assertIn(f'"{name}"', error["error"])
        for name, value in (("grammar", "root ::= x"), ("guided_choice", ["a"]),
                            ("guided_regex", "a*"), ("guided_json", {}),
                            ("structured_outputs", {"json": {}})):
            self.check_translated(name, value)
        for name, value in (("functions", [{"name": "f"}]), ("stop_token_ids", [5]),
                            ("bad_words", ["a"]), ("min_tokens", 5), ("use_beam_search", True),
                            ("allowed_token_ids", [5]), ("modalities", ["text", "audio"]),
                            ("chat_template", "{{ messages }}"), ("documents", [{"text": "a"}]),
                            ("include_stop_str_in_output", True), ("skip_special_tokens", False)):
            error = self.post(CHAT, dict(chat, **{name: value}), 400)["error"]
            self.assertEqual(error["param"], name)
            self.post(TEXT, {"prompt": "a", name: value}, 400)
            self.check_translated(name, value)
        self.post(CHAT, dict(chat, functions=[], bad_words=None, min_tokens=0, lora=[],
                             use_beam_search=False, skip_special_tokens=True, modalities=["text"]))

    def test_output_formats_of_other_apis(self):
        """A schema under the name that another API has for it would be ignored without a word."""
        form = {"type": "json_schema", "json_schema": {"schema": {}}}
        forms = {"response_format": form, "text": {"format": form}, "format": "json",
                 "output_config": {"format": form}, "output_format": form, "json_schema": {}}
        chat = {"messages": user("Hi"), "max_tokens": 1}
        for path, body, *own in ((CHAT, chat, "response_format", "json_schema"),
                                 (TEXT, {"prompt": "a"}, "response_format", "json_schema"),
                                 ("/v1/responses", {"input": "a"}, "text"),
                                 ("/v1/messages", chat, "output_config"),
                                 ("/api/chat", {"messages": user("Hi")}, "format"),
                                 ("/api/generate", {"prompt": "a"}, "format"),
                                 ("/completion", {"prompt": "a"}, "json_schema")):
            for name, value in forms.items():
                if name not in own:
                    error = self.post(path, {**body, name: value}, 400)["error"]
                    error = error if isinstance(error, str) else error["message"]
                    self.assertIn(f'"{name}" is not supported here', error, path)
        self.post(TEXT, {"prompt": "a", "max_tokens": 1, "response_format": {"type": "text"},
                         "text": {"verbosity": "low"}, "format": ""})

    def test_roles(self):
        for role in ("robot", "User", "ipython", "", 5):
            for path in (CHAT, "/api/chat", "/v1/responses"):
                talk = user("Hi") + [{"role": role, "content": "I am new."}]
                error = self.post(path, {"model": "model0", "messages": talk, "input": talk},
                                  400)["error"]
                message = error if path == "/api/chat" else error["message"]
                self.assertIn("message 1: \"role\"", message)
        asks = [user("Hi") + [{"role": role, "name": "f", "content": "5"}]
                for role in ("function", "tool")]
        old, new = [self.post(CHAT, {"messages": ask, "max_tokens": 8, "temperature": 0})["choices"]
                    for ask in asks]
        self.assertEqual(old, new)

    def test_seeds_of_64_bits(self):
        """Every API distinguishes adjacent large seeds."""
        ask = {"messages": user("Tell me a story."), "max_tokens": 16, "temperature": 1}
        texts = {}
        for seed in (2 ** 63, 2 ** 63 + 1, 2 ** 64 - 1):
            text = self.post(CHAT, dict(ask, seed=seed))["choices"][0]["message"]["content"]
            texts[text] = seed
            self.assertEqual(self.post("/v1/messages", dict(ask, seed=seed))["content"][0]["text"],
                             text)
            responses = self.post("/v1/responses", {"input": ask["messages"], "seed": seed,
                                                    "max_output_tokens": 16, "temperature": 1})
            self.assertEqual(responses["output"][0]["content"][0]["text"], text)
            ollama = {"messages": ask["messages"], "stream": False,
                      "options": {"num_predict": 16, "temperature": 1, "seed": seed}}
            self.assertEqual(self.post("/api/chat", ollama)["message"]["content"], text)
            settings = self.post("/completion", {"prompt": "Once", "n_predict": 1, "seed": seed})[
                "generation_settings"]
            self.assertEqual(settings["seed"], seed)
        self.assertEqual(len(texts), 3)
        error = self.post(CHAT, dict(ask, seed=2 ** 64), 400)["error"]
        self.assertIn("from -9223372036854775808 to 18446744073709551615", error["message"])

    def test_wrong_numbers(self):
        fields = {"temperature": (-1, 3, 1e308, 2 ** 31, 2 ** 63, "5", []),
                  "top_p": (-1, 1e308, 2 ** 63, "5", []), "n": (-1, 0, 9, 1e308, 2 ** 63, "5", []),
                  "max_tokens": (-2, "5", [], 1.5), "max_completion_tokens": (-2, "5", []),
                  "n_predict": (-2, "5"), "samplers": (5, {}, True),
                  "seed": (1.5, 1e308, "5", []), "top_logprobs": (-1, 21, 2 ** 63, "5", []),
                  "presence_penalty": (-3, 3, 1e308, 2 ** 63, "5", []),
                  "frequency_penalty": (-3, 3, 1e308, "5", []), "top_k": (-2, 1e308, "5", []),
                  "min_p": (-1, 2, "5", []), "repeat_penalty": (-1, 0, 1e308, "5", []),
                  "stop": (5, [5], ["a"] * 17, {}), "stream": ("true", 1),
                  "logit_bias": ({"x": "a"}, {"99999999": 1}, {"1": 101}, {"1": "5"}, {"-1": 1}, 5),
                  "stream_options": (5,), "response_format": ({"type": "x"}, 5)}
        for name, values in fields.items():
            for value in values:
                with self.subTest(name, value=value):
                    error = self.refusal(CHAT, messages=user("Hi"), logprobs=True, **{name: value})
                    self.assertIn(name, error["param"] or "")
                    self.assertIn(name, error["message"])

    def test_wrong_messages(self):
        for messages in (None, [], "Hi", [5], [{"role": "user"}], [{"content": "Hi"}],
                         [{"role": 5, "content": "Hi"}], [{"role": "user", "content": 5}],
                         [{"role": "user", "content": None}],
                         [{"role": "user", "content": [{"type": "image_url"}]}]):
            error = self.refusal(CHAT, messages=messages)
            self.assertEqual(error["param"], "messages", messages)

    def test_answers_without_content(self):
        def tokens(*said):
            return self.post(CHAT, {"messages": [*user("Hi"), *said, *user("More.")],
                                    "max_tokens": 1})["usage"]["prompt_tokens"]
        empty = {"role": "assistant", "content": ""}
        for said in ({"role": "assistant"}, dict(empty, content=None), dict(empty, content=[]),
                     dict(empty, content=None, refusal=None, tool_calls=[])):
            self.assertEqual(tokens(said), tokens(empty), said)
        plain = tokens(dict(empty, content="I will not."))
        part = {"type": "refusal", "refusal": "I will not."}
        self.assertEqual(tokens(dict(empty, content=None, refusal="I will not.")), plain)
        self.assertEqual(tokens(dict(empty, content=[part])), plain)
        call = {"name": "f", "arguments": "{}"}
        self.refusal(CHAT, messages=[*user("Hi"), dict(empty, content=None, function_call=call)])

    def test_wrong_prompts(self):
        for prompt in (None, [], [[]], 5, {}, [-1], [1.5], [4096], [1, None], ["a", -1], [[1], 5],
                       [10 ** 12], ["a"] * 9):
            error = self.refusal(TEXT, prompt=prompt, max_tokens=1)
            self.assertEqual(error["param"], "prompt", prompt)
        self.refusal(TEXT, prompt="a", suffix="b")
        self.assertEqual(self.refusal(TEXT, prompt="a", best_of=2)["message"], '"best_of" must be 1')
        choices = self.post(TEXT, {"prompt": "a", "n": 2, "best_of": 2, "max_tokens": 1})["choices"]
        self.assertEqual(len(choices), 2)
        self.refusal(TEXT, prompt="a", logprobs=6)

    def test_other_refusals(self):
        self.assertEqual(self.refusal(CHAT, 404, messages=user("Hi"), model="gpt")["code"],
                         "model_not_found")
        for name in ("\0", "model0\0", "model0:latest\0x"):
            self.assertEqual(self.refusal(CHAT, messages=user("Hi"), model=name)["param"], "model")
        for body in (b"", b"[]", b"{", b"\xff", b"[" * 100000):
            self.assertEqual(self.server.request("POST", CHAT, body)[0], 400)
        for stream in (False, True):
            error = self.refusal(CHAT, messages=user("word " * 3000), stream=stream)
            self.assertEqual(error["code"], "context_length_exceeded")
            self.assertTrue(error["message"].startswith(
                "This model's maximum context length is 1024 tokens"))

    def test_queue_is_bounded(self):
        ask = {"prompt": "Once", "n": 8, "max_tokens": 60, "ignore_eos": True}
        statuses = serving.together(lambda ask: self.server.post(TEXT, ask)[0], [ask] * 24)
        self.assertLessEqual(set(statuses), {200, 503})
        self.assertIn(503, statuses)
        self.server.wait_for_rest()
        self.chat("Hi")

    # ---- models ----

    def test_models(self):
        status, answer = self.server.get("/v1/models")
        self.assertEqual((status, answer["object"]), (200, "list"))
        model = answer["data"][0]
        self.assertEqual((model["id"], model["object"]), ("model0", "model"))
        self.assertEqual(self.server.get("/v1/models/model0")[1], model)
        self.assertEqual(self.server.get("/v1/models/model0:latest")[0], 200)
        self.assertEqual(self.server.get("/v1/models/none")[1]["error"]["code"], "model_not_found")
        self.assertEqual(self.server.get("/models")[1], answer)


if __name__ == "__main__":
    command.main()
