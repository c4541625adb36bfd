#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reasoning: separated from the answer in every API, switched on and off, in front of structured
output only on request, truncated, and sent back."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from serving import serve_template, template_file
from thinking import ASK, CLOSES, OPENS, SWITCH, TAGS, split, thinking_model
from tools import CALLS, DEAF, tool

CHAT = "/v1/chat/completions"
N = 16
FORM = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {
    "type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"],
    "additionalProperties": False}}}
TOOLS = [tool("stop")]


def serve(template=SWITCH, **how):
    return serve_template(template, models=[thinking_model(template, **how)])


class Case(serving.TestCase):
    """Requests answers from a reasoning model."""

    @classmethod
    def setUpClass(cls):
        command.TestCase.setUpClass()
        cls.start("--template", template_file(SWITCH), models=[thinking_model()])

    def ask(self, server=None, status=200, path=CHAT, **more):
        return self.post(path, dict({"messages": ASK, "max_tokens": N, "temperature": 0}, **more),
                         status, server)

    def message(self, server=None, **more):
        return self.ask(server, **more)["choices"][0]["message"]

    def parts(self, server=None, **more):
        message = self.message(server, **more)
        return message.get("reasoning_content", ""), message["content"]

    def streamed(self, server=None, **more):
        """(reasoning, answer) of each choice; reasoning comes first."""
        events = (server or self.server).events(CHAT, dict(
            {"messages": ASK, "max_tokens": N, "temperature": 0}, **more))
        parts = {}
        for choice in (c for e in events if e != "[DONE]" for c in e["choices"]):
            reasoning, content = parts.get(choice["index"], ("", ""))
            if "reasoning_content" in choice["delta"]:
                self.assertEqual((list(choice["delta"]), content), (["reasoning_content"], ""))
                self.assertTrue(choice["delta"]["reasoning_content"])
                self.assertIsNone(choice["logprobs"])
            parts[choice["index"]] = (reasoning + choice["delta"].get("reasoning_content", ""),
                                      content + choice["delta"].get("content", ""))
        return [parts[i] for i in sorted(parts)]

    def n_prompt(self, server=None, **more):
        return self.ask(server, **dict({"max_tokens": 1}, **more))["usage"]["prompt_tokens"]

    def raw(self, server, template, n, **more):
        """The text of n tokens, with its tags."""
        ids = self.ok("tokenize", "--chat", thinking_model(template), "--template",
                      template_file(template), stdin=json.dumps(ASK).encode()).text.split()
        return server.post("/completion", dict({"prompt": [int(i) for i in ids], "n_predict": n,
                                                "temperature": 0}, **more))[1]["content"]


