#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The commands of tern chat, each with good, bad and missing arguments, with and without a
terminal."""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import scratch, tern
from terminal import IS_SANITIZED
from test_cli_terminal import Terminal

NAMES = ("/help /? /exit /quit /bye /q /clear /reset /new /system /model /regen /retry /continue "
         "/undo /edit /editor /file /save /load /history /context /tokens /set /temp /think /config /stats "
         "/copy").split()


class Chat(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def chat(self, lines, *flags, model=None):
        text = "".join(line + "\n" for line in lines).encode()
        return tern("chat", model or self.model, "--greedy", *flags, stdin=text)

    def quiet(self, code, lines, *flags):
        """Runs without requesting an answer. Returns standard error."""
        result = self.chat(lines, *flags)
        self.assertEqual((result.code, result.out), (code, b""), result.err)
        return result.err

    def ids_of_turns(self, result):
        return [line.split()[1:] for line in result.err.splitlines() if line.startswith("ids:")]

    def ids(self, *messages):
        roles = ["user", "assistant"] * len(messages)
        text = json.dumps([{"role": r, "content": m} for r, m in zip(roles, messages)])
        return self.ok("tokenize", self.model, "--chat", stdin=text.encode()).text.split()


class Commands(Chat):
    def test_help(self):
        text = self.quiet(0, ["/help"])
        self.assertEqual(re.findall(r"(?<![\w/])/[\w?]+", text)[:len(NAMES)], NAMES)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100)
        self.assertEqual(len(self.quiet(0, ["/help save"]).splitlines()), 1)
        self.assertIn("FILE", self.quiet(0, ["/? /save"]))
        self.assertIn("/save", self.quiet(2, ["/help sav"]))
        self.assertEqual(self.quiet(0, ["/help keys"]).strip(),
                         self.ok("help", "keys").text.strip())

    def test_names_are_known_and_others_are_not_sent(self):
        for name in NAMES:
            result = self.chat([name])
            self.assertNotIn("unknown", result.err, name)
            self.assertEqual(result.out, b"", name)
        for typed, meant in (("/hlep", "/help"), ("/undoo", "/undo"), ("/conf", "/config"),
                             ("/sav", "/save")):
            self.assertIn(f"did you mean {meant}?", self.quiet(2, [typed, typed + " x"]))
        for typed in ("/xyzzy", "/x", "/"):
            self.assertIn("/help lists them", self.quiet(2, [typed]))
        for leave in ("/exit", "/quit", "/bye", "/q"):
            self.quiet(0, [leave, "Hello"])

    def test_arguments(self):
        for line in ("/undo it", "/exit now", "/copy all", "/stats x"):
            self.assertIn("takes no argument", self.quiet(2, [line]))
        for line in ("/save", "/load", "/file"):
            self.assertIn(f"{line} FILE", self.quiet(2, [line]))

    def test_settings(self):
        text = self.quiet(0, ["/set"])
        for name in ("temp", "top-k", "seed", "max-tokens", "stats", "think"):
            self.assertRegex(text, rf"(?m)^{name} ")
        self.assertEqual(self.quiet(0, ["/temp 0.3", "/temp", "/set temp", "/set top-k 7"]),
                         "temp 0.3\n" * 3 + "top-k 7\n")
        for line, words in (("/temp 5", "0 to 2"), ("/temp x", "0 to 2"), ("/set top-p 0", "above"),
                            ("/tokens 0", "1 to"), ("/set stats maybe", "on or off"),
                            ("/set think x", "on, off or hide"), ("/set nothing 1", "/set lists"),
                            ("/set nothing", "/set lists")):
            self.assertIn(words, self.quiet(2, [line]), line)
        self.assertIn("(the limit here", self.quiet(0, ["/tokens 100000"], "--ram", "3G"))

    def test_settings_take_effect(self):
        result = self.chat(["/tokens 5", "Hello"], "--ignore-eos", "--stats=json")
        self.assertIn('"new_tokens":5,', result.err)
        expected = tern("chat", self.model, "-n", "20", "--temp", "0.9", "--seed", "4",
                        stdin=b"Hello\n")
        result = tern("chat", self.model, stdin=b"/tokens 20\n/temp 0.9\n/set seed 4\nHello\n")
        self.assertEqual(result.out, expected.out)

    def test_tokens_of_a_text(self):
        n = len(self.ok("tokenize", self.model, "--no-bos", stdin=b"two words").text.split())
        self.assertIn(f"{n} tokens in 9 bytes", self.quiet(0, ["/tokens two words"]))

    def test_system(self):
        self.assertEqual(self.quiet(0, ["/system", "/system Be kind.", "/system", '/system ""',
                                        "/system"]),
                         "There is no system message.\nThe system message is set.\nBe kind.\n"
                         "The system message is removed.\nThere is no system message.\n")

    def test_going_on(self):
        flags = ("--ignore-eos", "-v")
        whole = self.chat(["Hello"], "-n", "24", *flags)
        parts = self.chat(["Hello", "/continue", "/continue"], "-n", "8", *flags)
        self.assertEqual(parts.text.replace("\n", ""), whole.text.replace("\n", ""))
        self.assertEqual(parts.code, 0)
        ids = self.ids_of_turns(parts)
        self.assertEqual([len(i) - len(ids[0]) for i in ids], [0, 8, 16])
        self.assertIn("no answer", self.quiet(0, ["/continue"]))
        # An answer that the model ended itself cannot be continued visibly.
        ended = self.chat(["Hello", "/continue"], "-v", "--stats=json")
        stats = [json.loads(l) for l in ended.err.splitlines() if l.startswith("{")]
        self.assertEqual(stats[0]["stop"], "eos")
        ids = self.ids_of_turns(ended)
        self.assertEqual(len(ids[1]), len(ids[0]) + stats[0]["new_tokens"] - 1)

    def test_another_answer(self):
        self.assertIn("no answer", self.quiet(0, ["/retry"]))
        result = tern("chat", self.model, "-n", "20", "--seed", "1", "--temp", "2",
                      stdin=b"Hello\n/regen\n/regen\n")
        answers = result.text.splitlines()
        self.assertEqual(len(set(answers)), len(answers))
        again = tern("chat", self.model, "-n", "20", "--seed", "1", "--temp", "2",
                     stdin=b"Hello\n/regen\n/regen\n")
        self.assertEqual(result.out, again.out)

    def test_edit(self):
        self.assertIn("no question", self.quiet(0, ["/edit", "/edit x"]))
        result = self.chat(["Hello", "/edit Tell me a story."], "-n", "4", "-v")
        self.assertEqual(self.ids_of_turns(result)[1], self.ids("Tell me a story."))
        self.assertEqual(self.chat(["Hello", "/edit"], "-n", "4").code, 2)

    def test_files(self):
        path = scratch("notes with spaces.txt")
        with open(path, "wb") as f:
            f.write("\ufeffGr\u00fc\u00dfe,\nAda".encode())
        result = self.chat(["/file " + path, "What is this?", "And now?"], "-n", "4", "-v")
        self.assertEqual(self.ids_of_turns(result)[0],
                         self.ids("What is this?\n\nGr\u00fc\u00dfe,\nAda"))
        self.assertNotIn("Ada", json.dumps(self.ids_of_turns(result)[1]))
        self.assertRegex(result.err, r"notes with spaces.txt: 15 bytes, \d+ tokens")
        for typed in (f'"{path}"', f"'{path}' ", "~/" + os.path.basename(path)):
            text = tern("chat", self.model, stdin=f"/file {typed}\n".encode(),
                        env=command.environment(HOME=os.path.dirname(path),
                                                USERPROFILE=os.path.dirname(path)))
            self.assertIn("15 bytes", text.err, typed)
        for data, code, words in ((b"a\xffb", 5, "byte 1"), (b"a\0b", 5, "NUL"),
                                  (b"word " * 3000, 3, "the context 1024"),
                                  (b"\xff\xfea\0", 5, "UTF-16")):
            with open(path, "wb") as f:
                f.write(data)
            self.assertIn(words, self.quiet(code, ["/file " + path]))
        self.assertIn("cannot be opened", self.quiet(5, ["/file " + scratch("none")]))
        self.assertIn("directory", self.quiet(5, ["/file " + os.path.dirname(path)]))

    def test_files_that_are_too_long_together(self):
        path = scratch("half.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write("word and tree " * 200)
        result = self.chat(["/file " + path, "/file " + path, "Hello", "Hello"], "-n", "4", "-v")
        self.assertEqual(result.code, 3, result.err)
        self.assertIn("too long", result.err)
        self.assertIn("The attached text is dropped", result.err)
        self.assertEqual(self.ids_of_turns(result), [self.ids("Hello")])

    def test_models(self):
        other = command.model(command.DEMO, "--name", "other")
        alone = self.chat(["Hello", "And you?"], "-n", "8", "-v")
        result = self.chat(["Hello", "/model " + other, "/model", "And you?"], "-n", "8", "-v")
        self.assertEqual(self.ids_of_turns(result), self.ids_of_turns(alone))
        self.assertEqual(result.out, alone.out)
        self.assertIn(f"other ({other})", result.err)
        env = command.environment(TERN_MODELS=os.path.dirname(other))
        name = os.path.basename(other).removesuffix(".tern")
        lines = f"Hello\n/model\n/model {name}\nAnd you?\n".encode()
        named = tern("chat", self.model, "--greedy", "-n", "8", stdin=lines, env=env)
        self.assertEqual((named.out, named.code), (alone.out, 0), named.err)
        [listed] = re.findall(rf"/model {name} +(.*)", named.err)
        self.assertEqual(command.own_path(listed), other)
        # A model that cannot be opened changes nothing.
        result = self.chat(["Hello", "/model " + scratch("none"), "/model " + __file__, "And you?"],
                           "-n", "8", "-v")
        self.assertEqual((result.out, result.code), (alone.out, 5))

    def test_earlier_messages(self):
        result = self.chat(["Hello\\", "you", "/history"], "-n", "4", "-s", "Be kind.")
        answer = result.text.rstrip("\n")
        self.assertIn(f"system: Be kind.\nuser: Hello\nyou\nassistant: {answer}\n", result.err)
        self.assertIn("no messages", self.quiet(0, ["/history"]))

    def test_context(self):
        result = self.chat(["Hello", "And you?", "Well?", "/context"], "-n", "8", "-v")
        self.assertRegex(result.err, r"context: \d+ of 1024 tokens \(\d+ %\) in 6 messages, \d+ of")
        self.assertIn('dropped first: "Hello"', result.err)
        self.assertIn("0 of 1024", self.quiet(0, ["/context"]))

    def test_no_answer_is_promised_more_than_the_context(self):
        plan = json.loads(self.ok("probe", self.model, "--json").text)["plan"]
        cases = [("--caps", "off", "-n", "2000")]
        if plan["default_new_tokens"] >= 1024:  # otherwise the memory allows less
            cases += [(), ("-n", "2000")]
        for flags in cases:
            text = self.quiet(0, ["/context", "/tokens", "/set max-tokens", "/tokens 4000"], *flags)
            self.assertIn("room for 1024 more tokens, of which an answer may take 1024", text)
            self.assertEqual(set(re.findall(r"may (?:have|take) (\d+)|max-tokens (\d+)", text)),
                             {("1024", ""), ("", "1024")})
            self.assertIn("max-tokens 1024 (the context)", text)
        result = self.chat(["Hello", "/context"], "-n", "1000", "--caps", "off", "--stop", "!",
                           "-v")
        n = int(re.search(r"context: (\d+) of", result.err).group(1))
        self.assertIn(f"room for {1024 - n} more tokens, of which an answer may take "
                      f"{min(1000, 1024 - n)}\n", result.err)

    def test_config(self):
        text = self.quiet(0, ["/config"], "--ctx", "512")
        for words in ("model demo", "template bitnet-2b-4t", "context in tokens: 512 (--ctx 512)",
                      "new tokens that are allowed", "repeat-penalty"):
            self.assertIn(words, text)

    def test_blocks(self):
        text = 'one\n/two\n"quoted" \\'
        for lines in (['"""one', "/two", '"quoted" \\"""'], ['"""', *text.split("\n"), '"""'],
                      ['"""one\n/two\n"quoted" \\']):  # the end of the input ends it
            path = scratch("blocks.json")
            self.chat(lines, "-n", "2", "--session", path)
            self.assertEqual(command.read_json(path)["messages"][0]["content"], text, lines)
            os.unlink(path)
        self.assertEqual(self.ids_of_turns(self.chat(['"""/x"""'], "-n", "2", "-v")),
                         [self.ids("/x")])

    def test_copy_needs_a_terminal(self):
        self.assertIn("no answer", self.quiet(0, ["/copy"]))
        self.assertEqual(self.chat(["Hello", "/copy"], "-n", "2").code, 2)


