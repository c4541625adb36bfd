#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern chat --jsonl: one JSON object per line in both directions, as in tern help jsonl."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import scratch, tern
from terminal import IS_SANITIZED

LONG = ("-n", "100000", "--caps", "off", "--ignore-eos", "--cpu", "ref", "--threads", "1")


def user(text, **more):
    return {"role": "user", "content": text, **more}


class Jsonl(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def replies(self, lines, *flags, code=0):
        """A list of replies per line, including deltas."""
        text = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
                        for line in lines)
        result = tern("chat", self.model, "--jsonl", "--greedy", *flags, stdin=text)
        self.assertEqual(result.code, code, result.err)
        out, now = [], []
        for line in result.out.decode().splitlines():
            now.append(json.loads(line))
            if "delta" not in now[-1] and "reasoning_delta" not in now[-1]:
                out.append(now)
                now = []
        self.assertEqual(now, [])
        return out

    def last(self, *args, **keywords):
        return [r[-1] for r in self.replies(*args, **keywords)]

    def error(self, line, code=2):
        reply, = self.last([line])
        self.assertEqual(reply["error"]["code"], code, reply)
        return reply["error"]["message"]


class Lines(Jsonl):
    @unittest.skipUnless(command.NATIVE and sys.platform == "linux" and not IS_SANITIZED,
                         "limits the address space")
    def test_a_line_that_exceeds_memory_is_answered(self):
        import resource
        lines = b'{"x":[' + 5000000 * b"[]," + b'[]]}\n{"role":"user","content":"Hi"}\n'
        done = subprocess.run(
            command.argv("chat", self.model, "--jsonl", "-n", "2", "--threads", "1"), input=lines,
            stdout=subprocess.PIPE, timeout=command.TIMEOUT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20)))
        replies = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(replies[0]["error"]["code"], 3, replies)
        self.assertIn("content", replies[-1])
        self.assertEqual(done.returncode, 0)

    def test_a_conversation_is_that_of_the_lines(self):
        turns = ["Hello", "Tell me a story.", "And then?"]
        plain = tern("chat", self.model, "--greedy", "-n", "12", "--ignore-eos",
                     stdin="".join(t + "\n" for t in turns).encode()).text
        replies = self.replies([user(t, id=i) for i, t in enumerate(turns)], "-n", "12",
                               "--ignore-eos")
        self.assertEqual("".join(r[-1]["content"].rstrip("\n") + "\n" for r in replies), plain)
        for i, reply in enumerate(replies):
            deltas = "".join(r["delta"] for r in reply[:-1])
            self.assertEqual(deltas, reply[-1]["content"])
            self.assertGreater(len(reply), 5)
            self.assertEqual({r["id"] for r in reply}, {i})
            usage = reply[-1]["usage"]
            self.assertEqual((usage["completion_tokens"], reply[-1]["stop"]), (12, "length"))
            self.assertGreater(usage["prompt_tokens"], usage["cached_tokens"])
            self.assertEqual(usage["cached_tokens"] > 0, i > 0)

    def test_whole_conversations(self):
        messages = [{"role": "system", "content": "Be kind."}, user("Hi"),
                    {"role": "assistant", "content": "Hello!"}, user("Tell me a story.")]
        n = len(self.ok("tokenize", self.model, "--chat",
                        stdin=json.dumps(messages).encode()).text.split())
        replies = self.last([user("of before"), {"messages": messages}, {"messages": messages[:3]},
                             user("Tell me a story.")], "-n", "8")
        self.assertEqual(replies[1]["usage"]["prompt_tokens"], n)
        self.assertEqual(replies[2], {"ok": True})
        self.assertEqual(replies[3]["content"], replies[1]["content"])
        self.assertEqual(replies[3]["usage"]["prompt_tokens"], n)

    def test_settings_and_changes(self):
        replies = self.last([{"set": {"max_tokens": 5, "temp": 0.0}}, user("Hello"),
                             {"continue": True}, {"regen": True}, {"undo": True}, {"undo": True},
                             user("Hello"), {"clear": True}, {"regen": True},
                             {"variables": {"x": 1}}, {"variables": None}],
                            "--ignore-eos")
        first, longer, again = replies[1], replies[2], replies[3]
        self.assertEqual(first["usage"]["completion_tokens"], 5)
        self.assertTrue(longer["content"].startswith(first["content"]))
        self.assertGreater(len(longer["content"]), len(first["content"]))
        self.assertEqual(again["content"], first["content"])
        self.assertEqual([r.get("ok") for r in replies],
                         [True, None, None, None, True, None, None, True, None, True, True])
        self.assertEqual(replies[6]["content"], first["content"])
        self.assertIn("no answer", replies[8]["error"]["message"])

    def test_nul_in_texts(self):
        """As in the server: in texts it is a character, elsewhere it is refused."""
        for turns in ([user("Hello\0")], [{"role": "system", "content": "a\0b"}, user("Hello")]):
            with_nul, without, shorter = (
                self.last([json.loads(json.dumps(t).replace("\\u0000", other)) for t in turns],
                          "-n", "4")[-1] for other in ("\\u0000", "x", ""))
            self.assertIn("content", with_nul)
            counts = [r["usage"]["prompt_tokens"] for r in (with_nul, without, shorter)]
            self.assertGreater(counts[0], counts[2])
        self.assertIn('"system" contains NUL', self.error({"set": {"system": "a\0b"}}))
        reply, = self.last([{"role": "user\0", "content": "Hello"}])
        self.assertEqual(reply, {"ok": True})  # an unknown role requests no answer
        reply, = self.last([user("Hello", id="\0")], "-n", "1")
        self.assertEqual(reply["id"], "\0")

    def test_calls_without_content(self):
        """The template of LFM2 writes the content of every message: the same as an empty one."""
        template = os.path.join(command.ROOT, "tests", "text", "templates", "lfm2.jinja")
        calls = [{"id": "abcdefghi", "type": "function",
                  "function": {"name": "f", "arguments": {}}}]
        usages = []
        for content in ({"content": ""}, {"content": None}, {}):
            reply, = self.last([{"messages": [
                user("Hi"), {"role": "assistant", "tool_calls": calls, **content},
                {"role": "tool", "content": "3", "tool_call_id": "abcdefghi"}]}],
                "-n", "2", "--template", template)
            self.assertNotIn("error", reply)
            usages.append((reply["usage"]["prompt_tokens"], reply["content"]))
        self.assertEqual(usages, usages[:1] * 3)

    def test_errors_are_reported_and_the_conversation_continues(self):
        for line, words in ((b"x\n", "line 1"), (b"[]\n", "object"), (b'{"role":1}\n', "role"),
                            (b"{}\n", "tern help jsonl"), ({"role": "user"}, "content"),
                            ({"role": "user", "content": ["a"]}, "content"),
                            ({"set": 1}, "object"), ({"set": {"temp": 9}}, "0 to 2"),
                            ({"set": {"temp": None}}, "number"), ({"set": {"x": 1}}, "unknown"),
                            ({"tools": {}}, "array"), ({"variables": []}, "object"),
                            ({"messages": 1}, "array"), ({"messages": [{}]}, "role"),
                            ({"cancel": 1}, "none of"), (b'{"a":1,"a":\n', "line 1"),
                            (b"[" * 100000 + b"\n", "levels"),
                            ({"set": {"seed": 2 ** 64 - 1}}, "63 bits and a sign"),
                            (b'{"role":"user\xff"}\n', "column 14")):
            self.assertIn(words, self.error(line), line)
        self.assertIn("context", self.error(user("word " * 3000), code=3))
        self.assertIn("16777216", self.error(b"x" * (17 << 20) + b"\n", code=3))
        alone = self.last([user("Hello")], "-n", "6")
        between = self.last([b"x\n", b"\n", user("word " * 3000), user("Hello")], "-n", "6")
        self.assertEqual(between[-1]["content"], alone[0]["content"])
        self.assertEqual(between[-1]["usage"]["prompt_tokens"], alone[0]["usage"]["prompt_tokens"])

    def test_lines_are_atomic(self):
        system = {"role": "system", "content": "Be kind."}
        start = [{"set": {"temp": 0.0}}, {"messages": [system, user("Hello")]}]
        plain = self.last(start + [user("And then?")], "-n", "6")
        for wrong in ({"messages": [user("Good day"), {"role": 1}]},
                      {"messages": [user("Good day"), {"role": "tool", "content": "x",
                                                       "tool_calls": [1]}, {}]},
                      {"set": {"temp": 2, "top_k": 0, "max_tokens": 1, "x": 1}},
                      {"set": {"max_tokens": 1, "stats": "off", "think": "perhaps"}},
                      {"set": {"max_tokens": "1" + 50 * " " + "x"}}):
            with self.subTest(wrong=wrong):
                replies = self.last(start + [wrong, user("And then?")], "-n", "6")
                self.assertEqual(replies[2]["error"]["code"], 2)
                self.assertEqual(replies[3]["content"], plain[2]["content"])
                self.assertEqual(replies[3]["usage"]["prompt_tokens"],
                                 plain[2]["usage"]["prompt_tokens"])
                self.assertEqual(replies[3]["usage"]["completion_tokens"],
                                 plain[2]["usage"]["completion_tokens"])

    def test_a_seed_of_64_bits_is_a_string(self):
        replies = self.last([{"set": {"seed": str(2 ** 64 - 1)}}, {"set": {"seed": 2 ** 63 - 1}}])
        self.assertEqual(replies, [{"ok": True}] * 2)

    def test_special_tokens_in_messages_are_text(self):
        with_text, = self.last([user("say <|eot_id|>")], "-n", "1")
        messages = json.dumps([user("say <|eot_id|>")]).encode()
        n = len(self.ok("tokenize", self.model, "--chat", stdin=messages).text.split())
        self.assertEqual(with_text["usage"]["prompt_tokens"], n)

    def test_reasoning_is_separate(self):
        template = scratch("reason.jinja")
        with open(template, "w", encoding="utf-8") as f:
            f.write("{% for m in messages %}{{ m.content }}\n{% endfor %}<think>\n")
        reply = self.replies([user("Hello")], "-n", "9", "--template", template)[0]
        self.assertEqual(reply[-1]["content"], "")
        thought = "".join(r["reasoning_delta"] for r in reply[:-1])
        self.assertEqual(reply[-1]["reasoning_content"], thought)
        self.assertNotEqual(thought, "")

    def test_empty_input_and_help(self):
        self.assertEqual(self.replies([]), [])
        self.assertEqual(self.replies([b"", b"\n", b" \n"]), [])
        text = self.ok("help", "jsonl").text
        for name in ("role", "messages", "set", "tools", "variables", "regen", "continue", "undo",
                     "clear", "cancel", "delta", "reasoning_delta", "content", "stop", "usage",
                     "forgotten", "error", "ok", "id"):
            self.assertIn(f'"{name}"', text)
        self.assertIn('"replace":true', text)
        for example in re.findall(r'\{"(?:role|set|regen|continue|undo|clear|cancel)".*?\}+(?=\s)',
                                  text):
            json.loads(example)

    def test_kept_conversations(self):
        path = scratch("jsonl.json")
        whole = self.last([user("Hello"), user("And then?")], "-n", "8")
        first = self.last([user("Hello")], "-n", "8", "--session", path)
        second = self.last([user("And then?")], "-n", "8", "--session", path)
        self.assertEqual([r["content"] for r in first + second], [r["content"] for r in whole])


CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"type": "function", "function": {"name": "f", "arguments": {}}}]}


class Sessions(Jsonl):
    """--session: the saved members of a conversation, and the replies about them."""

    def setUp(self):
        super().setUp()
        self.dir = scratch("kept")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)
        self.path = os.path.join(self.dir, "talk.json")
        self.template = os.path.join(self.dir, "tools.jinja")
        with open(self.template, "w", encoding="utf-8") as f:
            f.write("{% for m in messages %}{{ m.content }}\n{% endfor %}{{ mood }}"
                    "{% if enable_thinking is defined and not enable_thinking %}now{% endif %}")
        self.flags = ("-n", "4", "--session", self.path, "--template", self.template)

    def saved(self):
        return command.read_json(self.path)

    def roles(self):
        return [m["role"] for m in self.saved()["messages"]]

    def test_variables_stay(self):
        variables = {"enable_thinking": False, "mood": "grim"}
        self.last([{"set": {"temp": 0.5}}, {"variables": variables}, user("Hi")], *self.flags)
        first = self.saved()
        first["settings"]["temp"] = "0"  # --greedy is given again
        self.last([user("And?")], *self.flags)
        self.assertEqual(self.saved()["variables"], variables)
        self.assertEqual(self.saved()["settings"], first["settings"])
        for think in ("hide", "off", "on"):
            self.last([{"set": {"think": think}}], *self.flags)
            self.assertEqual(self.saved()["variables"], variables)
            self.assertEqual(self.saved()["settings"]["think"], think)

    def test_think_off_is_no_variable(self):
        lines = [user("Hi"), {"undo": True}, {"set": {"think": "off"}}, user("Hi"),
                 {"undo": True}, {"variables": {"mood": "grim"}}, {"set": {"think": "on"}},
                 user("Hi")]
        replies = self.last(lines, *self.flags)
        n = [r["usage"]["prompt_tokens"] for r in replies if "usage" in r]
        self.assertNotEqual(n[0], n[1])
        self.assertEqual(self.saved()["variables"], {"mood": "grim"})
        # Older versions saved it as these variables, which are removed with it.
        off = {"enable_thinking": False, "thinking": False}
        self.last([{"clear": True, "replace": True}, {"set": {"think": "off"}},
                   {"variables": off}], *self.flags)
        self.assertEqual(self.saved()["variables"], off)
        replies = self.last([{"set": {"think": "on"}}, user("Hi")], *self.flags)
        self.assertEqual(replies[1]["usage"]["prompt_tokens"], n[0])
        self.assertNotIn("variables", self.saved())

    def test_failed_tool_result_keeps_earlier_messages(self):
        long = {"role": "tool", "content": "word " * 3000}
        replies = self.last([user("Hi"), CALL, long], *self.flags)
        self.assertIn("too long", replies[2]["error"]["message"])
        self.assertEqual(self.roles(), ["user", "assistant", "assistant"])
        replies = self.last([{"messages": [user("Hi"), CALL, long], "replace": True}], *self.flags)
        self.assertIn("too long", replies[0]["error"]["message"])
        self.assertEqual(self.roles(), ["user", "assistant"])
        replies = self.last([{"role": "tool", "content": "3"}], *self.flags)
        self.assertEqual(self.roles(), ["user", "assistant", "tool", "assistant"])

    @unittest.skipUnless(command.NATIVE and os.name == "posix", "signals")
    def test_stopped_tool_result_keeps_earlier_messages(self):
        slow = {"role": "tool", "content": "word and tree " * 290}
        for number in (None, signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number), subprocess.Popen(
                    command.argv("chat", self.model, "--jsonl", "--cpu", "ref", "--threads", "1",
                                 *self.flags),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
                def send(*lines):
                    child.stdin.write(b"".join(json.dumps(l).encode() + b"\n" for l in lines))
                    child.stdin.flush()
                send({"messages": [user("Hi"), CALL], "replace": True})
                self.assertEqual(json.loads(child.stdout.readline()), {"ok": True})
                send(slow)
                time.sleep(0.3)  # a fraction of the prompt's time
                if number:
                    child.send_signal(number)
                else:
                    send({"cancel": True})
                reply = json.loads(child.stdout.readline())
                self.assertEqual((reply["content"], reply["stop"]), ("", "interrupt"))
                child.stdin.close()
                self.assertEqual(child.wait(timeout=command.TIMEOUT), -number if number else 0)
                self.assertEqual(self.roles(), ["user", "assistant"])

    def test_settings_that_a_file_cannot_store_are_refused(self):
        deep = []
        for _ in range(59):
            deep = [deep]
        call = json.loads(json.dumps(CALL))
        call["tool_calls"][0]["function"]["arguments"] = deep
        replies = self.last([user("Hi"), call, {"role": "assistant", "content": "x",
                                                "tool_calls": {"a": 1}}], *self.flags)
        self.assertIn("63 levels deep", replies[1]["error"]["message"])
        self.assertIn("array", replies[2]["error"]["message"])
        self.assertEqual(self.last([user("And?")], *self.flags)[0]["stop"], "length")

    def test_replacing_is_reported(self):
        self.last([user("Hi")], *self.flags)
        before = command.read_bytes(self.path)
        for line in ({"clear": True}, {"messages": [user("Other")]},
                     {"messages": [], "replace": False}):
            reply, = self.last([line], *self.flags)
            self.assertEqual(reply["error"]["code"], 2)
            self.assertIn('"replace":true', reply["error"]["message"])
            self.assertEqual(command.read_bytes(self.path), before)
        self.last([{"messages": [user("Other")], "replace": True}], *self.flags)
        self.assertEqual(self.saved()["messages"][0]["content"], "Other")
        self.last([{"clear": True, "replace": True}], *self.flags)
        self.assertEqual(self.roles(), [])
        self.assertEqual(self.last([{"clear": True}, {"messages": []}]), [{"ok": True}] * 2)

    @unittest.skipUnless(command.NATIVE and os.name == "posix", "moves a folder that is in use")
    def test_a_failed_save_reaches_the_program(self):
        away = self.dir + ".away"
        shutil.rmtree(away, ignore_errors=True)
        with subprocess.Popen(command.argv("chat", self.model, "--jsonl", *self.flags),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as child:
            def ask(line):
                child.stdin.write(json.dumps(line).encode() + b"\n")
                child.stdin.flush()
                while "delta" in (reply := json.loads(child.stdout.readline())):
                    pass
                return reply
            self.assertNotIn("error", ask(user("One")))
            os.rename(self.dir, away)
            for line, key in ((user("Two"), "content"), ({"set": {"temp": 1}}, "ok")):
                reply = ask(line)
                self.assertIn(key, reply)
                self.assertEqual(reply["error"]["code"], 4)
            os.rename(away, self.dir)
            out, err = child.communicate()
            self.assertEqual((child.returncode, out), (0, b""), err)
        self.assertEqual([m["content"] for m in self.saved()["messages"]][::2], ["One", "Two"])

        # Events without a reply are reported at the end.
        with subprocess.Popen(command.argv("chat", self.model, "--jsonl", *self.flags),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as child:
            child.stdin.write(b'{"set":{"temp":1}}\n')
            child.stdin.flush()
            child.stdout.readline()
            os.rename(self.dir, away)
            out, err = child.communicate(json.dumps(user("word " * 3000)).encode() + b"\n")
            shutil.rmtree(away)
        replies = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([r["error"]["code"] for r in replies], [3, 4], err)
        self.assertEqual(child.returncode, 4)


class Cancel(command.TestCase):
    def setUp(self):
        self.model = command.model()
        self.child = subprocess.Popen(
            command.argv("chat", self.model, "--jsonl", *LONG), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def tearDown(self):
        self.child.stdin.close()
        self.child.wait(timeout=command.TIMEOUT)
        self.child.stdout.close()

    def send(self, *lines):
        self.child.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        self.child.stdin.flush()

    def read(self):
        return json.loads(self.child.stdout.readline())

    def read_final(self):
        while True:
            reply = self.read()
            if "delta" not in reply:
                return reply

    def test_while_an_answer_is_computed(self):
        for i in range(5):
            self.send(user("Hello", id=i))
            first = self.read()
            self.assertEqual(first["id"], i)
            self.send({"cancel": True})
            reply = self.read_final()
            self.assertEqual((reply["stop"], reply["id"]), ("interrupt", i))
            self.assertTrue(reply["content"].startswith(first["delta"]))

    def test_before_it_began(self):
        """In any order of events: replies to all lines before it, and no others."""
        self.send(user("One", id=1), user("Two", id=2), {"cancel": True}, {"undo": True, "id": 3},
                  {"set": {"max_tokens": 3}}, user("Three", id=4))
        for i in (1, 2):
            reply = self.read_final()
            self.assertEqual((reply["stop"], reply["id"]), ("interrupt", i))
        self.assertEqual(self.read_final()["id"], 3)
        self.assertEqual(self.read_final(), {"ok": True})
        reply = self.read_final()
        self.assertEqual((reply["stop"], reply["id"]), ("length", 4))

    @unittest.skipUnless(command.NATIVE and os.name == "posix", "signals")
    def test_termination(self):
        self.send(user("Hello"))
        self.read()
        self.child.terminate()
        while self.child.stdout.readline():
            pass
        self.assertEqual(self.child.wait(timeout=command.TIMEOUT), -15)

    @unittest.skipUnless(command.NATIVE and os.name == "posix", "signals")
    def test_a_signal_ends_it_while_it_waits_for_a_line(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                self.send({"undo": True})
                self.assertIn("error", self.read())
                self.child.send_signal(number)
                self.assertEqual(self.child.wait(timeout=command.TIMEOUT), -number)
                self.tearDown()
                self.setUp()


@unittest.skipUnless(command.NATIVE and os.name == "posix", "pipes and devices")
class OutputGone(command.TestCase):
    """Standard input stays open, so the end is not signalled otherwise."""

    def run_lines(self, stdout, *lines):
        with subprocess.Popen(command.argv("chat", command.model(), "--jsonl", *LONG),
                              stdin=subprocess.PIPE, stdout=stdout,
                              stderr=subprocess.PIPE) as child:
            child.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            child.stdin.flush()
            code = child.wait(timeout=command.TIMEOUT)
            return code, child.stderr.read().decode()

    def test_the_reader_has_left(self):
        for lines in ([{"set": {"temp": 0}}], [user("Hello"), user("And then?")]):
            read_end, write_end = os.pipe()
            os.close(read_end)
            try:
                self.assertEqual(self.run_lines(write_end, *lines)[0], 0)
            finally:
                os.close(write_end)

    @unittest.skipUnless(os.path.exists("/dev/full"), "/dev/full")
    def test_the_disk_is_full(self):
        with open("/dev/full", "wb") as full:
            code, err = self.run_lines(full, user("Hello"), user("And then?"))
        self.assertEqual((code, err.count("error")), (4, 1), err)


if __name__ == "__main__":
    command.main()