class Answers(Case):
    def test_reasoning_and_answer_at_every_cut(self):
        seen = set()
        for n in range(N + 1):
            text = self.raw(self.server, SWITCH, n) if n else ""
            parts = split(text)
            self.assertEqual(self.parts(max_tokens=n), parts, text)
            self.assertEqual(self.streamed(max_tokens=n), [parts], text)
            seen.add((bool(parts[0]), bool(parts[1])))
        self.assertEqual(seen, {(False, False), (False, True), (True, False), (True, True)})
        self.assertIn("é", self.parts()[0])

    def test_choices_are_separated_independently(self):
        whole = [(c["message"].get("reasoning_content", ""), c["message"]["content"])
                 for c in self.ask(n=3, temperature=1, seed=5)["choices"]]
        self.assertEqual(self.streamed(n=3, temperature=1, seed=5), whole)

    def test_usage(self):
        """Tags and the white space around them count as reasoning."""
        for n, expected in ((1, 0), (2, 2), (8, 8), (10, 10), (11, 11), (12, 11), (N, 11)):
            usage = self.ask(max_tokens=n)["usage"]
            self.assertEqual((usage["completion_tokens"],
                              usage["completion_tokens_details"]["reasoning_tokens"]),
                             (n, expected))
        events = self.server.events(CHAT, {"messages": ASK, "max_tokens": N, "temperature": 0,
                                           "n": 2, "stream_options": {"include_usage": True}})
        self.assertEqual(events[-2]["usage"]["completion_tokens_details"]["reasoning_tokens"], 22)
        text = self.ask(path="/v1/completions", prompt="Once")["usage"]
        self.assertEqual(text["completion_tokens_details"]["reasoning_tokens"], 0)

    def test_logprobs_are_those_of_the_answer(self):
        choice = self.ask(logprobs=True, top_logprobs=1)["choices"][0]
        entries = choice["logprobs"]["content"]
        self.assertEqual("".join(e["token"] for e in entries).lstrip(),
                         choice["message"]["content"])
        self.assertEqual(len(entries), N - 11)
        events = self.server.events(CHAT, {"messages": ASK, "max_tokens": N, "temperature": 0,
                                           "logprobs": True, "top_logprobs": 1})
        rows = [c["logprobs"]["content"] for e in events if e != "[DONE]" for c in e["choices"]
                if c["logprobs"]]
        self.assertEqual([row for r in rows for row in r], entries)
        self.assertEqual(self.ask(logprobs=True, max_tokens=8)["choices"][0]["logprobs"]["content"],
                         [])

    def test_stop_strings_end_reasoning_too(self):
        choice = self.ask(stop=["soldier"])["choices"][0]
        self.assertEqual((choice["message"]["reasoning_content"], choice["message"]["content"],
                          choice["finish_reason"]), ("xéy", "", "stop"))
        self.assertEqual(self.streamed(stop=["soldier"]), [("xéy", "")])
        reasoning, content = self.parts(stop=[" merchant"])
        self.assertEqual((reasoning, content), (self.parts()[0], "a rich"))

    def test_structured_output_has_none_by_default(self):
        for streams in (False, True):
            parts = self.streamed(response_format=FORM)[0] if streams else \
                self.parts(response_format=FORM)
            self.assertEqual(parts[0], "")
            self.assertIn(json.loads(parts[1]), ({"yes": True}, {"yes": False}))
        off = self.n_prompt(reasoning_effort="none")
        self.assertEqual(self.n_prompt(response_format=FORM), off)

    def test_structured_output_after_requested_reasoning(self):
        thinks = {"response_format": FORM, "reasoning_effort": "high", "max_tokens": 60}
        reasoning, content = self.parts(**thinks)
        self.assertEqual(reasoning, self.parts()[0])
        self.assertIn(json.loads(content), ({"yes": True}, {"yes": False}))
        self.assertEqual(self.streamed(**thinks), [(reasoning, content)])
        self.assertEqual(self.n_prompt(**dict(thinks, max_tokens=1)), self.n_prompt())
        for seed in range(5):  # random reasoning ends with its tag or is cut off
            choice = self.ask(**dict(thinks, temperature=1.5, seed=seed, max_tokens=200))
            message = choice["choices"][0]["message"]
            self.assertNotIn("think>", message["content"])
            if choice["choices"][0]["finish_reason"] == "stop":
                self.assertIn(json.loads(message["content"]), ({"yes": True}, {"yes": False}))
            else:
                self.assertEqual((message["content"], len(message["reasoning_content"]) > 0),
                                 ("", True))

    def test_reasoning_effort_of_openai(self):
        plain = self.n_prompt()
        off = self.n_prompt(reasoning_effort="none")
        self.assertGreater(off, plain)
        for n, more in ((plain, {"reasoning_effort": "low"}), (plain, {"reasoning_effort": None}),
                        (plain, {"chat_template_kwargs": {"enable_thinking": True}}),
                        (plain, {"chat_template_kwargs": {}}),
                        (plain, {"chat_template_kwargs": {"enable_thinking": None}}),
                        (off, {"chat_template_kwargs": {"enable_thinking": False}}),
                        (off, {"chat_template_kwargs": {"thinking": False}}),
                        (off, {"chat_template_kwargs": {"reasoning_effort": "none"}})):
            self.assertEqual(self.n_prompt(**more), n, more)
        on = {"enable_thinking": True}
        for more in ({"reasoning_effort": "none", "chat_template_kwargs": on},
                     {"chat_template_kwargs": {**on, "reasoning_effort": "none"}}):
            self.assertEqual(self.parts(**more), self.parts(), more)
        for param, value in (("reasoning_effort", "much"), ("reasoning_effort", 3),
                             ("chat_template_kwargs", []),
                             ("chat_template_kwargs", {"add_generation_prompt": False}),
                             ("chat_template_kwargs", {"messages": []})):
            error = self.ask(status=400, **{param: value})["error"]
            self.assertEqual(error["param"], param)
        self.ask(status=400, chat_template_kwargs={"enable_thinking": "no"})
        self.ask(status=400, chat_template_kwargs={"reasoning_effort": "much"})

    def test_earlier_reasoning_is_handed_on(self):
        def talk(**more):
            return [ASK[0], dict({"role": "assistant", "content": "No."}, **more), ASK[0]]
        plain = self.n_prompt(messages=talk())
        counts = {self.n_prompt(messages=talk(**{key: "I am tired"}))
                  for key in ("reasoning_content", "reasoning", "thinking")}
        self.assertEqual(len(counts), 1)
        self.assertGreater(counts.pop(), plain)
        for nothing in (None, "", 5, {"text": "x"}):
            self.assertEqual(self.n_prompt(messages=talk(reasoning_content=nothing)), plain)
        only = [ASK[0], {"role": "assistant", "reasoning_content": "hm"}, ASK[0]]
        self.assertGreater(self.n_prompt(messages=only), 1)

    def test_texts_are_left_as_they_are(self):
        text = self.raw(self.server, SWITCH, N)
        self.assertTrue(text.startswith("<think>\n"))
        self.assertIn("</think>", text)


