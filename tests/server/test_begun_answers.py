#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Answers that the last message begins: continued with the bytes of the uninterrupted answer in
every conversation API, unless the request wants a new message or the conversation cannot be
continued."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from serving import serve_template, template_file
from thinking import CLOSES, OPENS, SWITCH, thinking_model
from tools import TAGGED, TOOLS

CHAT = "/v1/chat/completions"
STORY = [{"role": "user", "content": "Tell me a story."}]
N = 24


def begun(content, **more):
    return STORY + [dict({"role": "assistant", "content": content}, **more)]


class Case(serving.TestCase):
    def ask(self, messages=STORY, n=N, status=200, server=None, **more):
        return self.post(CHAT, dict({"messages": messages, "max_tokens": n, "temperature": 0},
                                    **more), status, server)

    def message(self, messages=STORY, n=N, **more):
        return self.ask(messages, n, **more)["choices"][0]["message"]

    def text(self, messages=STORY, n=N, **more):
        return self.message(messages, n, **more)["content"]

    def streamed(self, messages, n, **more):
        events = self.server.events(CHAT, dict({"messages": messages, "max_tokens": n,
                                                "temperature": 0}, **more))
        return "".join(c["delta"].get("content", "") for e in events if e != "[DONE]"
                       for c in e["choices"])


class BegunAnswers(Case):
    def test_every_cut(self):
        whole = self.text()
        for n in range(1, N):
            part = self.text(n=n)
            self.assertTrue(whole.startswith(part))
            self.assertEqual(part + self.text(begun(part), N - n), whole, n)

    def test_the_same_seed(self):
        chance = {"temperature": 1.0, "seed": 7}
        whole = self.post(CHAT, {"messages": STORY, "max_tokens": 40, "n": 2, **chance})["choices"]
        self.assertNotEqual(whole[0]["message"]["content"], self.text(n=40))
        for i, choice in enumerate(whole):
            alone = {"temperature": 1.0, "seed": 7 + i}
            for n in (1, 9, 24):
                part = self.text(n=n, **alone)
                self.assertEqual(part + self.text(begun(part), 40 - n, **alone),
                                 choice["message"]["content"], n)

    def test_every_api(self):
        whole, part = self.text(), self.text(n=10)
        rest = whole[len(part):]
        parts = [{"type": "text", "text": part}]
        for more in ({}, {"continue_final_message": True, "add_generation_prompt": False},
                     {"continue_final_message": True}, {"add_generation_prompt": False}):
            self.assertEqual(self.text(begun(part), N - 10, **more), rest)
            self.assertEqual(self.streamed(begun(part), N - 10, **more), rest)
        self.assertEqual(self.text(begun(parts), N - 10), rest)
        for said in (part, parts):
            body = {"messages": begun(said), "max_tokens": N - 10, "temperature": 0}
            self.assertEqual(self.post("/v1/messages", body)["content"],
                             [{"type": "text", "text": rest}])
            events = self.server.named_events("/v1/messages", body)
            self.assertEqual("".join(e["delta"]["text"] for e in events
                                     if e["type"] == "content_block_delta"), rest)
        body = {"model": "model0", "messages": begun(part), "stream": False,
                "options": {"num_predict": N - 10, "temperature": 0}}
        self.assertEqual(self.post("/api/chat", body)["message"]["content"], rest)

    def test_begun_answer_belongs_to_prompt(self):
        plain, part = self.ask()["usage"]["prompt_tokens"], self.text(n=10)
        usage = self.ask(begun(part), 5)["usage"]
        self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"]), (plain + 10, 5))
        counted = self.post("/v1/messages/count_tokens", {"messages": begun(part)})
        self.assertEqual(counted, {"input_tokens": plain + 10})
        self.assertEqual(self.text(begun("")), self.text())
        # Text that looks like a control token stays text.
        self.assertGreater(self.ask(begun("<|eot_id|>"), 1)["usage"]["prompt_tokens"], plain + 3)

    def test_words_put_into_its_mouth(self):
        said = "Once upon a time a cat called "
        answer = self.ask(begun(said), logprobs=True)["choices"][0]
        self.assertEqual("".join(e["token"] for e in answer["logprobs"]["content"]),
                         answer["message"]["content"])
        self.assertFalse(answer["message"]["content"].startswith(said))

    def test_answered_instead(self):
        part = self.text(n=10)
        continued = self.ask(begun(part), 1)["usage"]["prompt_tokens"]
        for more in ({"continue_final_message": False}, {"add_generation_prompt": True},
                     {"continue_final_message": False, "add_generation_prompt": True}):
            answered = self.ask(begun(part), 1, **more)["usage"]["prompt_tokens"]
            self.assertGreater(answered, continued)
        given = [{"role": "user", "content": "Tell me a story."},
                 {"role": "assistant", "content": part}]
        answer = self.post("/v1/responses", {"input": given, "max_output_tokens": 1})
        self.assertEqual(answer["usage"]["input_tokens"], answered)

    def test_refused(self):
        form = {"response_format": {"type": "json_object"}}
        both = {"continue_final_message": True, "add_generation_prompt": True}
        for param, messages, more in (
                ("continue_final_message", begun("Once"), both),
                ("continue_final_message", begun("Once"), {"continue_final_message": "yes"}),
                ("add_generation_prompt", begun("Once"), {"add_generation_prompt": 1}),
                ("messages", STORY, {"continue_final_message": True}),
                ("messages", begun("Once"), form)):
            with self.subTest(more):
                self.assertEqual(self.ask(messages, status=400, **more)["error"]["param"], param)
        long = begun("word " * 3000)
        self.assertEqual(self.ask(long, status=400)["error"]["code"], "context_length_exceeded")

    def test_tools(self):
        call = {"type": "function", "function": {"name": "weather", "arguments": "{}"}}
        with serve_template(TAGGED) as server:
            part = self.text(n=8, server=server)
            self.assertEqual(self.text(begun(part), 8, server=server, tools=TOOLS[:0]),
                             self.text(n=16, server=server)[len(part):])
            self.text(begun(part), 8, server=server, tools=TOOLS)
            self.ask(begun(part), status=400, server=server, tools=TOOLS, tool_choice="required")
            self.ask(begun("", tool_calls=[call]), 1, server=server, tools=TOOLS)
            error = self.ask(begun("", tool_calls=[call]), status=400, server=server, tools=TOOLS,
                             continue_final_message=True)["error"]
            self.assertIn("calls tools", error["message"])


