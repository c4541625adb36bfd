#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""System messages after the first, with templates that accept them and with others."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from serving import serve_template
from tools import TAGGED, TOOLS

# As in Qwen3.5's template.
FIRST_ONLY = """{% for m in messages[1:] if m.role == 'system' %}
{{ raise_exception('A system message must be first.') }}{% endfor %}""" + TAGGED
# As in Gemma's, which also needs a user's message at the beginning.
ALTERNATES = """{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Roles must alternate.') }}{% endif %}{% endfor %}""" + TAGGED


def message(role, text):
    return {"role": role, "content": text}


S, U, A = (lambda text, role=role: message(role, text) for role in ("system", "user", "assistant"))
LATE = [S("One."), message("developer", "Two."), U("Hi"), S("Three."), U(""), A("Hello"),
        S("Four."), U("Go.")]
REWRITTEN = [S("One.\n\nTwo."), U("Hi\n\nThree."), A("Hello"), U("Four.\n\nGo.")]


class LateSystem(serving.TestCase):
    def ask(self, server, messages, status=200, path="/v1/chat/completions", **more):
        more = dict({"max_tokens": 20, "temperature": 0}, **more)
        return self.post(path, dict(messages=messages, **more), status, server)

    def text(self, server, messages, **more):
        return self.ask(server, messages, **more)["choices"][0]["message"]["content"]

    def test_templates_that_accept_them(self):
        with serve_template(TAGGED) as server:
            counts = [self.ask(server, m)["usage"]["prompt_tokens"] for m in (LATE, REWRITTEN)]
            self.assertNotEqual(*counts)

    def test_templates_that_reject_them(self):
        with serve_template(FIRST_ONLY) as server:
            for more in ({}, {"tools": TOOLS}):
                expected = self.ask(server, REWRITTEN, **more)
                late = self.ask(server, LATE, **more)
                self.assertEqual(late["usage"]["prompt_tokens"],
                                 expected["usage"]["prompt_tokens"])
                self.assertEqual(late["choices"], expected["choices"])
            messages = self.ask(server, LATE[2:], path="/v1/messages", system="One.\n\nTwo.")
            self.assertEqual(messages["content"][0]["text"], self.text(server, REWRITTEN))
            # A begun answer is continued, and calls stay between the messages.
            self.assertEqual(self.text(server, LATE + [A("Once")]),
                             self.text(server, REWRITTEN + [A("Once")]))
            call = {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "stop", "arguments": "{}"}}]}
            result = {"role": "tool", "tool_call_id": "c", "content": "done"}
            self.assertEqual(self.text(server, LATE + [call, result, S("Five.")]),
                             self.text(server, REWRITTEN + [call, result, U("Five.")]))

    def test_templates_without_system_messages(self):
        with serve_template(ALTERNATES) as server:
            self.assertEqual(self.text(server, LATE[2:]), self.text(server, REWRITTEN[1:]))
            for rejected in (LATE, [A("Hello"), S("Four.")]):
                error = self.ask(server, rejected, 400)["error"]
                self.assertEqual(error["param"], "messages")
                self.assertIn("must alternate", error["message"])


if __name__ == "__main__":
    command.main()