class Ollama(Case):
    def whole(self, path, status=200, **more):
        return self.post(path, dict({"messages": ASK, "prompt": ASK[0]["content"], "stream": False,
                                     "options": {"temperature": 0, "num_predict": N}}, **more),
                         status)

    def parts_of(self, answer):
        return (answer["message"].get("thinking", ""), answer["message"]["content"]) \
            if "message" in answer else (answer.get("thinking", ""), answer["response"])

    def test_reasoning_is_on_by_default(self):
        parts = self.parts()
        for path in ("/api/chat", "/api/generate"):
            plain = self.whole(path)
            self.assertEqual(self.parts_of(plain), parts)
            for think in (True, None, "low", "medium", "high", "max"):
                answer = self.whole(path, think=think)
                self.assertEqual(self.parts_of(answer), parts)
                self.assertEqual(answer["prompt_eval_count"], plain["prompt_eval_count"])
            off = self.whole(path, think=False)
            self.assertGreater(off["prompt_eval_count"], plain["prompt_eval_count"])
            self.assertNotIn("thinking", off.get("message", off))
            for think in ("much", "", 1, []):
                self.assertIn("think", self.whole(path, 400, think=think)["error"])

    def test_a_format_has_some_only_on_request(self):
        options = {"temperature": 0, "num_predict": 60}
        for path in ("/api/chat", "/api/generate"):
            for think, reasoning in ((None, ""), (False, ""), (True, self.parts()[0])):
                answer = self.whole(path, think=think, options=options,
                                    format=FORM["json_schema"]["schema"])
                parts = self.parts_of(answer)
                self.assertEqual(parts[0], reasoning)
                self.assertIn(json.loads(parts[1]), ({"yes": True}, {"yes": False}))

    def test_stream(self):
        for path in ("/api/chat", "/api/generate"):
            status, _, data = self.server.request("POST", path, {
                "messages": ASK, "prompt": ASK[0]["content"],
                "options": {"temperature": 0, "num_predict": N}})
            lines = [json.loads(line) for line in data.decode().splitlines()]
            parts = [self.parts_of(line) for line in lines]
            self.assertEqual(("".join(p[0] for p in parts), "".join(p[1] for p in parts)),
                             self.parts())
            self.assertTrue(all(not (p[0] and p[1]) for p in parts))
            self.assertEqual((lines[-1]["done"], parts[-1]), (True, ("", "")))

    def test_cut_while_it_thinks(self):
        for n in range(1, N):
            options = {"temperature": 0, "num_predict": n}
            self.assertEqual(self.parts_of(self.whole("/api/chat", options=options)),
                             self.parts(max_tokens=n))

    def test_raw(self):
        text = "user: " + ASK[0]["content"] + "\nassistant: "
        self.assertEqual(self.parts_of(self.whole("/api/generate", raw=True, prompt=text)),
                         self.parts())
        answer = self.whole("/api/generate", raw=True, prompt=text, think=False)
        self.assertTrue(answer["response"].startswith("<think>"))

    def test_context_includes_reasoning(self):
        first = self.whole("/api/generate")
        text = self.server.post("/detokenize", {"tokens": first["context"]})[1]["content"]
        self.assertTrue(text.endswith(self.raw(self.server, SWITCH, N)), text)

    def test_capabilities(self):
        name = self.server.get("/api/tags")[1]["models"][0]
        self.assertIn("thinking", name["capabilities"])
        self.assertIn("thinking", self.server.post("/api/show", {"model": name["name"]})[1]
                      ["capabilities"])