@unittest.skipUnless(command.NATIVE and os.path.exists("/proc/self/status"), "needs /proc")
class LongConversation(Chat):
    N_TURNS, CONTEXT = (50, 1024) if IS_SANITIZED else (200, 4096)

    def test_memory_is_flat(self):
        """The context is full in each turn of the second half."""
        folder = scratch("demo_long")
        shutil.copytree(command.DEMO, folder)
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            config = json.load(f)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump({**config, "max_position_embeddings": self.CONTEXT}, f)
        rss = self.memory_after_turns(command.model(folder))
        print(f"{self.N_TURNS} turns: {rss[self.N_TURNS // 2]} kB after the first half, {rss[-1]} at the end")
        if not IS_SANITIZED:
            self.assertLess(rss[-1], rss[self.N_TURNS // 2] + 2048)

    def memory_after_turns(self, model):
        child = subprocess.Popen(
            command.argv("chat", model, "-n", "24", "--ignore-eos", "--stats=json"),
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        rss, n_forgotten = [], 0
        for i in range(self.N_TURNS):
            child.stdin.write(f"Tell me more about number {i} and the fox, please.\n".encode())
            child.stdin.flush()
            line = b""
            while not line.startswith(b"{"):
                line = child.stderr.readline()
                self.assertTrue(line)
                n_forgotten += b"are forgotten" in line
            self.assertEqual(json.loads(line)["new_tokens"], 24)
            with open(f"/proc/{child.pid}/status", encoding="ascii") as f:
                rss.append(int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)))
        child.stdin.close()
        child.stderr.close()
        self.assertEqual(child.wait(), 0)
        self.assertGreater(n_forgotten, 3)
        return rss


class Thinking(Chat):
    TEMPLATE = ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
                "{% if enable_thinking is defined and not enable_thinking %}nothing{% endif %}")

    def setUp(self):
        super().setUp()
        self.template = scratch("think.jinja")
        with open(self.template, "w", encoding="utf-8") as f:
            f.write(self.TEMPLATE)

    def test_switch(self):
        lines = ["Hi", "/clear", "/think off", "Hi", "/clear", "/think hide", "/think", "Hi"]
        result = self.chat(lines, "-n", "4", "-v", "--template", self.template)
        ids = self.ids_of_turns(result)
        self.assertEqual((result.code, ids[0]), (0, ids[2]))
        self.assertNotEqual(ids[1], ids[0])
        self.assertEqual(ids[1][:len(ids[0]) - 2], ids[0][:-2])
        self.assertIn("think hide", result.err)
        self.assertIn("no switch", self.quiet(2, ["/think off"]))
        self.assertIn("on, off or hide", self.quiet(2, ["/think maybe"]))

    def test_on_where_the_template_cannot(self):
        err = self.quiet(2, ["/think on"])
        self.assertIn("no switch", err)
        self.assertNotIn("think on", err)
        self.assertIn("think on (this model's template has no switch for it)",
                      self.quiet(0, ["/think hide", "/think on"]))
        self.assertIn("think on (this model's template has no switch for it)",
                      self.quiet(0, ["/think"]))
        self.assertIn("think on\n", self.quiet(0, ["/think on"], "--template", self.template))


