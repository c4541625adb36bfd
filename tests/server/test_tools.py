#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tools: rendered by templates that support them, called in answers, streamed; refused by other
templates."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from serving import serve_template
from tools import BARE, DEAF, PARAMETERS, TAGGED, TOOLS, tool

CHAT = "/v1/chat/completions"
ASK = [{"role": "user", "content": "What is the weather?"}]


def joined(entries):
    return b"".join(bytes(e["bytes"]) for e in entries).decode()


class Tools(serving.TestCase):
    def ask(self, server, status=200, path=CHAT, **more):
        body = dict({"messages": ASK, "tools": TOOLS, "max_tokens": 100, "seed": 1}, **more)
        return self.post(path, body, status, server)

    def check_call(self, call, names=("weather", "stop")):
        self.assertTrue(call["id"].startswith("call_"))
        self.assertEqual(call["type"], "function")
        self.assertIn(call["function"]["name"], names)
        arguments = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "weather":
            self.assertIn(arguments["city"], ("Rome", "Oslo"))
            self.assertIn(arguments["days"], (1, 2))
        else:
            self.assertEqual(arguments, {})

    def check_required(self, server):
        for choice, names in (("required", ("weather", "stop")),
                              ({"type": "function", "function": {"name": "weather"}},
                               ("weather",))):
            answer = self.ask(server, tool_choice=choice, n=2)
            self.assertEqual(len({c["message"]["tool_calls"][0]["id"] for c in answer["choices"]}),
                             2)
            for one in answer["choices"]:
                self.assertEqual(one["finish_reason"], "tool_calls")
                self.assertIsNone(one["message"]["content"])
                self.assertEqual(len(one["message"]["tool_calls"]), 1)
                self.check_call(one["message"]["tool_calls"][0], names)

    def check_stream(self, server):
        weather = {"type": "function", "function": {"name": "weather"}}
        whole = self.ask(server, tool_choice=weather)["choices"][0]["message"]["tool_calls"]
        events = server.events(CHAT, {"messages": ASK, "tools": TOOLS, "max_tokens": 100,
                                      "seed": 1, "tool_choice": weather})
        parts = serving.choice_parts(events)
        first, *pieces = [call for c in parts for call in c["delta"].get("tool_calls", ())]
        self.assertEqual((first["index"], first["function"]["arguments"]), (0, ""))
        self.assertGreater(len(pieces), 2)
        for piece in pieces:
            self.assertEqual((set(piece), piece["index"]), ({"index", "function"}, 0))
            self.assertEqual(set(piece["function"]), {"arguments"})
            self.assertTrue(piece["function"]["arguments"])
            first["function"]["arguments"] += piece["function"]["arguments"]
        self.check_call(first)
        self.assertEqual(first["function"], whole[0]["function"])
        self.assertFalse(any(c["delta"].get("content") for c in parts))
        self.assertEqual(parts[-1]["finish_reason"], "tool_calls")

    def capabilities(self, server):
        shown = server.post("/api/show", {"model": "model0"})[1]["capabilities"]
        self.assertEqual(server.get("/api/tags")[1]["models"][0]["capabilities"], shown)
        return shown

    def check_ollama(self, server):
        self.assertEqual(self.capabilities(server), ["completion", "tools"])
        body = {"model": "model0", "messages": ASK, "tools": TOOLS, "tool_choice": "required",
                "options": {"num_predict": 300, "seed": 1}}
        answer = self.post("/api/chat", dict(body, stream=False), server=server)
        call = answer["message"]["tool_calls"][0]["function"]
        self.assertIsInstance(call["arguments"], dict)
        self.assertEqual((answer["done_reason"], answer["message"]["content"]), ("stop", ""))
        self.check_defaults(server, body)
        _, _, data = server.request("POST", "/api/chat", body)
        lines = [json.loads(line) for line in data.decode().splitlines()]
        calls = [call for line in lines for call in line["message"].get("tool_calls", ())]
        self.assertEqual([call["function"]["index"] for call in calls], [0])
        self.assertTrue(calls[0]["id"].startswith("call_"))
        self.assertTrue(lines[-1]["done"])

    def check_defaults(self, server, body):
        """A forced call has the same default parameters in both APIs: no penalties."""
        list_of_ones = {"type": "array", "items": {"enum": [1]}, "minItems": 9, "maxItems": 30}
        more = {"tools": [tool("count", ones=list_of_ones)], "tool_choice": "required"}
        for seed in range(3):
            answer = self.ask(server, seed=seed, max_tokens=300, **more)
            call = answer["choices"][0]["message"]["tool_calls"][0]
            options = {"num_predict": 300, "seed": seed}
            answer = self.post("/api/chat", dict(body, options=options, stream=False, **more),
                               server=server)
            self.assertEqual(answer["message"]["tool_calls"][0]["function"]["arguments"],
                             json.loads(call["function"]["arguments"]))

    def check_conversation(self, server):
        """Calls and their results are messages."""
        called = self.ask(server, tool_choice="required")["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": called["tool_calls"][0]["id"],
                  "content": "{\"sun\": true}"}
        answer = self.ask(server, messages=ASK + [called, result], max_tokens=5)
        plain = self.ask(server, messages=ASK, max_tokens=5)
        self.assertGreater(answer["usage"]["prompt_tokens"], plain["usage"]["prompt_tokens"] + 5)
        call = {"name": "weather", "arguments": {"city": "Rome", "days": 2}}
        called = {"role": "assistant", "tool_calls": [{"type": "function", "function": call}]}
        both = [self.ask(server, messages=ASK + [called, result], max_tokens=5, **more)["usage"]
                for more in ({}, {"unknown": 2 ** 64})]  # 2 stays 2, where 2.0 has more tokens
        self.assertEqual(both[1]["prompt_tokens"], both[0]["prompt_tokens"])

    def check_form(self, server):
        """Structured output constrains text: a forced call has none."""
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {
            "type": "object", "properties": {"x": {"enum": [1]}}, "required": ["x"],
            "additionalProperties": False}}}
        plain = self.ask(server, tool_choice="required")["choices"][0]
        formed = self.ask(server, tool_choice="required", response_format=form)["choices"][0]
        for choice in (plain, formed):
            choice["message"]["tool_calls"][0].pop("id")
        self.assertEqual(formed, plain)
        text = self.ask(server, tool_choice="none", response_format=form)["choices"][0]["message"]
        self.assertEqual(json.loads(text["content"]), {"x": 1})
        error = self.ask(server, 400, grammar='root ::= "a"')["error"]
        self.assertEqual(error["param"], "grammar")
        self.assertIn('"tools"', error["message"])
        form = {"format": dict(form["json_schema"], type="json_schema")}
        got, answer = server.post("/v1/responses", {
            "model": "model0", "input": "Hi", "text": form, "tool_choice": "required",
            "tools": [dict(t["function"], type="function") for t in TOOLS]})
        self.assertEqual((got, answer["output"][0]["type"]), (200, "function_call"), answer)

    def check_form_or_call(self, server):
        """With structured output and tools an answer is either JSON for the schema, or calls."""
        form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": {
            "type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"],
            "additionalProperties": False}}}
        kinds = set()
        for seed in range(100):
            body = {"response_format": form, "temperature": 2, "top_k": 0, "top_p": 1,
                    "max_tokens": 1000, "seed": seed}
            choice = self.ask(server, **body)["choices"][0]
            calls = choice["message"].get("tool_calls", [])
            kinds.add(choice["finish_reason"])
            self.assertEqual(choice["finish_reason"], "tool_calls" if calls else "stop", choice)
            for call in calls:
                self.check_call(call)
            if not calls:
                self.assertIn(json.loads(choice["message"]["content"]), ({"x": 1}, {"x": 2}))
            parts = serving.choice_parts(server.events(CHAT, dict(body, messages=ASK, tools=TOOLS)))
            names = [call["function"]["name"] for part in parts
                     for call in part["delta"].get("tool_calls", ()) if "id" in call]
            self.assertEqual(names, [call["function"]["name"] for call in calls])
            if len(kinds) == 2 and seed >= 8:
                break
        self.assertEqual(kinds, {"tool_calls", "stop"})

    def check_single(self, server):
        """Without parallel calls an answer ends with its first call."""
        # These tokens begin a call and separate it from the next one.
        open_tag, line_feed = (server.post("/tokenize", {"content": text})[1]["tokens"][0]
                               for text in ("<tool_call>", "\n"))
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["x"]}}}
        body = {"response_format": form, "max_tokens": 300, "seed": 1,
                "logit_bias": {str(open_tag): 80, str(line_feed): 40}}
        several, one = (self.ask(server, **more, **body)["choices"][0]["message"]["tool_calls"]
                        for more in ({}, {"parallel_tool_calls": False}))
        self.assertGreater(len(several), 1)
        self.assertEqual([c["function"] for c in one], [several[0]["function"]])
        answer = self.ask(server, parallel_tool_calls=False, **body)
        self.assertLess(answer["usage"]["completion_tokens"], 200)
        [choice] = answer["choices"]
        self.assertEqual((choice["message"]["content"], choice["finish_reason"]),
                         (None, "tool_calls"))
        parts = serving.choice_parts(server.events(CHAT, dict(
            body, messages=ASK, tools=TOOLS, parallel_tool_calls=False)))
        self.assertEqual(sum("id" in call for part in parts
                             for call in part["delta"].get("tool_calls", ())), 1)
        self.assertEqual(parts[-1]["finish_reason"], "tool_calls")
        self.check_closing_tag(server)
        self.check_single_elsewhere(server, body)

    def check_closing_tag(self, server):
        """A closing tag in a string of JSON does not end a single call."""
        mark = tool("mark", tags={"type": "array", "items": {"const": "</tool_call></parameter>"},
                                  "minItems": 2, "maxItems": 2})
        body = {"tools": [mark], "tool_choice": "required", "parallel_tool_calls": False,
                "max_tokens": 200}
        choice = self.ask(server, **body)["choices"][0]
        [call] = choice["message"]["tool_calls"]
        self.assertEqual(json.loads(call["function"]["arguments"]),
                         {"tags": ["</tool_call></parameter>"] * 2})
        self.assertEqual(choice["finish_reason"], "tool_calls")
        parts = serving.choice_parts(server.events(CHAT, dict(body, messages=ASK, seed=1)))
        pieces = [c["function"]["arguments"] for part in parts
                  for c in part["delta"].get("tool_calls", ())]
        self.assertEqual("".join(pieces), call["function"]["arguments"])

    def check_single_elsewhere(self, server, body):
        """The same in the other APIs; a body that yields several calls."""
        form = {"type": "json_schema", "schema": {"enum": ["x"]}}
        ask = {k: v for k, v in body.items() if k not in ("response_format", "max_tokens")}
        choice = {"type": "auto", "disable_parallel_tool_use": True}
        answer = self.post("/v1/messages", dict(
            ask, messages=ASK, max_tokens=1000, output_config={"format": form},
            tools=[{"name": t["function"]["name"], "input_schema": t["function"]["parameters"],
                    "description": t["function"]["description"]} for t in TOOLS],
            tool_choice=choice, stop_sequences=["never"]), server=server)
        self.assertEqual([b["type"] for b in answer["content"]], ["tool_use"])
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("tool_use", None))
        answer = self.post("/v1/responses", dict(
            ask, input=ASK, max_output_tokens=1000, text={"format": dict(form, name="x")},
            tools=[dict(t["function"], type="function") for t in TOOLS],
            parallel_tool_calls=False), server=server)
        self.assertEqual([i["type"] for i in answer["output"]], ["function_call"])
        self.assertEqual((answer["status"], answer["parallel_tool_calls"]), ("completed", False))

    def check_allowed(self, server):
        """Only the tools that the request allows are rendered and called."""
        def allow(mode, *names):
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [
                {"type": "function", "function": {"name": name}} for name in names]}}

        for name in ("weather", "stop"):
            one = self.ask(server, tool_choice=allow("required", name))
            self.check_call(one["choices"][0]["message"]["tool_calls"][0], (name,))
            alone = self.ask(server, tool_choice="required",
                             tools=[t for t in TOOLS if t["function"]["name"] == name])
            self.assertEqual(one["usage"]["prompt_tokens"], alone["usage"]["prompt_tokens"])
        both = self.ask(server, tool_choice=allow("auto", "weather", "stop", "weather"),
                        max_tokens=5)  # a repeated name counts once
        self.assertEqual(both["choices"], self.ask(server, max_tokens=5)["choices"])
        flat = {"type": "allowed_tools", "mode": "required",
                "tools": [{"type": "function", "name": "stop"}]}
        got, answer = server.post("/v1/responses", {
            "model": "model0", "input": "Hi", "tool_choice": flat,
            "tools": [dict(t["function"], type="function") for t in TOOLS]})
        self.assertEqual((got, answer["output"][0]["name"]), (200, "stop"), answer)
        for wrong in (allow("none", "stop"), allow("required"), allow("auto", "stop", "x"),
                      allow("auto", *["stop"] * 129),
                      {"type": "allowed_tools"}, {"type": "allowed_tools", "allowed_tools": 5}):
            error = self.ask(server, 400, tool_choice=wrong)["error"]
            self.assertEqual(error["param"], "tool_choice")
            self.assertIn("allowed tools", error["message"])

    def check_cut(self, server):
        """A call that was truncated before its name leaves nothing."""
        cut = {"tool_choice": "required", "max_tokens": 3}
        choice = self.ask(server, **cut)["choices"][0]
        self.assertEqual((choice["message"]["content"], choice["finish_reason"]), (None, "length"))
        self.assertNotIn("tool_calls", choice["message"])
        events = server.events(CHAT, dict(cut, messages=ASK, tools=TOOLS, seed=1))
        self.assertEqual(serving.choice_text(events), "")
        answer = self.ask(server, path="/api/chat", model="model0", stream=False,
                          tool_choice="required", options={"num_predict": 3})
        self.assertEqual((answer["message"]["content"], answer["done_reason"]), ("", "length"))

    def check_logprobs(self, server):
        """Those of calls are listed too, in streams at the end."""
        for more in ({"tool_choice": "required"}, {"max_tokens": 12}, {"n": 2, "max_tokens": 12},
                     {"tool_choice": "required", "parallel_tool_calls": False}):
            more = dict(more, logprobs=True, top_logprobs=1)
            events = server.events(CHAT, dict({"messages": ASK, "tools": TOOLS, "max_tokens": 100,
                                               "seed": 1}, **more))
            for choice in self.ask(server, **more)["choices"]:
                entries, message = choice["logprobs"]["content"], choice["message"]
                text = joined(entries)
                if "tool_calls" in message:
                    self.assertRegex(text, '["=]' + message["tool_calls"][0]["function"]["name"])
                else:
                    self.assertEqual(text, message["content"])
                self.assertEqual([e for part in serving.choice_parts(events, choice["index"])
                                  if part["logprobs"] for e in part["logprobs"]["content"]],
                                 entries)
            answer = self.ask(server, path="/api/chat", model="model0", stream=False,
                              logprobs=True, options={"temperature": 0, "num_predict": 12})
            self.assertEqual(joined(answer["logprobs"]), answer["message"]["content"])

    def check_free(self, server):
        """Without a call the answer is text, as without tools except for the prompt."""
        message = self.ask(server, max_tokens=12)["choices"][0]["message"]
        self.assertNotIn("tool_calls", message)
        self.assertTrue(message["content"])
        off = self.ask(server, tool_choice="none", max_tokens=5)
        none = self.ask(server, tools=None, max_tokens=5)
        self.assertEqual((off["choices"], off["usage"]["prompt_tokens"]),
                         (none["choices"], none["usage"]["prompt_tokens"]))
        self.assertEqual(self.ask(server, tools=[], max_tokens=5)["choices"], none["choices"])

    def call(self, server, name, **more):
        """The arguments of a call of the function, by /v1/chat/completions."""
        answer = self.ask(server, max_tokens=400, tool_choice={
            "type": "function", "function": {"name": name}}, **more)
        call = answer["choices"][0]["message"]["tool_calls"][0]["function"]
        self.assertEqual(call["name"], name)
        return json.loads(call["arguments"])

    def check_references(self, server):
        """A reference is resolved in the schema of the arguments that contains it, for every tool.
        """
        leaf = {"type": "object", "properties": {"enum": {"$ref": "#/$defs/color"}},
                "required": ["enum"], "additionalProperties": False}
        paint = tool("paint", leaf={"anyOf": [{"$ref": "#/$defs/leaf"}]},
                     list={"type": "array", "items": {"$ref": "#/properties/leaf"},
                           "minItems": 1, "maxItems": 1},
                     word={"enum": [{"$ref": "#/a"}]})
        paint["function"]["parameters"]["$defs"] = {"leaf": leaf, "color": {"enum": ["red"]}}
        nest = tool("nest", depth={"anyOf": [{"enum": [1, 2]}, {"$ref": "#"}]})
        tools = [TOOLS[1], nest, paint]
        value = self.call(server, "paint", tools=tools)
        self.assertEqual(value, {"leaf": {"enum": "red"}, "list": [{"enum": "red"}],
                                 "word": {"$ref": "#/a"}})
        value = self.call(server, "nest", tools=tools, temperature=0)
        while isinstance(value, dict):
            self.assertEqual(list(value), ["depth"])
            value = value["depth"]
        self.assertIn(value, (1, 2))
        missing = tool("missing", a={"$ref": "#/$defs/none"})
        error = self.ask(server, 400, tools=[missing], tool_choice="required")["error"]
        self.assertIn("the schema has nothing at", error["message"])

    def check_no_arguments(self, server):
        """A function without a description of its arguments has none."""
        for more in ({}, {"parameters": None}, {"parameters": {}}):
            tools = [{"type": "function", "function": dict(name="now", **more)}]
            for seed in range(4):
                self.assertEqual(self.call(server, "now", tools=tools, seed=seed), {})

    def check_with_tags(self, server):
        """What holds for every form of call between <tool_call> and </tool_call>."""
        self.check_required(server)
        self.check_references(server)
        self.check_no_arguments(server)
        self.check_stream(server)
        self.check_ollama(server)
        self.check_conversation(server)
        self.check_form(server)
        self.check_form_or_call(server)
        self.check_single(server)
        self.check_allowed(server)
        self.check_cut(server)
        self.check_logprobs(server)
        self.check_free(server)
        self.check_refusals(server)

    def test_tagged(self):
        with serve_template(TAGGED) as server:
            self.check_with_tags(server)

    def tagged_call(self, server, **more):
        """The text of a forced call and the values between its tags, which are its arguments."""
        choice = self.ask(server, tool_choice="required", logprobs=True, **more)["choices"][0]
        text = joined(choice["logprobs"]["content"])
        found = re.fullmatch(r"<tool_call>\n<function=(.*)>\n"
                             r"((?:<parameter=.*>\n(?s:.*?)\n?</parameter>\n)*)"
                             r"</function>\n</tool_call>", text)
        self.assertTrue(found, text)
        [call] = choice["message"]["tool_calls"]
        self.assertEqual(call["function"]["name"], found[1])
        values = dict(re.findall(r"<parameter=(.*)>\n((?s:.*?))\n?</parameter>", found[2]))
        arguments = json.loads(call["function"]["arguments"])
        self.assertEqual(list(arguments), list(values))
        self.assertIsNone(choice["message"]["content"])
        return arguments, values

    def check_own_form(self, server):
        """A model that calls with tags is forced to do so."""
        text, number = {"type": "string", "minLength": 1, "maxLength": 9}, {"type": "integer"}
        unit = {"type": "object", "properties": {"unit": {"enum": ["</parameter>", "\u00e9"]}},
                "required": ["unit"], "additionalProperties": False}
        write = tool("write", text=text, number={"enum": [5, 7]}, digits={"enum": ["5", "7"]},
                     nested=unit, accent={"const": "na\u00efve \U0001f600</param"},
                     empty={"const": ""}, note={"anyOf": [{"const": "n"}, {"type": "null"}]},
                     flag={"type": "boolean"}, list={"type": "array", "items": {"const": "x"},
                                                     "minItems": 1, "maxItems": 2})
        write["function"]["parameters"]["properties"]["maybe"] = number
        write["function"]["strict"] = True
        seen = set()
        for seed in range(5):
            arguments, values = self.tagged_call(server, tools=[write], seed=seed, max_tokens=600,
                                                 temperature=1.5)
            self.assertEqual([name for name in arguments if name != "maybe"],
                             list(write["function"]["parameters"]["required"]))
            self.assertTrue(1 <= len(arguments["text"]) <= 9)
            self.assertEqual(arguments["text"], values["text"])
            self.assertEqual(arguments["number"], int(values["number"]))
            self.assertEqual(arguments["digits"], values["digits"])
            self.assertIn(arguments["nested"]["unit"], ("</parameter>", "\u00e9"))
            self.assertEqual(arguments["accent"], "na\u00efve \U0001f600</param")
            self.assertEqual(arguments["empty"], "")
            self.assertIn(arguments["note"], ("n", None))
            self.assertIsInstance(arguments["flag"], bool)
            self.assertIn(arguments["list"], (["x"], ["x", "x"]))
            self.assertIsInstance(arguments.get("maybe", 0), int)
            seen |= {arguments["nested"]["unit"], arguments["note"], arguments["flag"]}
            body = {"messages": ASK, "tools": [write], "tool_choice": "required", "seed": seed,
                    "max_tokens": 600, "temperature": 1.5}
            pieces = [call["function"]["arguments"] for part in
                      serving.choice_parts(server.events(CHAT, body))
                      for call in part["delta"].get("tool_calls", ())]
            self.assertEqual(json.loads("".join(pieces)), arguments)
        self.assertGreater(len(seen), 2)
        self.assertEqual(self.tagged_call(server, tools=[TOOLS[1]]), ({}, {}))
        self.check_cut_text(server)
        self.check_other_forms(server)

    def check_cut_text(self, server):
        """A call that was cut in a string leaves nothing, as in the other forms."""
        say = tool("say", words={"type": "string"})
        cut = self.ask(server, tools=[say], tool_choice="required", max_tokens=30)["choices"][0]
        self.assertEqual((cut["finish_reason"], cut["message"]["content"]), ("length", None))
        self.assertNotIn("tool_calls", cut["message"])
        answer = self.post("/v1/messages", {
            "messages": ASK, "max_tokens": 300, "tool_choice": {"type": "any"}, "tools": [
                {"name": "stop", "input_schema": TOOLS[1]["function"]["parameters"]}]},
            server=server)
        self.assertEqual([(b["type"], b["input"]) for b in answer["content"]], [("tool_use", {})])

    def check_other_forms(self, server):
        """What tags cannot express is written as an object, for all functions."""
        odd = tool("odd", a={"const": 1})
        odd["function"]["parameters"] = {
            "$ref": "#/$defs/all", "$defs": {"all": odd["function"]["parameters"]}}
        named = tool("a<b", a={"const": 1})
        for tools in ([odd], [TOOLS[1], named]):
            choice = {"type": "function", "function": {"name": tools[-1]["function"]["name"]}}
            choice = self.ask(server, tools=tools, tool_choice=choice, logprobs=True)["choices"][0]
            self.assertTrue(joined(choice["logprobs"]["content"]).startswith("<tool_call>\n{"))
            [call] = choice["message"]["tool_calls"]
            self.assertEqual(json.loads(call["function"]["arguments"])["a"], 1)

    def test_parameters(self):
        with serve_template(PARAMETERS) as server:
            self.check_own_form(server)
            self.check_with_tags(server)

    def test_bare(self):
        with serve_template(BARE) as server:
            self.check_required(server)
            self.check_references(server)
            self.check_stream(server)
            self.check_ollama(server)
            self.check_form_or_call(server)
            self.check_allowed(server)
            self.check_cut(server)
            self.check_logprobs(server)

    def check_refusals(self, server):
        form = {"type": "json_schema"}
        for param, more in (
                ("tools", {"tools": 5}), ("tools", {"tools": [5]}), ("tools", {"tools": [{}]}),
                ("tools", {"tools": [{"type": "function", "function": {}}]}),
                ("tools", {"tools": TOOLS * 65}),
                ("response_format.json_schema.schema#/properties/x",
                 {"response_format": dict(form, json_schema={"schema": {
                     "type": "object", "properties": {"x": {"type": "string", "minLength": -1}}}})}),
                ("tools", {"response_format": {"type": "json_object"},
                           "tools": [tool("f", a={"type": "string", "minLength": -1})]}),
                ("tool_choice", {"tool_choice": "any"}),
                ("parallel_tool_calls", {"parallel_tool_calls": 1}),
                ("tool_choice", {"tools": [], "tool_choice": "required"}),
                ("tool_choice", {"tools": None, "tool_choice": 5}),
                ("tool_choice", {"tool_choice": 5}),
                ("tool_choice", {"tool_choice": {"type": "function", "function": {"name": "x"}}}),
                ("tools", {"tools": [tool("f", a={"type": "string", "minLength": -1})],
                           "tool_choice": "required"})):
            with self.subTest(param, **more):
                error = self.ask(server, 400, **more)["error"]
                self.assertEqual(error["param"], param)

    def test_templates_without_tools(self):
        with serve_template(DEAF) as deaf:
            for server in (self.server, deaf):
                self.assertEqual(self.ask(server, 400)["error"]["param"], "tools")
                self.assertNotIn("tools", self.capabilities(server))
                error = self.ask(server, 400, path="/api/chat", model="model0")["error"]
                self.assertIn("does not support tools", error)

    def test_a_conversation_that_the_template_refuses(self):
        picky = "{% if messages[0].role != 'user' %}{{ raise_exception('the user begins') }}" \
                "{% endif %}" + TAGGED
        with serve_template(picky) as server:
            self.ask(server, max_tokens=1)
            for more in ({}, {"tools": None}):
                said = [{"role": "assistant", "content": "Hi"}]
                error = self.ask(server, 400, messages=said + ASK, **more)["error"]
                self.assertEqual(error["param"], "messages")
                self.assertIn("the user begins", error["message"])
                self.assertNotIn("does not support", error["message"])


if __name__ == "__main__":
    command.main()