def blocks_of(parts, reasoning, text):
    """The list of blocks for an answer of these parts; an empty answer is one empty text."""
    return [make(part) for make, part in zip((reasoning, text), parts)
            if part or (make is text and not any(parts))]


class Messages(Case):
    """Anthropic's API: blocks."""
    PATH = "/v1/messages"
    ON = {"type": "enabled", "budget_tokens": 1024}

    def body(self, **more):
        return dict({"messages": ASK, "max_tokens": N, "temperature": 0, "thinking": self.ON},
                    **more)

    def whole(self, status=200, **more):
        return self.post(self.PATH, self.body(**more), status)

    def n_input(self, **more):
        return self.post(self.PATH + "/count_tokens", self.body(**more))["input_tokens"]

    def check_stream(self, blocks, **more):
        events = self.server.named_events(self.PATH, self.body(**more))
        self.assertEqual([e["type"] for e in (events[0], *events[-2:])],
                         ["message_start", "message_delta", "message_stop"])
        got, is_open = [], False
        for event in events[1:-2]:
            kind = event["type"]
            if kind == "content_block_start":
                self.assertFalse(is_open)
                got.append(event["content_block"])
            is_open = kind != "content_block_stop"
            self.assertEqual(event["index"], len(got) - 1)
            if kind == "content_block_delta":
                key = {"thinking_delta": "thinking", "text_delta": "text"}[event["delta"]["type"]]
                got[-1][key] += event["delta"][key]
        self.assertEqual((got, is_open), (blocks, False))

    def test_blocks_at_every_cut(self):
        for n in range(1, N + 1):
            blocks = blocks_of(self.parts(max_tokens=n),
                               lambda t: {"type": "thinking", "thinking": t, "signature": ""},
                               lambda t: {"type": "text", "text": t})
            answer = self.whole(max_tokens=n)
            self.assertEqual((answer["content"], answer["stop_reason"],
                              answer["usage"]["output_tokens"]), (blocks, "max_tokens", n))
            self.check_stream(blocks, max_tokens=n)
        self.assertEqual([b["type"] for b in blocks], ["thinking", "text"])

    def test_it_is_available_on_request(self):
        on, off = self.n_input(), self.n_prompt(reasoning_effort="none")
        self.assertEqual(on, self.n_prompt())
        self.assertNotEqual(on, off)
        for thinking in (None, {"type": "disabled"}):
            self.assertEqual(self.n_input(thinking=thinking), off)
            self.assertEqual([b["type"] for b in self.whole(thinking=thinking)["content"]],
                             ["text"])
        effort = {"effort": "low"}
        self.assertEqual(self.n_input(thinking={"type": "adaptive"}, output_config=effort), on)
        self.assertEqual(self.n_input(thinking=None, output_config=effort), off)
        self.assertEqual(self.n_input(reasoning_effort="none"), on)  # a word of another API
        self.whole(400, thinking={"type": "maybe"})
        self.whole(400, thinking={})
        self.whole(400, output_config={"effort": "much"})

    def test_earlier_blocks(self):
        def talk(*blocks):
            return [ASK[0], {"role": "assistant", "content": [*blocks]}, ASK[0]]
        thought = {"type": "thinking", "thinking": "I am tired", "signature": ""}
        text = {"type": "text", "text": "No."}
        plain = self.n_input(messages=talk(text))
        said = [ASK[0], {"role": "assistant", "content": "No.", "reasoning_content": "I am tired"},
                ASK[0]]
        self.assertEqual(self.n_input(messages=talk(thought, text)), self.n_prompt(messages=said))
        self.assertEqual(self.n_input(messages=talk({"type": "redacted_thinking", "data": "x"},
                                                    text)), plain)
        said[1]["content"] = ""
        said[1]["reasoning_content"] += "\nI am tired"
        self.assertEqual(self.n_input(messages=talk(thought, thought)),
                         self.n_prompt(messages=said))