class Reasoning(Case):
    def parts(self, server, messages=STORY, n=16, **more):
        message = self.message(messages, n, server=server, **more)
        return message.get("reasoning_content", ""), message["content"]

    def test_a_template_that_begins_the_reasoning(self):
        model = thinking_model(OPENS, pieces=CLOSES)
        with serve_template(OPENS, models=[model]) as server:
            whole = self.parts(server)
            self.assertTrue(all(whole))
            for n in range(1, 16):
                reasoning, content = self.parts(server, n=n)
                last = begun(content, reasoning_content=reasoning)
                more_reasoning, more_content = self.parts(server, last, 16 - n)
                if content:
                    self.assertEqual(more_reasoning, "", n)
                elif len(reasoning) < len(whole[0]):  # otherwise the tag is cut
                    self.assertEqual((reasoning + more_reasoning, content + more_content), whole)
            # A prefilled answer is not reasoning.
            self.assertEqual(self.parts(server, begun("Once upon"))[0], "")

    def test_a_template_that_leaves_it_to_the_model(self):
        with serve_template(SWITCH, models=[thinking_model()]) as server:
            whole = self.parts(server)
            self.assertTrue(all(whole))
            inside = begun("", reasoning_content=whole[0][:3])
            self.assertNotEqual(self.parts(server, inside)[0], "")
            after = begun(whole[1][:4], reasoning_content=whole[0])
            self.assertEqual(self.parts(server, after)[0], "")
            # Without reasoning, the prompt has none either.
            off = {"reasoning_effort": "none"}
            a, b = (self.ask(m, 1, server=server, **off)["usage"]["prompt_tokens"]
                    for m in (after, begun(whole[1][:4])))
            self.assertEqual(a, b)

    def test_a_built_in_template(self):
        """It renders no reasoning, but a continued answer keeps its reasoning."""
        with serving.Server("--template", "qwen3") as server:
            plain = self.ask(begun("Once"), 1, server=server)["usage"]["prompt_tokens"]
            thought = self.ask(begun("Once", reasoning_content="hm"), 1, server=server)
            self.assertGreater(thought["usage"]["prompt_tokens"], plain)


if __name__ == "__main__":
    command.main()
