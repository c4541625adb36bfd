#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command on a terminal: a pseudo-terminal of this process (Linux and macOS)."""
import json
import os
import re
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import scratch
from terminal import Terminal


@unittest.skipUnless(command.NATIVE and os.name == "posix", "needs a POSIX terminal")
class OnATerminal(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def test_a_run_ends_by_itself(self):
        with Terminal("run", self.model, "-p", "Hi", "-n", "4") as t:
            _, code = t.finish()
        self.assertEqual(code, 0)

    def test_banner_and_quiet(self):
        with Terminal("run", self.model, "-p", "Hi", "-n", "2") as t:
            text, _ = t.finish()
        self.assertIn("tern 0.".encode(), text)
        self.assertIn(b"machine: ", text)
        self.assertNotIn(b"\x1b", text)
        with Terminal("run", self.model, "-p", "Hi", "-n", "2", "--greedy", "-q") as t:
            text, _ = t.finish()
        self.assertNotIn(b"machine: ", text)

    def test_the_banner_names_the_architecture(self):
        for name in ("tiny-bonsai", "tiny-trilm"):
            model = command.model(command.shared("reference", "models", name))
            family = json.loads(self.ok("info", model, "--json").text)["architecture"]
            banner = self.ok("run", model, "--raw", "-p", "a", "-n", "1", "-v").err.splitlines()[0]
            self.assertIn(f" \u00b7 {family} ", banner)
            self.assertNotIn("BitNet", banner)

    def test_the_banner_says_how_weights_are_stored(self):
        qwen2 = command.shared("reference", "dense", "models", "tiny-qwen2")
        for model, words in ((self.model, "ternary"), (command.model(qwen2), "bf16")):
            banner = self.ok("run", model, "--raw", "-p", "a", "-n", "1", "-v").err.splitlines()[0]
            self.assertIn(f" \u00b7 {words} \u00b7 ", banner)

    def test_raw_prompts_are_repeated(self):
        with Terminal("run", self.model, "--raw", "-p", "Once upon", "-n", "2", "-q") as t:
            text, _ = t.finish()
        self.assertTrue(text.startswith(b"Once upon"), text)
        with Terminal("run", self.model, "-p", "Tell me", "-n", "2", "-q") as t:
            text, _ = t.finish()
        self.assertNotIn(b"Tell me", text)

    def test_answers_are_wrapped_at_words(self):
        """Shown by the prompt, which raw mode repeats as part of the text."""
        text = "## Once upon\n\nThere was **a little** " + "house in the wood " * 8
        flags = ("run", self.model, "--raw", "-p", text, "-n", "1", "-q")
        env = {"TERM": "xterm", "NO_COLOR": ""}
        for columns in (40, 80, 120):
            with Terminal(*flags, size=(24, columns), env=env) as t:
                shown, _ = t.finish()
            self.assertIn(b"\x1b[0;2m## \x1b[0;1mOnce upon\x1b[0m\r\n", shown)
            self.assertIn(b"\x1b[0;2m**\x1b[0;1ma little\x1b[0;2m**", shown)
            rows = re.sub(rb"\x1b\[[0-9;]*m", b"", shown).decode().split("\r\n")
            self.assertLess(max(map(len, rows)), columns)
            self.assertTrue(" ".join(rows).startswith(text.replace("\n", " ").strip()), rows)
        for changes in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            with Terminal(*flags, size=(24, 40), env={**env, **changes}) as t:
                shown, _ = t.finish()
            self.assertNotIn(b"\x1b", shown)
            self.assertLess(max(map(len, shown.split(b"\r\n"))), 40)
        with Terminal(*flags, "--plain", size=(24, 40), env=env) as t:
            shown, _ = t.finish()
        self.assertTrue(shown.startswith(text.replace("\n", "\r\n").encode()), shown)
        with open(scratch("answer"), "w+b") as f:
            with Terminal("run", self.model, "-p", "Hi", "--greedy", size=(24, 20), stdout=f) as t:
                t.finish()
            f.seek(0)
            self.assertEqual(f.read(), self.ok("run", self.model, "-p", "Hi", "--greedy").out)

    def test_messages_and_help_are_wrapped_at_words(self):
        with Terminal("run", self.model, "-p", "Hi", "-n", "2", size=(24, 40)) as t:
            shown, _ = t.finish()
        rows = shown.decode().split("\r\n")
        self.assertLess(max(map(len, rows)), 40)
        self.assertTrue(any(row.startswith("  ") for row in rows), rows)
        for arguments in (("help",), ("help", "run"), ("help", "embed")):
            with Terminal(*arguments, size=(24, 40)) as t:
                shown, _ = t.finish()
            words = shown.decode().split()
            self.assertEqual(words, self.ok(*arguments).text.split())
            self.assertLessEqual(max(map(len, shown.decode().split("\r\n"))), 40)

    def test_the_rest_of_an_answer_is_not_indented(self):
        flags = ("-n", "8", "--greedy")
        rest = self.ok("chat", self.model, *flags, stdin=b"Tell me a story.\n/continue\n").text
        self.assertIn("\n ", rest)
        with Terminal("chat", self.model, *flags, size=(24, 40)) as t:
            t.expect(b"> ")
            t.send(b"Tell me a story.\n")
            t.expect(rb"context \d+ of.*> ")
            t.send(b"/continue\n")
            shown = t.expect(rb"context \d+ of.*> ")
        begin = rest.split("\n")[1].split()[0]
        self.assertRegex(shown, rb"\n(\x1b\[[0-9;?]*[a-zA-Z]|\r)*" + begin.encode())

    def test_tables_are_wrapped_at_words(self):
        env = {"TERN_MODELS": os.path.dirname(self.model)}
        name = os.path.splitext(os.path.basename(self.model))[0].encode()
        for arguments, words in ((("pull",), (b"weaker", b"microsoft/bitnet-b1.58-2B-4T-gguf")),
                                 (("list",), (name,))):
            with Terminal(*arguments, size=(24, 80), env=env) as t:
                shown, _ = t.finish()
            self.assertLessEqual(set(words), set(shown.split()))
            if arguments == ("pull",):  # names of files may be longer than a row
                self.assertLessEqual(max(map(len, shown.decode().split("\r\n"))), 80)

    def test_control_characters_of_the_prompt_are_shown(self):
        prompt = "a\x1b[31mb\x07\u009b!"
        with Terminal("run", self.model, "--raw", "-p", prompt, "-n", "1", "-q") as t:
            text, _ = t.finish()
        self.assertTrue(text.startswith(b"a\\x1B[31mb\\x07\\x9B!"), text)
        with open(scratch("raw"), "wb") as f:
            with Terminal("run", self.model, "--raw", "-p", prompt, "-n", "1", stdout=f) as t:
                t.finish()

    def test_control_characters_of_a_file_name_are_shown(self):
        path = scratch("a\x1b[31m.tern")
        shutil.copy(self.model, path)
        with Terminal("verify", path) as t:
            text, code = t.finish()
        self.assertEqual(code, 0)
        self.assertIn(b"a\\x1B[31m.tern: intact: ", text)

    def test_terminals_without_utf8(self):
        prompt = "Gr\u00fc\u00dfe \u6771\u4eac \U0001f98a!"
        escaped = rb"Gr\xFC\xDFe \u6771\u4EAC \U0001F98A!"
        unset = {"LC_ALL": "", "LC_CTYPE": "", "LANG": ""}
        for locale, shown in (({}, prompt.encode()), ({"LANG": "C"}, escaped),
                              ({"LC_CTYPE": "de_DE", "LANG": "C.UTF-8"}, escaped),
                              ({"LC_ALL": "ru_RU.KOI8-R"}, escaped),
                              ({"LC_ALL": "de_DE.utf8@euro", "LANG": "C"}, prompt.encode()),
                              ({"LC_CTYPE": "UTF-8"}, prompt.encode())):
            with self.subTest(locale=locale):
                with Terminal("run", self.model, "--raw", "-p", prompt, "-n", "1", "-q",
                              env={**unset, **locale}) as t:
                    text, _ = t.finish()
                self.assertTrue(text.startswith(shown), text)
        with Terminal("info", scratch("gr\u00fcn.tern"), env={"LC_ALL": "C"}) as t:
            text, code = t.finish()
        self.assertEqual(code, 5)
        self.assertIn(rb"gr\xFCn.tern", text)
        # A file gets the bytes, whatever the terminal supports.
        env = command.environment(LC_ALL="C")
        self.assertIn("gr\u00fcn.tern", command.tern("info", scratch("gr\u00fcn.tern"), env=env).err)

    def test_interrupt_while_generating(self):
        with Terminal("run", self.model, "--raw", "-p", "Once", "-n", "1000", "--caps", "off",
                      "--ignore-eos", "--cpu", "ref", "--threads", "1", "--stats=json", "-q") as t:
            t.expect(b"Once.{20}")
            t.send(b"\x03")
            text, code = t.finish()
        self.assertEqual(code, -signal.SIGINT)
        self.assertEqual(json.loads(text[text.index(b"{"):])["stop"], "interrupt")

    def test_chat(self):
        for name, end in (("dumb", rb"\\\r\n"), ("xterm", rb"\r\n")):
            with self.subTest(terminal=name):
                self.talk({"TERM": name}, end)

    def talk(self, env, end_of_continued):
        with Terminal("chat", self.model, "--greedy", "-n", "12", env=env) as t:
            t.expect(b"/help.*\r\n.*> ")
            t.send(b"Hello\n")
            t.expect(b"Hello\r\n.+\r\n> ")
            t.send(b"/help\n")
            t.expect(b"/exit.*> ")
            t.send(b"one\\\n")
            t.expect(rb"one" + end_of_continued + rb"\. ")
            t.send(b"two\n")
            t.expect(b"two\r\n.+\r\n> ")
            t.send(b"/stats\n")
            t.expect(b"4 messages.*> ")
            t.send(b"\x04")
            _, code = t.finish()
        self.assertEqual(code, 0)

    def test_tern_alone_is_a_chat(self):
        with Terminal(env={"TERN_MODEL": self.model}) as t:
            t.expect(b"> ")
            t.send(b"/exit\n")
            _, code = t.finish()
        self.assertEqual(code, 0)

    def test_the_user_chooses_a_model(self):
        """No model is named and no default exists: a single one is used, among several the user
        chooses."""
        folder = scratch("program")
        os.makedirs(os.path.join(folder, "models"))
        program = os.path.join(folder, "tern")
        shutil.copy(command.TERN, program)
        env = {"HOME": folder, "XDG_DATA_HOME": folder, "TERN_MODELS": "", "TERM": "dumb"}

        def chat():
            return Terminal(program=[program, "chat", "-q"], env=env)
        with chat() as t:
            self.assertIn(b"no model: none was named", t.finish()[0])
            self.assertEqual(t.process.returncode, 5)
        shutil.copy(self.model, os.path.join(folder, "models", "first.tern"))
        with chat() as t:
            t.expect(b"leaves\r\n> ")
            t.send(b"/config\n")
            t.expect(b"first.tern.*> ")
        shutil.copy(self.model, os.path.join(folder, "models", "second.tern"))
        for answer in (b"second\n", b"2\n"):
            with chat() as t:
                t.expect(rb"1  first .*2  second .*\? ")
                for wrong in (b"3\n", b"\n", b"fir\n", b"-1\n"):
                    t.send(wrong)
                    t.expect(rb"No model has this number or name.*\? ")
                t.send(answer)
                t.expect(b"leaves\r\n> ")
                t.send(b"/config\n")
                t.expect(b"second.tern.*> ")
        with chat() as t:
            t.expect(rb"\? ")
            t.send(b"\x03")
            self.assertEqual(t.finish()[1], -signal.SIGINT)
        with chat() as t:
            t.expect(rb"\? ")
            t.send(b"\x04")
            self.assertIn(b"no model: none was named", t.finish()[0])
            self.assertEqual(t.process.returncode, 5)

    def test_interrupts_in_chat(self):
        with Terminal("chat", self.model, "-n", "1000", "--caps", "off", "--ignore-eos", "--cpu",
                      "ref", "--threads", "1", "-q") as t:
            t.expect(b"> ")
            slowest = 0.0
            for _ in range(20):
                t.send(b"Hello\n")
                self.assertNotIn(b"once more", t.expect(b"Hello\r\n.{10}"))
                start = time.monotonic()
                t.send(b"\x03")
                t.expect(b"\r\n> ")
                slowest = max(slowest, time.monotonic() - start)
            t.send(b"/stats\n")
            t.expect(b"40 messages.*> ")
            self.assertEqual(t.leave_by_interrupts(), -signal.SIGINT)
        print(f"from Ctrl-C to the prompt: {1000 * slowest:.0f} ms at most (goal 200)")

    def test_an_interrupt_at_the_prompt_forgets_the_line(self):
        with Terminal("chat", self.model, "-n", "4", env={"TERM": "dumb"}) as t:
            t.expect(b"> ")
            t.send(b"half a line\x03")
            t.expect(b"once more.*> ")
            t.send(b"/stats\n")
            t.expect(b"0 messages.*> ")
            t.send(b"\x03")
            t.expect(b"once more.*> ")
            t.send(b"/exit\n")
            _, code = t.finish()
        self.assertEqual(code, 0)

    def test_an_interrupt_after_a_line_is_not_lost(self):
        """The terminal discards the line, even if the program has received it already."""
        for name in ("dumb", "xterm"):
            with self.subTest(terminal=name), \
                    Terminal("chat", self.model, "-q", env={"TERM": name}) as t:
                self.interrupt_behind_lines(t)

    def interrupt_behind_lines(self, t):
        t.expect(b"> ")
        for _ in range(200):
            t.send(b"/undo\n")
            t.expect(b"nothing to undo.\r\n> ")
            t.send(b"/undo\n\x03")
            t.expect(b"once more or /exit leaves\\)\r\n> ")

    def test_terminate_at_the_prompt(self):
        with Terminal("chat", self.model) as t:
            t.expect(b"> ")
            t.process.send_signal(signal.SIGTERM)
            _, code = t.finish()
            self.assertEqual(t.modes(), t.before)
        self.assertEqual(code, -signal.SIGTERM)

    def test_narrow_terminals_and_dumb_ones(self):
        import fcntl
        import struct
        import termios
        with Terminal("chat", self.model, "--greedy", "-n", "8",
                      env={"TERM": "dumb", "NO_COLOR": "1"}) as t:
            fcntl.ioctl(t.fd, termios.TIOCSWINSZ, struct.pack("4H", 10, 20, 0, 0))
            t.expect(b"> ")
            t.send(b"Hello\n")
            text = t.expect(b"Hello\r\n.+\r\n> ")
            t.send(b"\x04")
            t.finish()
        self.assertNotIn(b"\x1b", text)


if __name__ == "__main__":
    command.main()
