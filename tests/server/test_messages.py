#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""/v1/messages: formats, streams and their events, blocks, tools, counts, refusals."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from tools import TAGGED, TOOLS

PATH = "/v1/messages"
STORY = [{"role": "user", "content": "Tell me a story."}]
TOOLS = [{"name": t["function"]["name"], "input_schema": t["function"]["parameters"]}
         for t in TOOLS]
ASK = {"max_tokens": 24, "temperature": 0, "messages": STORY}


class Messages(serving.TestCase):
    def ask(self, status=200, server=None, path=PATH, **more):
        return self.post(path, dict(ASK, **more), status, server)

    def events(self, server=None, **more):
        return (server or self.server).named_events(PATH, dict(ASK, **more))

    def test_the_same_text_as_chat(self):
        chat = self.server.post("/v1/chat/completions", {
            "max_tokens": 24, "temperature": 0,
            "messages": [{"role": "system", "content": "Be brief."}] + STORY})[1]
        answer = self.ask(system="Be brief.", model="model0")
        self.assertEqual(answer["content"], [
            {"type": "text", "text": chat["choices"][0]["message"]["content"]}])
        self.assertEqual((answer["type"], answer["role"], answer["model"]),
                         ("message", "assistant", "model0"))
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("max_tokens", None))
        usage = answer["usage"]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"],
                         chat["usage"]["prompt_tokens"])
        self.assertEqual(usage["output_tokens"], chat["usage"]["completion_tokens"])
        self.assertEqual(self.ask(max_tokens=500, messages=[{"role": "user", "content": "Hi"}])
                         ["stop_reason"], "end_turn")

    def test_stream(self):
        whole = self.ask()
        events = self.events()
        self.assertEqual([e["type"] for e in events if e["type"] != "content_block_delta"],
                         ["message_start", "content_block_start", "content_block_stop",
                          "message_delta", "message_stop"])
        texts = [e["delta"]["text"] for e in events if e["type"] == "content_block_delta"]
        self.assertEqual("".join(texts), whole["content"][0]["text"])
        self.assertEqual({e["index"] for e in events if "index" in e}, {0})
        start, delta = events[0]["message"], events[-2]
        self.assertEqual((start["content"], start["stop_reason"]), ([], None))
        self.assertEqual(delta["delta"], {"stop_reason": "max_tokens", "stop_sequence": None})
        self.assertEqual(delta["usage"]["output_tokens"], 24)
        self.assertEqual(start["usage"]["input_tokens"], delta["usage"]["input_tokens"]
                         + delta["usage"]["cache_read_input_tokens"])

    def test_stop_sequences(self):
        text = self.ask()["content"][0]["text"]
        word = text.split()[4]
        answer = self.ask(stop_sequences=[word], stop=["ignored"])
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("stop_sequence", word))
        self.assertEqual(answer["content"][0]["text"], text[:text.index(word)])
        many = [f"never {i}" for i in range(15)] + [word]
        several = self.ask(stop_sequences=many)
        self.assertEqual(several["content"], answer["content"])
        self.assertEqual(several["stop_sequence"], word)
        events = self.events(stop_sequences=["never", word])
        self.assertEqual(events[-2]["delta"],
                         {"stop_reason": "stop_sequence", "stop_sequence": word})
        for wrong in (many + ["one more"], word, [5], ["a\0b"]):
            self.assertIn("stop_sequences", self.ask(400, stop_sequences=wrong)["error"]["message"])

    def test_blocks_and_counts(self):
        def count(messages, **more):
            return self.ask(path=PATH + "/count_tokens", messages=messages, **more)["input_tokens"]
        n = count(STORY)
        usage = self.ask()["usage"]
        self.assertEqual(n, usage["input_tokens"] + usage["cache_read_input_tokens"])
        parts = [{"type": "text", "text": "Tell me a story."}]
        self.assertEqual(count([{"role": "user", "content": parts}], stream=True), n)
        thought = [{"type": "thinking", "thinking": "long " * 50, "signature": ""},
                   {"type": "text", "text": "Once."}]
        said = [{"role": "assistant", "content": "Once."}]
        self.assertEqual(count(STORY + [{"role": "assistant", "content": thought}] + STORY),
                         count(STORY + said + STORY))
        self.assertGreater(count([{"role": "user", "content": "word " * 3000}]), 3000)
        # Claude Code adds instructions in the conversation.
        note = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
        self.assertEqual(count([note] + STORY), count(STORY, system="Be brief."))
        self.assertGreater(count(STORY + [note]), n)

    def test_documents(self):
        def count(*blocks):
            return self.ask(path=PATH + "/count_tokens", messages=[
                {"role": "user", "content": list(blocks)}])["input_tokens"]

        def text(*texts):
            return [{"type": "text", "text": t} for t in texts]

        document = {"type": "document", "source": {
            "type": "text", "media_type": "text/plain", "data": "The cat is red."}}
        [ask] = text("Which colour?")
        self.assertEqual(count(document, ask), count(*text("The cat is red."), ask))
        self.assertEqual(count(dict(document, title="A cat", context="It was seen."), ask),
                         count(*text("A cat", "It was seen.", "The cat is red."), ask))
        source = {"type": "base64", "media_type": "application/pdf", "data": "aaaa"}
        for wrong in (dict(document, source=source), dict(document, source=5), dict(
                document, source={"type": "text", "data": 5})):
            error = self.ask(400, messages=[{"role": "user", "content": [wrong]}])["error"]
            self.assertIn("text only", error["message"])

    def test_tools(self):
        with serving.serve_template(TAGGED) as server:
            answer = self.ask(server=server, tools=TOOLS, tool_choice={"type": "any"},
                              max_tokens=100)
            [block] = answer["content"]
            self.assertEqual((block["type"], answer["stop_reason"]), ("tool_use", "tool_use"))
            self.assertTrue(block["id"].startswith("toolu_"))
            weather = {"type": "tool", "name": "weather"}
            [block] = self.ask(server=server, tools=TOOLS, tool_choice=weather, max_tokens=100)[
                "content"]
            self.assertIn(block["input"]["city"], ("Rome", "Oslo"))
            events = self.events(server=server, tools=TOOLS, tool_choice=weather, max_tokens=100)
            opened = [e["content_block"] for e in events if e["type"] == "content_block_start"]
            self.assertEqual([(o["type"], o["name"], o["input"]) for o in opened],
                             [("tool_use", "weather", {})])
            pieces = [e["delta"]["partial_json"] for e in events
                      if e["type"] == "content_block_delta"]
            self.assertGreater(len(pieces), 2)
            self.assertEqual(json.loads("".join(pieces)), block["input"])
            talk = STORY + [{"role": "assistant", "content": [block]}]
            result = {"type": "tool_result", "tool_use_id": block["id"],
                      "content": [{"type": "text", "text": "sunny"}]}
            counts = [self.ask(server=server, path=PATH + "/count_tokens", messages=m)
                      ["input_tokens"] for m in (
                STORY, talk, talk + [{"role": "user", "content": [result]}],
                talk + [{"role": "user", "content": [result] + [{"type": "text", "text": "Go."}]}])]
            self.assertEqual(counts, sorted(set(counts)))
            self.ask(server=server, tools=TOOLS, tool_choice={"type": "none"}, max_tokens=2)

    def test_form(self):
        schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"],
                  "additionalProperties": False}
        form = {"format": {"type": "json_schema", "schema": schema}}
        answer = self.ask(output_config=form, max_tokens=100)
        self.assertIn(json.loads(answer["content"][0]["text"]), ({"yes": True}, {"yes": False}))
        schema["minProperties"] = 1
        message = self.ask(400, output_config=form)["error"]["message"]
        self.assertIn("minProperties", message)
        self.assertIn("output_config.format.schema", message)
        self.ask(output_config={"effort": "low"}, max_tokens=1)

    def test_refusals(self):
        for status, more in (
                (400, {"messages": []}), (400, {"messages": 5}), (400, {"messages": [5]}),
                (400, {"messages": [{"role": "tool", "content": "x"}]}),
                (400, {"messages": [{"role": "user", "content": [{"type": "image"}]}]}),
                (400, {"messages": [{"role": "user", "content": "word " * 3000}]}),
                (400, {"max_tokens": None}), (400, {"max_tokens": "x"}), (400, {"system": 5}),
                (400, {"stop_sequences": 5}), (400, {"tools": 5}), (400, {"tools": TOOLS}),
                (400, {"tools": [{"type": "bash_20250124", "name": "bash"}]}),
                (400, {"tools": [{}]}), (400, {"tool_choice": {"type": "some"}}),
                (400, {"temperature": "hot"}), (404, {"model": "none"})):
            with self.subTest(**more):
                answer = self.ask(status, **more)
                self.assertEqual((answer["type"], set(answer["error"])),
                                 ("error", {"type", "message"}))
        self.assertEqual(self.ask(404, model="none")["error"]["type"], "not_found_error")
        for name, value in (("system", 5), ("output_config", "x"), ("mcp_servers", [{}]),
                            ("tool_choice", {"type": "any"})):
            self.assertIn(f'"{name}"', self.ask(400, **{name: value})["error"]["message"])


if __name__ == "__main__":
    command.main()
