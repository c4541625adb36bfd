#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""/v1/responses: formats, streams and their events, items, tools, refusals."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from thinking import thinking_model
from tools import CALLS, TAGGED, TOOLS, tool

PATH = "/v1/responses"
TOOLS = [dict(t["function"], type="function") for t in TOOLS]
WEATHER = {"type": "function", "name": "weather"}
ASK = {"input": "Tell me a story.", "max_output_tokens": 24, "temperature": 0}


class Responses(serving.TestCase):
    def ask(self, status=200, server=None, **more):
        return self.post(PATH, dict(ASK, **more), status, server)

    def events(self, server=None, **more):
        events = (server or self.server).named_events(PATH, dict(ASK, **more))
        self.assertEqual([e["sequence_number"] for e in events], list(range(len(events))))
        return events

    def chat(self, messages, **more):
        return self.server.post("/v1/chat/completions", dict(
            {"messages": messages, "max_tokens": 24, "temperature": 0}, **more))[1]

    def test_errors_use_the_fields_of_the_api(self):
        for value in ("5", -2, 0.5, []):
            status, answer = self.server.post("/v1/responses", dict(ASK, max_output_tokens=value))
            self.assertEqual((status, answer["error"]["param"]), (400, "max_output_tokens"))
            self.assertEqual(answer["error"]["message"],
                             '"max_output_tokens" must be a whole number, -1 or more')

    def test_the_same_text_as_chat(self):
        chat = self.chat([{"role": "system", "content": "Be brief."},
                          {"role": "user", "content": "Tell me a story."}])
        answer = self.ask(instructions="Be brief.", metadata={"a": "b"})
        [item] = answer["output"]
        self.assertEqual((item["type"], item["role"], item["status"]),
                         ("message", "assistant", "incomplete"))
        self.assertEqual([p["text"] for p in item["content"]],
                         [chat["choices"][0]["message"]["content"]])
        self.assertEqual((answer["object"], answer["status"], answer["store"], answer["error"]),
                         ("response", "incomplete", False, None))
        self.assertEqual(answer["incomplete_details"], {"reason": "max_output_tokens"})
        self.assertEqual((answer["instructions"], answer["metadata"], answer["tools"]),
                         ("Be brief.", {"a": "b"}, []))
        self.assertEqual((answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]),
                         (chat["usage"]["prompt_tokens"], chat["usage"]["completion_tokens"]))
        whole = self.ask(input="Hi", max_output_tokens=500)
        self.assertEqual((whole["status"], whole["incomplete_details"]), ("completed", None))
        for stream in (False, True):
            self.assertEqual(self.post(PATH + "/input_tokens", dict(
                ASK, instructions="Be brief.", stream=stream)), {
                    "object": "response.input_tokens",
                    "input_tokens": answer["usage"]["input_tokens"]})
        long = self.post(PATH + "/input_tokens", {"input": "word " * 3000})
        self.assertGreater(long["input_tokens"], 3000)
        self.post(PATH + "/input_tokens", {"input": 5}, 400)

    def test_items_are_messages(self):
        items = [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
                 {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
                  "content": [{"type": "output_text", "text": "Hello.", "annotations": []}]},
                 {"type": "reasoning", "id": "rs_1", "summary": []},
                 {"role": "user", "content": "Go on."}]
        chat = self.chat([{"role": "user", "content": "Hi"},
                          {"role": "assistant", "content": "Hello."},
                          {"role": "user", "content": "Go on."}])
        answer = self.ask(input=items)
        self.assertEqual(answer["output"][0]["content"][0]["text"],
                         chat["choices"][0]["message"]["content"])
        self.assertEqual(answer["usage"]["input_tokens"], chat["usage"]["prompt_tokens"])

    def test_stream(self):
        whole = self.ask()["output"][0]
        events = self.events()
        kinds = [e["type"].removeprefix("response.") for e in events]
        n = kinds.count("output_text.delta")
        self.assertEqual(kinds, ["created", "in_progress", "output_item.added",
                                 "content_part.added"] + n * ["output_text.delta"] + [
                                     "output_text.done", "content_part.done", "output_item.done",
                                     "incomplete"])
        text = whole["content"][0]["text"]
        self.assertEqual("".join(e["delta"] for e in events if "delta" in e), text)
        self.assertEqual(events[-4]["text"], text)
        item = events[-2]["item"]
        self.assertEqual((item["content"], item["status"]), (whole["content"], "incomplete"))
        self.assertEqual(events[-1]["response"]["output"], [item])
        self.assertEqual({e["item_id"] for e in events if "item_id" in e}, {item["id"]})
        self.assertEqual(events[0]["response"]["output"], [])
        empty = self.events(max_output_tokens=0)[-1]["response"]
        self.assertEqual(empty["output"][0]["content"][0]["text"], "")

    def test_penalties(self):
        """Both names of the repeat penalty are the same, as in chat completions."""
        usual, *others = (self.ask(**more)["output"][0]["content"][0]["text"] for more in (
            {}, {"repeat_penalty": 5}, {"repetition_penalty": 5}))
        self.assertEqual(others[0], others[1])
        self.assertNotEqual(usual, others[0])

    def test_stop(self):
        """It is no member of OpenAI's API, but of the servers that translate to chat completions."""
        text = self.ask()["output"][0]["content"][0]["text"]
        word = text.split()[3]
        answer = self.ask(stop=[word])
        self.assertEqual((answer["output"][0]["content"][0]["text"], answer["status"]),
                         (text[:text.index(word)], "completed"))

    def test_logprobs(self):
        chat = self.chat([{"role": "user", "content": ASK["input"]}], logprobs=True,
                         top_logprobs=2)["choices"][0]["logprobs"]["content"]
        include = {"include": ["reasoning.encrypted_content", "message.output_text.logprobs"]}
        for more in (dict(include, top_logprobs=2), {"top_logprobs": 2}):
            [part] = self.ask(**more)["output"][0]["content"]
            self.assertEqual(part["logprobs"], chat)
            events = self.events(**more)
            self.assertEqual(events[-1]["response"]["output"][0]["content"], [part])
            deltas = [e for e in events if e["type"] == "response.output_text.delta"]
            self.assertEqual([l for e in deltas for l in e["logprobs"]], chat)
            self.assertEqual(["".join(l["token"] for l in e["logprobs"]) for e in deltas],
                             [e["delta"] for e in deltas])
        [part] = self.ask(**include)["output"][0]["content"]
        self.assertEqual(part["logprobs"], [dict(l, top_logprobs=[]) for l in chat])
        [part] = self.ask(top_logprobs=0)["output"][0]["content"]
        self.assertEqual(part["logprobs"], [])

    def test_logprobs_beside_calls(self):
        """Those of the text before the first call; the others have no place in the format."""
        said = [{"role": "user", "content": ASK["input"]}]
        asked = {"messages": said, "tools": [tool("stop")]}
        call = '<tool_call>{"name":"stop","arguments":{}}</tool_call>'
        for place in (0, 4):
            pieces = {place: call}
            model = thinking_model(CALLS, pieces, asked)
            with self.subTest(place), serving.serve_template(CALLS, [model]) as server:
                ask = {"server": server, "tools": [TOOLS[-1]], "top_logprobs": 1}
                chat = server.post("/v1/chat/completions", dict(
                    asked, max_tokens=24, temperature=0, logprobs=True, top_logprobs=1))[1]
                expected = chat["choices"][0]["logprobs"]["content"][:place]
                output = self.ask(**ask)["output"]
                texts = [item["content"][0] for item in output if item["type"] == "message"]
                self.assertEqual([item["type"] for item in output],
                                 ["message"] * (place > 0) + ["function_call", "message"])
                self.assertEqual([t["logprobs"] for t in texts], [expected] * (place > 0) + [[]])
                events = self.events(**ask)
                self.assertEqual([item.get("content") for item in output],
                                 [i.get("content") for i in events[-1]["response"]["output"]])
                deltas = [e for e in events if e["type"] == "response.output_text.delta"]
                self.assertEqual([l for e in deltas for l in e["logprobs"]], expected)

    def test_form(self):
        schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"],
                  "additionalProperties": False}
        form = {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}
        answer = self.ask(text=form, max_output_tokens=100)
        self.assertIn(json.loads(answer["output"][0]["content"][0]["text"]),
                      ({"yes": True}, {"yes": False}))
        self.assertEqual(answer["text"], form)
        self.ask(text={"format": {"type": "text"}, "verbosity": "low"}, max_output_tokens=1)
        self.ask(400, text={"format": {"type": "yaml"}})

    def test_tools(self):
        with serving.serve_template(TAGGED) as server:
            ask = {"server": server, "tools": TOOLS, "tool_choice": WEATHER,
                   "max_output_tokens": 100}
            [call] = self.ask(**ask)["output"]
            self.assertEqual((call["type"], call["name"]), ("function_call", "weather"))
            self.assertRegex(call["id"], "^fc_")
            self.assertIn(json.loads(call["arguments"])["city"], ("Rome", "Oslo"))
            events = self.events(**ask)
            pieces = [e["delta"] for e in events
                      if e["type"] == "response.function_call_arguments.delta"]
            self.assertGreater(len(pieces), 2)
            self.assertEqual("".join(pieces), call["arguments"])
            [done] = [e for e in events if e["type"] == "response.function_call_arguments.done"]
            self.assertEqual((done["name"], done["arguments"]), ("weather", call["arguments"]))
            item = events[-2]["item"]
            self.assertEqual((events[-1]["type"], events[-1]["response"]["output"]),
                             ("response.completed", [item]))
            self.assertEqual((item["arguments"], item["status"]), (call["arguments"], "completed"))
            self.assertEqual(self.ask(**ask, top_logprobs=1)["output"][0]["arguments"],
                             call["arguments"])
            talk = [{"role": "user", "content": "Hi"}, call, {
                "type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}]
            counts = [self.ask(server=server, input=talk[:n], max_output_tokens=1)["usage"]
                      ["input_tokens"] for n in (1, 2, 3)]
            self.assertEqual(counts, sorted(set(counts)))

    def test_namespaces(self):
        group = {"type": "namespace", "name": "sky", "description": "Above.", "tools": TOOLS}
        with serving.serve_template(TAGGED) as server:
            ask = {"server": server, "tools": [group, {"type": "web_search"}],
                   "tool_choice": "required", "max_output_tokens": 200}
            [call] = self.ask(**ask)["output"]
            self.assertIn((call["namespace"], call["name"]), (("sky", "weather"), ("sky", "stop")))
            events = self.events(**ask)
            self.assertEqual(events[-1]["response"]["output"], [events[-2]["item"]])
            for item in ([e["item"] for e in events if "item" in e] + [
                    e for e in events if e["type"].endswith("arguments.done")]):
                self.assertEqual((item["namespace"], item["name"]), ("sky", call["name"]))
            # The model reads its call with the name that it wrote.
            qualified = dict(call, name="sky." + call["name"])
            del qualified["namespace"]
            counts = [self.ask(server=server, input=[c, {"role": "user", "content": "a"}],
                               max_output_tokens=1)["usage"]["input_tokens"]
                      for c in (call, qualified, dict(qualified, name=call["name"]))]
            self.assertEqual(counts[0], counts[1])
            self.assertGreater(counts[0], counts[2])
            alone = self.ask(server=server, tools=TOOLS, max_output_tokens=1)["usage"]
            search = self.ask(server=server, tools=[{"type": "web_search_preview"}] + TOOLS,
                              max_output_tokens=1)["usage"]
            self.assertEqual(alone["input_tokens"], search["input_tokens"])
            many = dict(group, tools=TOOLS * 65)
            for wrong in (many, dict(group, name=""), dict(group, name="x" * 129),
                          dict(group, tools={}), dict(group, tools=[group])):
                error = self.ask(400, server=server, tools=[wrong])["error"]
                self.assertEqual(error["param"], "tools")
            error = self.ask(400, server=server, tools=[{"type": "web_search"}, TOOLS[0],
                                                        {"type": "custom"}])["error"]
            self.assertIn('entry 2 has the type "custom"', error["message"])

    def test_refusals(self):
        for param, more in (
                ("input", {"input": None}), ("input", {"input": 5}),
                ("input", {"input": []}), ("input", {"input": "word " * 3000}), ("input", {"input": [5]}),
                ("input", {"input": [{"type": "item_reference", "id": "x"}]}),
                ("input", {"input": [{"role": "user", "content": [{"type": "input_image"}]}]}),
                ("instructions", {"instructions": 5}),
                ("tools", {"tools": 5}), ("tools", {"tools": [{"type": "web_search"}]}),
                ("tools", {"tools": TOOLS}),
                ("text.format", {"text": {"format": {"type": "yaml"}}}),
                ("text.format", {"text": {"format": {"type": "json_schema"}}}),
                ("text.format.schema", {"text": {"format": {
                    "type": "json_schema", "schema": {"minLength": -1}}}}),
                ("previous_response_id", {"previous_response_id": "resp_1"}),
                ("background", {"background": True}),
                ("top_logprobs", {"top_logprobs": 21}), ("top_logprobs", {"top_logprobs": "2"}),
                ("text", {"text": "x"}), ("reasoning", {"reasoning": "low"}),
                ("tool_choice", {"tool_choice": "required"}),
                ("tool_choice", {"tool_choice": {"type": "function", "name": "f"}}),
                ("temperature", {"temperature": "hot"})):
            with self.subTest(param, **more):
                self.assertEqual(self.ask(400, **more)["error"]["param"], param)
        error = self.ask(400, input=[{"type": "item_reference", "id": "x"}])["error"]
        self.assertIn('"store": false', error["message"])
        self.assertEqual(self.ask(404, model="none")["error"]["code"], "model_not_found")
        self.ask(background=False, previous_response_id=None, max_output_tokens=1)


if __name__ == "__main__":
    command.main()