class Templates(Chat):
    def test_the_name_of_the_models_own(self):
        """--template NAME renders tools if the model's own template, which equals that one, does.
        """
        source = scratch("qwen3")
        published = os.path.join(command.ROOT, "tests", "data", "templates", "qwen3.json")
        shutil.copytree(command.DEMO, source)
        with open(os.path.join(source, "chat_template.jinja"), "w", encoding="utf-8") as f:
            f.write(command.read_json(published)["template"])
        model = command.model(source)
        talk = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "tools": [
            {"type": "function", "function": {"name": "sum", "parameters": {}}}]}).encode()
        own = self.ok("tokenize", model, "--chat", "--text", stdin=talk).text
        self.assertIn("<tools>", own)
        self.assertEqual(self.ok("tokenize", model, "--chat", "--text", "--template", "qwen3",
                                 stdin=talk).text, own)
        self.assertEqual(tern("tokenize", self.model, "--chat", "--template", "qwen3",
                              stdin=talk).code, 2)


@unittest.skipUnless(command.NATIVE and os.name == "posix", "needs a POSIX terminal")
class OnATerminal(Chat):
    LINE = rb"\[12 tokens, [0-9.]+ tok/s, context [0-9]+ of 1024\]"

    def talk(self, lines, env):
        with Terminal("chat", self.model, "--greedy", "-n", "12", "--ignore-eos", env=env) as t:
            shown = [t.expect(b"> ")]
            for line in lines:
                t.send(line + b"\n")
                shown.append(t.expect(re.escape(line) + rb"\r\n.+\r\n> "))
            t.send(b"/exit\n")
            self.assertEqual(t.finish()[1], 0)
        return shown

    def test_a_line_after_an_answer(self):
        plain = {"TERM": "dumb"}
        shown = self.talk([b"Hello"], plain)[1]
        self.assertRegex(shown, self.LINE)
        self.assertIn(b"after 12 new tokens; /continue continues it", shown)
        self.assertNotIn(b"\x1b", shown)
        shown = self.talk([b"/set stats off", b"Hello"], plain)[2]
        self.assertNotIn(b"tok/s", shown)

    def test_copy(self):
        with Terminal("chat", self.model, "--greedy", "-n", "12", "-q",
                      env={"TERM": "xterm"}) as t:
            t.expect(b"> ")
            t.send(b"Hello\r")
            t.expect(b"Hello\r\n")
            t.expect(b"> ")
            t.send(b"/copy\r")
            copied = t.expect(rb"\x1b\]52;c;[A-Za-z0-9+/=]*\x07")
            t.send(b"/exit\r")
            t.finish()
        answer = self.chat(["Hello"], "-n", "12").out.rstrip(b"\n")
        self.assertEqual(base64.b64decode(copied.split(b";")[-1][:-1]), answer)

    def test_replacing_a_session_needs_a_confirmation(self):
        path, other = scratch("asked.json"), scratch("other.json")
        self.chat(["Hello", "/save " + path, "/undo", "Other", "/save " + other], "-n", "2")
        before = command.read_bytes(path)
        for keys in ({"TERM": "dumb"}, {"TERM": "xterm"}):
            with Terminal("chat", self.model, "-q", "-n", "2", "--session", path, env=keys) as t:
                t.expect(rb"> ")
                for line in (b"/new", b"/clear", b"/load " + other.encode()):
                    for no in (b"n\r", b"what\rno\r", b"\x03"):
                        t.send(line + b"\r")
                        t.expect(rb"2 messages.*y or n\)\? ")
                        t.send(no)
                        t.expect(rb"Nothing is replaced.*> ")
                t.send(b"/load " + path.encode() + b"\r")
                t.expect(rb"2 messages are loaded.*> ")
                self.assertEqual(json.loads(command.read_bytes(path))["messages"],
                                 json.loads(before)["messages"])
                t.send(b"/load " + other.encode() + b"\r")
                t.expect(rb"y or n\)\? ")
                t.send(b"y\r")
                t.expect(rb"are loaded.*> ")
                self.assertIn(b"Other", command.wait_for(
                    lambda: b"Other" in (now := command.read_bytes(path)) and now, "not saved"))
                t.send(b"/new\r")
                t.expect(rb"y or n\)\? ")
                t.send(b"yes\r")
                t.expect(rb"is empty.*> ")
                t.send(b"/new\r")  # there is nothing to confirm
                t.expect(rb"is empty.*> ")
                t.send(b"/exit\r")
                self.assertEqual(t.finish()[1], 0)
            self.assertEqual(json.loads(command.read_bytes(path))["messages"], [])
            with open(path, "wb") as f:
                f.write(before)

    def test_stopped_question_is_restored(self):
        back_again = rb'(slash|x\\\r\n.*"""|a\r\n.*b)$'
        text = scratch("attached.txt")
        with open(text, "w", encoding="utf-8") as f:
            f.write("word and tree " * 20)
        with Terminal("chat", self.model, "-q", "-n", "4", "--greedy",
                      env={"TERM": "xterm", "NO_COLOR": "1"}) as t:
            t.expect(b"> $")
            t.send(b"/file " + text.encode() + b"\r")
            t.expect(rb"next question.*> $")
            t.send(b"Hello\r\x03")
            t.expect(rb"attached text goes with the next question.*> Hello$")
            t.send(b"!\r")  # sent again, with the file
            t.expect(rb"!\r\n.+\r\n> $")
            t.send(b"/history\r")
            t.expect(rb"Hello!.*word and tree.*> $")
            for sent in (b"//slash", b'"""\rx\\\r"""', b"a\\\rb"):
                t.send(sent + b"\r\x03")
                back = t.expect(back_again)
                self.assertNotIn(b"error", back)
                t.send(b"\r\x03")  # as it was returned
                t.expect(back_again)
                t.send(b"\x03")  # a second one empties the line
                t.expect(rb"> $")
            t.send(b"/edit Bye\r\x03")
            t.expect(rb"> Bye$")
            t.send(b"\r")
            t.expect(rb"\r\n.+\r\n> $")
            t.send(b"/stats\r")
            t.expect(rb"2 messages.*> $")

    def test_the_hint_of_an_interrupt_expires(self):
        with Terminal("chat", self.model, "-q", env={"TERM": "dumb"}) as t:
            t.expect(b"> ")
            for _ in range(2):
                t.send(b"\x03")
                t.expect(b"once more.*> ")
                time.sleep(2.1)
            t.send(b"/exit\n")
            self.assertEqual(t.finish()[1], 0)


if __name__ == "__main__":
    command.main()