class Responses(Case):
    """/v1/responses: items."""
    PATH = "/v1/responses"

    def body(self, **more):
        return dict({"input": ASK[0]["content"], "max_output_tokens": N, "temperature": 0}, **more)

    def whole(self, status=200, **more):
        return self.post(self.PATH, self.body(**more), status)

    def n_input(self, **more):
        return self.whole(max_output_tokens=1, **more)["usage"]["input_tokens"]

    def items(self, parts):
        items = blocks_of(parts,
                          lambda t: {"type": "reasoning", "summary": [], "content": [
                              {"type": "reasoning_text", "text": t}]},
                          lambda t: {"type": "message", "role": "assistant", "content": [
                              {"type": "output_text", "annotations": [], "logprobs": [],
                               "text": t}]})
        for item in items:
            item["status"] = "incomplete" if item is items[-1] else "completed"
        return items

    def without_ids(self, items):
        ids = [item.pop("id") for item in items]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertTrue(all(i.startswith("rs_" if "summary" in item else "msg_")
                            for i, item in zip(ids, items)))
        return items

    def check_stream(self, items, **more):
        events = self.server.named_events(self.PATH, self.body(**more))
        expected = ["response.created", "response.in_progress"]
        for item in items:
            kind = item["content"][0]["type"]
            text = item["content"][0]["text"]
            deltas = [e["delta"] for e in events if e["type"] == f"response.{kind}.delta"]
            self.assertEqual("".join(deltas), text)
            [done] = [e for e in events if e["type"] == f"response.{kind}.done"]
            self.assertEqual(done["text"], text)
            expected += ["response.output_item.added", "response.content_part.added",
                         *[f"response.{kind}.delta"] * len(deltas), f"response.{kind}.done",
                         "response.content_part.done", "response.output_item.done"]
        self.assertEqual([e["type"] for e in events], expected + ["response.incomplete"])
        whole = events[-1]["response"]["output"]
        for event in events:
            if "item_id" in event:
                self.assertEqual(event["item_id"], whole[event["output_index"]]["id"])
        self.assertEqual([e["item"] for e in events if e["type"] == "response.output_item.done"],
                         whole)
        self.assertEqual(self.without_ids(whole), items)

    def test_items_at_every_cut(self):
        for n in range(1, N + 1):
            items = self.items(self.parts(max_tokens=n))
            answer = self.whole(max_output_tokens=n)
            self.assertEqual(self.without_ids(answer["output"]), items)
            self.assertEqual(answer["usage"]["output_tokens_details"]["reasoning_tokens"],
                             self.ask(max_tokens=n)["usage"]["completion_tokens_details"]
                             ["reasoning_tokens"])
            self.check_stream(items, max_output_tokens=n)
        self.assertEqual([i["type"] for i in items], ["reasoning", "message"])

    def test_logprobs_are_those_of_the_answer(self):
        listed = self.ask(logprobs=True, top_logprobs=1)["choices"][0]["logprobs"]["content"]
        self.assertEqual(self.whole(top_logprobs=1)["output"][-1]["content"][0]["logprobs"], listed)
        events = self.server.named_events(self.PATH, self.body(top_logprobs=1))
        self.assertEqual([l for e in events if e["type"] == "response.output_text.delta"
                          for l in e["logprobs"]], listed)
        [part] = events[-1]["response"]["output"][-1]["content"]
        self.assertEqual(part["logprobs"], listed)

    def test_effort(self):
        for effort in ("none", "low", None):
            reasoning = {"effort": effort, "summary": "auto"}
            self.assertEqual(self.n_input(reasoning=reasoning),
                             self.n_prompt(reasoning_effort=effort))
            self.assertEqual(self.whole(reasoning=reasoning)["reasoning"], reasoning)
        self.assertEqual(self.whole()["reasoning"], {"effort": None, "summary": None})
        self.whole(400, reasoning={"effort": "much"})

    def test_earlier_items(self):
        def talk(*items):
            return [ASK[0], *items, ASK[0]]
        text = {"type": "message", "role": "assistant", "content": [
            {"type": "output_text", "text": "No.", "annotations": []}]}
        call = {"type": "function_call", "call_id": "c", "name": "stop", "arguments": "{}"}
        thought = {"type": "reasoning", "id": "rs_1", "summary": [],
                   "content": [{"type": "reasoning_text", "text": "I am tired"}]}
        short = {"type": "reasoning", "id": "rs_2",
                 "summary": [{"type": "summary_text", "text": "I am tired"}]}
        unread = {"type": "reasoning", "id": "rs_3", "summary": [], "encrypted_content": "x"}
        said = {"role": "assistant", "content": "No.", "reasoning_content": "I am tired"}
        called = {"role": "assistant", "reasoning_content": "I am tired", "tool_calls": [
            {"type": "function", "function": {"name": "stop", "arguments": "{}"}}]}
        self.assertEqual(self.n_input(input=talk(text)), self.n_prompt(
            messages=talk(dict(said, reasoning_content=None))))
        for reasoning in (thought, short):
            self.assertEqual(self.n_input(input=talk(reasoning, text)),
                             self.n_prompt(messages=talk(said)))
            self.assertEqual(self.n_input(input=talk(reasoning, call)),
                             self.n_prompt(messages=talk(called)))
        self.assertEqual(self.n_input(input=talk(unread, text)), self.n_input(input=talk(text)))
        only = {"role": "assistant", "reasoning_content": "I am tired"}
        self.assertEqual(self.n_input(input=talk(thought)), self.n_prompt(messages=talk(only)))
        self.assertEqual(self.n_input(input=talk(thought, ASK[0], text)),
                         self.n_prompt(messages=talk(only, ASK[0], dict(
                             said, reasoning_content=None))))


