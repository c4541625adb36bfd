#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Routes of llama.cpp's server: ids of texts and back, completions, properties, slots."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from tools import CALLS, DEAF

TEXTS = ["Once upon a time", "", " leading and  double", "Ünïcödé 🙂\n\ttabs", "a\x00b"]


class Llama(serving.TestCase):
    FLAGS = ("--parallel", "2")

    def tokens(self, text, **more):
        return self.post("/tokenize", dict(more, content=text))["tokens"]

    # ---- texts and ids ----

    def test_round_trip(self):
        for text in TEXTS:
            ids = self.tokens(text)
            self.assertEqual(self.post("/detokenize", {"tokens": ids}), {"content": text})
        command_line = self.ok("tokenize", command.model(), "--no-bos", stdin=TEXTS[0].encode())
        self.assertEqual(self.tokens(TEXTS[0]), [int(i) for i in command_line.text.split()])

    def test_special_tokens(self):
        plain = self.tokens("hello")
        with_bos = self.tokens("hello", add_special=True)
        self.assertEqual(with_bos[1:], plain)
        bos = self.server.get("/props")[1]["bos_token"]
        self.assertEqual(self.tokens(bos), with_bos[:1])
        self.assertGreater(len(self.tokens(bos, parse_special=False)), 1)
        self.assertEqual(self.post("/detokenize", {"tokens": with_bos})["content"], bos + "hello")

    def test_pieces(self):
        text = "This is a test string with unicode 媽 and emoji 🤗"
        pieces = self.tokens(text, with_pieces=True)
        self.assertEqual([p["id"] for p in pieces], self.tokens(text))
        data = b"".join(p["piece"].encode() if isinstance(p["piece"], str) else bytes(p["piece"])
                        for p in pieces)
        self.assertEqual(data, text.encode())

    def test_odd_requests(self):
        self.assertEqual(self.post("/tokenize", {})["tokens"], [])
        self.assertEqual(self.post("/detokenize", {}), {"content": ""})
        for body in ({"content": 5}, {"content": "a", "add_special": 1}, {"prompt": ["a"]},
                     {"content": "a", "with_pieces": "yes"}, {"messages": [{"role": "user"}]}):
            self.post("/tokenize", body, 400)
        for tokens in ("a", [1.5], [-1], [1 << 40], [None], [[1]]):
            self.post("/detokenize", {"tokens": tokens}, 400)
        long = "many words " * 100000
        self.assertEqual(self.post("/detokenize", {"tokens": self.tokens(long)})["content"], long)

    def test_tokenizer_of_vllm(self):
        plain = self.tokens("hello")
        answer = self.post("/tokenize", {"prompt": "hello", "add_special_tokens": False})
        self.assertEqual(answer, {"tokens": plain, "count": len(plain), "max_model_len": 1024})
        info = self.server.get("/tokenizer_info")[1]
        self.assertEqual(self.post("/tokenize", {"prompt": "hello"})["tokens"],
                         self.tokens(info["bos_token"]) + plain)
        props = self.server.get("/props")[1]
        self.assertEqual(info, {"model_max_length": 1024, "bos_token": props["bos_token"],
                                "eos_token": props["eos_token"]})
        self.assertEqual(self.server.get("/tokenizer_info?model=none")[0], 404)

    # ---- completions ----

    def completion(self, prompt="Once upon a time", **more):
        return self.post("/completion", dict({"prompt": prompt, "n_predict": 24}, **more))

    def test_the_same_text_as_run(self):
        run = self.ok("run", command.model(), "--raw", "-p", "Once upon a time", "-n", "24",
                      "--greedy")
        a = self.completion(temperature=0)
        self.assertEqual(a["content"].rstrip("\n"), run.text.rstrip("\n"))
        self.assertEqual((a["stop"], a["stop_type"], a["tokens"]), (True, "limit", []))
        self.assertEqual((a["index"], a["model"], a["truncated"]), (0, "model0", False))
        self.assertEqual(a["tokens_predicted"], 24)
        self.assertEqual(a["tokens_cached"], a["tokens_evaluated"] + 23)  # but not the last one
        self.assertEqual(a["tokens_evaluated"], len(self.tokens("Once upon a time",
                                                                add_special=True)))
        self.assertEqual(a["timings"]["predicted_n"], 24)
        self.assertEqual(a["timings"]["cache_n"] + a["timings"]["prompt_n"], a["tokens_evaluated"])
        self.assertEqual(a["generation_settings"]["n_predict"], 24)
        self.assertTrue(a["prompt"].endswith("Once upon a time"))
        self.assertNotIn("completion_probabilities", a)

    def test_seeds(self):
        texts = [self.completion(seed=s, temperature=1.5)["content"] for s in (1, 1, 2)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_stream(self):
        body = {"prompt": "Once upon a time", "n_predict": 24, "seed": 5, "return_tokens": True}
        whole = self.completion(**body)
        events = self.server.events("/completion", body)
        self.assertEqual("".join(e["content"] for e in events), whole["content"])
        self.assertEqual(sum((e["tokens"] for e in events), []), whole["tokens"])
        self.assertEqual(len(whole["tokens"]), 24)
        self.assertEqual([e["stop"] for e in events], [False] * (len(events) - 1) + [True])
        self.assertEqual(events[-1]["tokens_predicted"], 24)
        self.assertEqual(self.completion(**dict(body, return_tokens=False))["tokens"], [])
        for more in ({"return_tokens": False}, {"n_probs": 2}):
            events = self.server.events("/completion", dict(body, **more))
            self.assertEqual(sum((e["tokens"] for e in events), []), whole["tokens"], more)
        counts = [e["tokens_predicted"] for e in events]
        self.assertEqual(counts, sorted(counts))
        self.assertEqual((counts[0], {e["tokens_evaluated"] for e in events}),
                         (1, {whole["tokens_evaluated"]}))

    def test_tokens_that_are_no_text(self):
        """The ids of an answer include control tokens and the tokens after them."""
        special = 4082
        self.assertEqual(self.tokens(self.post("/detokenize", {"tokens": [special]})["content"]),
                         [special])
        body = {"prompt": "Once", "n_predict": 12, "seed": 1, "temperature": 1,
                "return_tokens": True, "logit_bias": [[special, 22]]}
        whole = self.completion(**body)
        self.assertEqual(len(whole["tokens"]), whole["tokens_predicted"])
        self.assertIn(special, whole["tokens"])
        events = self.server.events("/completion", body)
        self.assertEqual(sum((e["tokens"] for e in events), []), whole["tokens"])
        text = self.post("/detokenize", {"tokens": [t for t in whole["tokens"] if t != special]})
        self.assertEqual(text["content"].strip(), whole["content"].strip())
        chat = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 24,
                "seed": 3, "temperature": 1, "logprobs": True, "logit_bias": {str(special): 15}}
        answer = self.post("/v1/chat/completions", chat)
        content = answer["choices"][0]["logprobs"]["content"]
        name = self.post("/detokenize", {"tokens": [special]})["content"]
        self.assertIn(name, [t["token"] for t in content])
        self.assertEqual(len(content), answer["usage"]["completion_tokens"])
        parts = serving.choice_parts(self.server.events("/v1/chat/completions", chat))
        self.assertEqual([t for c in parts if c["logprobs"] for t in c["logprobs"]["content"]],
                         content)
        for part in parts:
            tokens = [t["token"] for t in (part["logprobs"] or {"content": ()})["content"]]
            self.assertEqual("".join(t for t in tokens if t != name),
                             part["delta"].get("content", ""))

    def check_progress(self, steps, n_total, n_cached):
        self.assertGreater(len(steps), 0)
        for step in steps:
            self.assertEqual((step["total"], step["cache"]), (n_total, n_cached))
            self.assertIsInstance(step["time_ms"], int)
        done = [step["processed"] for step in steps]
        self.assertEqual(done, sorted(set(done)))
        self.assertGreater(done[0], n_cached)
        self.assertEqual(done[-1], n_total)

    def test_progress(self):
        def steps_of(path, **body):
            events = self.server.events(path, dict(body, seed=5))
            kinds = ["prompt_progress" in e for e in events if e != "[DONE]"]
            steps = [e["prompt_progress"] for e in events if "prompt_progress" in e]
            self.assertEqual(len(kinds) - kinds[::-1].index(True) - 1, kinds.index(True) +
                             len(steps) - 1)  # in order, before the text
            return steps, events[-1] if path == "/completion" else events[-2]

        prompt = "progress " * 200
        ask = {"prompt": prompt, "n_predict": 4}
        self.assertNotIn("prompt_progress", json.dumps(self.server.events("/completion", ask)))
        cold = dict(ask, prompt="cold " + prompt, return_progress=True)
        steps, end = steps_of("/completion", **cold)
        self.check_progress(steps, end["tokens_evaluated"], end["timings"]["cache_n"])
        self.assertGreater(len(steps), 2)
        steps, end = steps_of("/completion", **cold)
        self.assertGreater(end["timings"]["cache_n"], 200)
        self.check_progress(steps, end["tokens_evaluated"], end["timings"]["cache_n"])
        chat = {"messages": [{"role": "user", "content": "chat " + prompt}], "max_tokens": 4,
                "return_progress": True, "stream_options": {"include_usage": True}}
        steps, end = steps_of("/v1/chat/completions", **chat)
        self.check_progress(steps, end["usage"]["prompt_tokens"],
                            end["usage"]["prompt_tokens_details"]["cached_tokens"])
        whole = self.post("/v1/chat/completions", chat)
        self.assertNotIn("prompt_progress", whole)

    def test_stop_words(self):
        whole = self.completion(temperature=0)["content"]
        word = whole.split()[3]
        a = self.completion(temperature=0, stop=[word])
        self.assertEqual((a["stop_type"], a["stopping_word"]), ("word", word))
        self.assertEqual(a["content"], whole[:whole.index(word)])

    def test_prompts(self):
        text = self.completion(temperature=0)["content"]
        ids = self.tokens("Once upon a time", add_special=True)
        self.assertEqual(self.completion(ids, temperature=0)["content"], text)
        several = self.completion([ids, "Once upon a time"], temperature=0)
        self.assertEqual([a["content"] for a in several], [text, text])
        self.assertEqual([a["index"] for a in several], [0, 1])
        half = self.tokens("Once upon", add_special=True)
        for mixed in (half + [" a time"], ["Once upon"] + self.tokens(" a time")):
            a = self.completion(mixed, temperature=0)
            self.assertEqual((a["content"], a["tokens_evaluated"]), (text, len(ids)))
        self.post("/completion", {"prompt": ["a", 1 << 40]}, 400)
        self.post("/completion", {"prompt": [5, None]}, 400)
        self.assertEqual(self.completion(n_predict=0)["content"], "")
        for name in ("max_tokens", "max_completion_tokens"):
            self.assertEqual(self.completion(n_predict=None, **{name: 3})["tokens_predicted"], 3)
            self.assertEqual(self.completion(n_predict=4, **{name: 3})["tokens_predicted"], 4)
        self.assertEqual([a["index"] for a in self.completion(n=2, n_predict=1)], [0, 1])
        self.post("/completion", {"prompt": "word " * 3000}, 400)

    def test_probabilities(self):
        a = self.completion(temperature=0, n_probs=3)
        rows = a["completion_probabilities"]
        self.assertEqual("".join(r["token"] for r in rows), a["content"])
        for row in rows:
            self.assertEqual(len(row["top_logprobs"]), 3)
            tops = [t["logprob"] for t in row["top_logprobs"]]
            self.assertEqual(tops, sorted(tops, reverse=True))
            self.assertEqual(bytes(row["bytes"]).decode(), row["token"])

    def test_tokens_that_are_not_utf8(self):
        """Their bytes are longer in the text; the tokens still end where it does."""
        piece = self.tokens("🤗", with_pieces=True)[-1]
        stop = self.tokens("b")[0]
        body = {"temperature": 0, "n_predict": 60, "stop": ["b"], "frequency_penalty": 2,
                "repeat_penalty": 1, "logit_bias": [[piece["id"], 100], [stop, 70]]}
        a = self.completion(return_tokens=True, **body)
        self.assertEqual(a["stop_type"], "word")
        self.assertGreater(len(a["tokens"]), 1)
        self.assertEqual(a["tokens"], [piece["id"]] * len(a["tokens"]))
        self.assertEqual(a["content"], "\ufffd" * len(a["tokens"]))
        for echo in False, True:
            text = dict(body, prompt="Once", logprobs=0, echo=echo, max_tokens=60)
            choice = self.post("/v1/completions", text)["choices"][0]
            offsets = choice["logprobs"]["text_offset"]
            self.assertEqual(offsets[-len(a["tokens"]):],
                             list(range(len(choice["text"])))[-len(a["tokens"]):])
            streamed = [e["choices"][0]["logprobs"]
                        for e in self.server.events("/v1/completions", text)[:-1]]
            self.assertEqual([o for l in streamed if l for o in l["text_offset"]], offsets)

    def test_logit_bias(self):
        whole = self.completion(temperature=0, return_tokens=True)
        first = whole["tokens"][0]
        for bias in ([[first, False]], [[first, -100]], {str(first): -100}):
            a = self.completion(temperature=0, return_tokens=True, logit_bias=bias)
            self.assertNotIn(first, a["tokens"])
        texts = [self.post("/detokenize", {"tokens": [first]})["content"], "a tale of foxes"]
        for bias in ([[t, False] for t in texts], dict.fromkeys(texts, -100)):
            a = self.completion(temperature=0, return_tokens=True, logit_bias=bias)
            banned = {i for text in texts for i in self.tokens(text, parse_special=False)}
            self.assertFalse(banned & set(a["tokens"]), (banned, a["content"]))
        for bias in ([5], [[5]], [["x" * 257, 1]], [["x", "y"]], [["a b c" * 50, 1]] * 50,
                     [[5.5, 1]], {"1 " * 200: 1}, {"-1": 1}, [[-1, 1]], [[1 << 40, 1]],
                     [[5, "x"]], 5):
            self.post("/completion", {"prompt": "a", "logit_bias": bias}, 400)

    def test_biases_that_leave_nothing(self):
        """The request is at fault then, not the model file."""
        ids = [i for text in ("a", "b") for i in self.tokens(text, parse_special=False)]
        body = {"prompt": "x", "json_schema": {"enum": ["a", "b"]},
                "logit_bias": [[i, False] for i in [*ids, "a", "b"]]}
        error = self.post("/completion", body, 400)["error"]["message"]
        self.assertIn("biases of the request exclude every token", error)
        event = self.server.events("/completion", body)[-1]
        self.assertEqual(event["error"]["type"], "invalid_request_error")

    def test_ignore_eos_bans_the_ends(self):
        """As in llama.cpp, the answer continues without a token that ends it."""
        ends = [self.tokens(self.server.get("/props")[1]["eos_token"])[0]]
        body = {"temperature": 0, "return_tokens": True, "logit_bias": [[ends[0], 100]]}
        self.assertEqual(self.completion(**body)["stop_type"], "eos")
        answer = self.completion(ignore_eos=True, **body)
        self.assertEqual((answer["stop_type"], len(answer["tokens"])), ("limit", 24))
        self.assertNotIn(ends[0], answer["tokens"])

    def test_refusals(self):
        for more in ({"grammar": "root ::= x"}, {"json_schema": "{}"}, {"mirostat": 1},
                     {"n_probs": 21}, {"prompt": None}, {"prompt": {}}, {"stop": 5},
                     {"samplers": 5}, {"samplers": {}}, {"suffix": "b"}, {"n_cmpl": 9}, {"n": 9},
                     {"post_sampling_probs": True}):
            self.post("/completion", dict({"prompt": "a"}, **more), 400)
        self.completion(grammar="", mirostat=0, dry_multiplier=0.0, json_schema=None,
                        cache_prompt=True, id_slot=-1, samplers=[], n_predict=1)
        for steps in ("edskypmxt", ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p",
                                    "min_p", "xtc", "temperature"]):
            self.completion(samplers=steps, n_predict=1)

    def test_omitted_steps_of_sampling_are_off(self):
        body = {"seed": 5, "repeat_penalty": 1, "presence_penalty": 0}
        plain = self.completion(top_k=9, top_p=1, temperature=1, **body)["content"]
        listed = dict(body, temperature=0.1, top_p=0.1, repeat_penalty=9)
        for steps in (["top_k"], "k", ["top_k", "dry", 5, None]):
            self.assertEqual(self.completion(top_k=9, samplers=steps, **listed)["content"], plain)

    def test_the_prompt_of_a_conversation(self):
        chat = {"messages": [{"role": "user", "content": "Tell <|eot_id|> a tale."}]}
        prompt = self.post("/apply-template", chat)["prompt"]
        self.assertIn("Tell <|eot_id|> a tale.", prompt)
        self.assertTrue(prompt.startswith(self.server.get("/props")[1]["bos_token"]))
        plain = {"messages": [{"role": "user", "content": "Tell a tale."}]}
        answer = self.post("/v1/chat/completions", dict(plain, temperature=0, max_tokens=24))
        raw = self.completion(self.post("/apply-template", plain)["prompt"], temperature=0)
        self.assertEqual(raw["content"], answer["choices"][0]["message"]["content"])
        self.assertEqual(raw["tokens_evaluated"], answer["usage"]["prompt_tokens"])
        open_ended = self.post("/apply-template", dict(plain, add_generation_prompt=False))
        self.assertTrue(raw["prompt"].startswith(open_ended["prompt"]))
        self.assertGreater(len(raw["prompt"]), len(open_ended["prompt"]))
        for path in ("/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"):
            self.assertEqual(self.post(path, dict(plain, stream=True)),
                             {"object": "response.input_tokens",
                              "input_tokens": raw["tokens_evaluated"]})
        for messages in (None, [], 5, [{"role": 5}]):
            self.post("/apply-template", {"messages": messages}, 400)
            self.post(path, {"messages": messages}, 400)

    def test_json_schema(self):
        schema = {"type": "object", "properties": {
            "kind": {"enum": ["cat", "dog"]}, "born": {"type": "string", "format": "date"}},
            "required": ["kind", "born"], "additionalProperties": False}
        for more in ({"temperature": 0}, {"seed": 5}):
            whole = self.completion(json_schema=schema, n_predict=100, **more)
            animal = json.loads(whole["content"])
            self.assertIn(animal["kind"], ("cat", "dog"))
            self.assertRegex(animal["born"], r"^\d{4}-\d\d-\d\d$")
            self.assertEqual(whole["stop_type"], "eos")
        self.assertIsInstance(json.loads(self.completion(
            json_schema={}, temperature=0, n_predict=100, logit_bias={"}": 20})["content"]), dict)
        schema["properties"]["born"]["format"] = "iri"
        error = self.post("/completion", {"prompt": "a", "json_schema": schema}, 400)["error"]
        self.assertIn("#/properties/born", error["message"])

    def test_grammar(self):
        grammar = 'root ::= ("cat" | "dog") [0-9]{3}'
        for more in ({"temperature": 0}, {"seed": 5}):
            answer = self.completion(grammar=grammar, n_predict=50, **more)
            self.assertRegex(answer["content"], r"^(cat|dog)[0-9]{3}$")
            self.assertEqual(answer["stop_type"], "eos")
        error = self.post("/completion", {"prompt": "a", "grammar": grammar,
                                          "json_schema": {"type": "object"}}, 400)["error"]
        self.assertIn("one format", error["message"])

    def test_the_stopping_word_is_named(self):
        text = self.completion(n_predict=40, temperature=0)["content"]
        word = text.split()[3]
        for stop in ([word], ["never", word], [word, word + text.split(word)[1][:3]]):
            answer = self.completion(n_predict=40, temperature=0, stop=stop)
            self.assertEqual((answer["stop_type"], answer["stopping_word"]), ("word", word), stop)
        none = self.completion(n_predict=2, temperature=0, stop=["never", "ever"])
        self.assertEqual(none["stopping_word"], "")

    # ---- status of the server ----

    def test_props_and_slots(self):
        status, props = self.server.get("/props")
        self.assertEqual(status, 200)
        self.assertEqual(props["total_slots"], 2)
        settings = props["default_generation_settings"]
        self.assertEqual(settings["n_ctx"], 1024)
        self.assertEqual(settings["params"]["top_k"], 40)
        self.assertNotIn("/", props["model_path"])
        self.server.wait_for_rest()
        slots = self.server.get("/slots")[1]
        self.assertEqual([(s["id"], s["n_ctx"], s["is_processing"]) for s in slots],
                         [(0, 1024, False), (1, 1024, False)])
        self.assertEqual(self.server.get("/slots?fail_on_no_slot=1")[0], 200)

    def test_template_in_props(self):
        self.assertIn("{%", self.server.get("/props")[1]["chat_template"])
        for template, has_tools in ((CALLS, True), (DEAF, False)):
            with serving.serve_template(template) as server:
                props = server.get("/props")[1]
            self.assertEqual(props["chat_template"], template)
            self.assertEqual(props["chat_template_caps"], {
                "supports_tools": has_tools, "supports_tool_calls": has_tools,
                "supports_parallel_tool_calls": has_tools})

    def test_slots_and_properties_of_a_named_model(self):
        other = command.model(command.shared("reference", "models", "tiny-bonsai"))
        with serving.Server(models=[command.model(), other]) as server:
            first, second = server.model_ids()
            of = {m["id"]: m["meta"]["n_ctx"] for m in server.get("/v1/models")[1]["data"]}
            self.assertNotEqual(of[first], of[second])
            for name in (first, second, second + ":latest"):
                n_ctx = of[name.removesuffix(":latest")]
                slots = server.get("/slots?model=" + name)[1]
                self.assertEqual({s["n_ctx"] for s in slots}, {n_ctx})
                props = server.get("/props?a=b&model=" + name.replace("-", "%2D"))[1]
                self.assertEqual(props["default_generation_settings"]["n_ctx"], n_ctx)
            self.assertEqual(server.get("/slots")[1], server.get("/slots?model=" + first)[1])
            for path in ("/slots?model=none", "/props?model=none"):
                status, answer = server.get(path)
                self.assertEqual((status, answer["error"]["code"]), (404, "model_not_found"))

    def busy_slots_of_one_answer(self):
        """Number of busy slots after the first byte of an answer; the answer may have ended by
        then."""
        body = json.dumps({"prompt": "Once", "n_predict": 900, "ignore_eos": True, "stream": True})
        with self.server.connect() as s:
            s.sendall(serving.post_head("/completion", len(body)) + body.encode())
            s.recv(1)
            return sum(slot["is_processing"] for slot in self.server.get("/slots")[1])

    def test_slots_of_answers_in_work(self):
        command.wait_for(self.busy_slots_of_one_answer, "no slot was seen at work")
        self.server.wait_for_rest()
        self.assertFalse(any(s["is_processing"] for s in self.server.get("/slots")[1]))


if __name__ == "__main__":
    command.main()