class Others(Case):
    def test_a_prompt_that_opens_it(self):
        with serve(OPENS, pieces=CLOSES) as server:
            for n in (1, 7, 8, 9, 10, 11, N):
                message = self.message(server, max_tokens=n)
                self.assertEqual(bool(message["content"]), n >= 11)
                parts = message["reasoning_content"], message["content"]
                self.assertEqual(self.streamed(server, max_tokens=n), [parts])
                self.assertNotIn("<", "".join(parts))
            self.assertEqual(self.ask(server)["usage"]["completion_tokens_details"],
                             {"reasoning_tokens": 10})
            plain, off = self.n_prompt(server), self.n_prompt(server, reasoning_effort="none")
            self.assertGreater(off, plain)
            self.assertEqual(self.n_prompt(server, response_format=FORM), off)
            self.assertEqual(self.parts(server, reasoning_effort="none")[0], "")
            thinks = dict(response_format=FORM, reasoning_effort="low", max_tokens=60)
            for more, reasoning in (({"response_format": FORM}, ""),
                                    (thinks, self.parts(server)[0])):
                parts = self.parts(server, **more)
                self.assertEqual(parts[0], reasoning)
                self.assertIn(json.loads(parts[1]), ({"yes": True}, {"yes": False}))
            self.assertIn("thinking", server.get("/api/tags")[1]["models"][0]["capabilities"])

    def test_unwanted_reasoning_is_hidden(self):
        """The template has no switch, and the model reasons nevertheless."""
        with serve(DEAF) as server:
            self.assertEqual(self.parts(server), split(self.raw(server, DEAF, N)))
            self.assertEqual(self.parts(server, reasoning_effort="none"),
                             ("", self.parts(server)[1]))
            self.assertEqual(self.streamed(server, reasoning_effort="none"),
                             [("", self.parts(server)[1])])
            status, answer = server.post("/api/chat", {
                "messages": ASK, "stream": False, "think": False,
                "options": {"temperature": 0, "num_predict": N}})
            self.assertEqual(answer["message"], {"role": "assistant",
                                                 "content": self.parts(server)[1]})
            for think in (True, "low"):
                status, answer = server.post("/api/chat", {"messages": ASK, "think": think})
                self.assertEqual(status, 400)
                self.assertIn("does not support thinking", answer["error"])
            self.assertEqual(server.get("/api/tags")[1]["models"][0]["capabilities"],
                             ["completion"])
            talk = [ASK[0], {"role": "assistant", "content": "No."}, ASK[0]]
            plain = self.n_prompt(server, messages=talk)
            talk[1]["reasoning_content"] = "hm"
            self.assertEqual(self.n_prompt(server, messages=talk), plain)

    def test_built_in_templates_get_no_reasoning(self):
        with serving.Server("--template", "chatml") as server:
            talk = [ASK[0], {"role": "assistant", "content": "No."}, ASK[0]]
            plain = self.n_prompt(server, messages=talk)
            talk[1]["reasoning_content"] = "hm"
            for more in ({}, {"reasoning_effort": "none"}, {"reasoning_effort": "low"}):
                self.assertEqual(self.n_prompt(server, messages=talk, **more), plain)

    def test_tools(self):
        """A call after the reasoning counts, a call inside it does not."""
        asked = {"messages": ASK, "tools": TOOLS}
        call = '<tool_call>{"name":"stop","arguments":{}}</tool_call>'
        for place, is_call in ((9, True), (4, False)):
            pieces = {0: "<think>", 6: "</think>", place: call}
            with serve(CALLS, pieces=pieces, conversation=asked) as server:
                message = self.message(server, tools=TOOLS)
                self.assertEqual(call in message["reasoning_content"], not is_call)
                self.assertNotIn("<", message["content"])
                self.assertEqual([c["function"]["name"] for c in message.get("tool_calls", ())],
                                 ["stop"] * is_call)
                self.assertEqual(self.streamed(server, tools=TOOLS),
                                 [(message["reasoning_content"], message["content"])])
                forced = self.message(server, tools=TOOLS, tool_choice="required", max_tokens=120)
                self.assertNotIn("reasoning_content", forced)
                self.assertEqual(forced["tool_calls"][0]["function"]["name"], "stop")

    def test_a_forced_call_after_requested_reasoning(self):
        asked = {"messages": ASK, "tools": TOOLS}
        pieces = {0: "<think>", 6: "</think>"}
        template = CALLS + "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
        with serve(template, pieces=pieces, conversation=asked) as server:
            message = self.message(server, tools=TOOLS, tool_choice="required", max_tokens=120,
                                   reasoning_effort="high")
            self.assertTrue(message["reasoning_content"])
            self.assertIsNone(message["content"])
            self.assertEqual([c["function"]["name"] for c in message["tool_calls"]], ["stop"])


if __name__ == "__main__":
    command.main()
