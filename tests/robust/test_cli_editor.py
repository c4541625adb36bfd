#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern chat with its line editor, on a pseudo-terminal."""
import os
import random
import re
import signal
import stat
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import scratch
from terminal import IS_SANITIZED, Terminal

UP = b"\x1b[A"
PASTE = b"\x1b[200~%s\x1b[201~"


@unittest.skipUnless(command.NATIVE and os.name == "posix", "needs a POSIX terminal")
class Editor(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def chat(self, *flags, env=None, **keywords):
        return Terminal("chat", self.model, "--greedy", "-q", *flags,
                        env={"TERM": "xterm", "NO_COLOR": "1", **(env or {})}, **keywords)

    def messages(self, t):
        t.send(b"/stats\r")
        return int(re.search(rb"(\d+) messages", t.expect(rb"\d+ messages.*> $")).group(1))

    def test_a_paste_is_one_message(self):
        with self.chat("-n", "4") as t:
            t.expect(b"> $")
            t.send(PASTE % b"one\rtwo\rthree\rfour\rfive\r")
            time.sleep(0.2)
            self.assertNotIn(b"tok/s", t.seen)
            t.send(b"\r")
            t.expect(b"five\r\n.+> $")
            self.assertEqual(self.messages(t), 2)

    def test_lines_of_any_length(self):
        """Typed or pasted, 100 kB arrive unchanged: their tokens equal those of the file."""
        text = b"Once upon a time. " * 5600 + b"The end"
        n_tokens = len(self.ok("tokenize", self.model, "--no-bos", stdin=text).text.split())
        for typed in (text, PASTE % text):
            with self.subTest(paste=typed is not text), self.chat() as t:
                t.expect(b"> $")
                t.send(b"/tokens " + typed + b"\r")
                t.expect(rb"%d tokens" % n_tokens)
                t.expect(b"> $")

    def test_editing_commands(self):
        with self.chat("-n", "4") as t:
            t.expect(b"> $")
            t.send(b"/sta\t\r")
            t.expect(b"0 messages.*> $")
            t.send(b"Helo\x1b[Dl\r")
            t.expect(b"Hello\r\n.+> $")
            t.send(b"/edit\r")
            t.expect(b"> Hello$")
            t.send(b"\x7f\x7fp\r")
            t.expect(rb"p\S*\r\n.+> $")
            for ending in (b"\x03", b"x\x15\r", b"\x15/temp\r"):  # no new prompt
                t.send(b"/edit\r")
                t.expect(b"> Help$")
                t.send(ending)
                t.expect(rb"\r\n.*> $")
                self.assertEqual(self.messages(t), 2)
            t.send(b"/continue\r")
            t.expect(b"/continue\r\n.*> $")
            t.send(UP + UP + UP + b"\x15" + b"/set te\t0.5\r")
            t.expect(rb"/set temp *0.5")
            t.expect(b"> $")
            self.assertEqual(self.messages(t), 2)

    def test_history_on_disk_when_asked(self):
        path = scratch("typed")
        with self.chat("--history", path, "-n", "2") as t:
            t.expect(b"> $")
            t.send(b"/set stats off\r")
            t.expect(b"off\r\n.*> $")
            t.send(b"\x04")
            self.assertEqual(t.finish()[1], 0)
        self.assertEqual(command.read_bytes(path), b"/set stats off\n")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with self.chat("--history", path) as t:
            t.expect(b"> $")
            t.send(UP)
            t.expect(b"/set stats off$")
        with self.chat("--history", os.path.dirname(path)) as t:
            text, code = t.finish()
            self.assertIn(b"is a directory", text)
            self.assertEqual(code, 5)

    def test_history_of_a_question_in_progress(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            path = scratch(f"asked-{number:d}")
            with open(path, "w", encoding="utf-8") as f:
                f.write("before\n")
            with self.chat("--history", path, "-n", "1000", "--caps", "off", "--ignore-eos", "--cpu",
                           "ref", "--threads", "1") as t:
                t.expect(b"> $")
                t.send(b"Hello\r")
                t.expect(b"Hello\r\n.{10}")
                t.process.send_signal(number)
                self.assertEqual(t.finish()[1], -number)
            self.assertEqual(command.read_bytes(path), b"before\nHello\n")

    def test_history_that_cannot_be_saved(self):
        with self.chat("--history", scratch("none/typed")) as t:
            text, code = t.finish()
            self.assertRegex(text, b"none/typed: cannot be created: there is no\\s+folder")
            self.assertEqual(code, 4)
        os.mkdir(scratch("gone"))
        with self.chat("--history", scratch("gone/typed")) as t:
            t.expect(b"> $")
            os.rmdir(scratch("gone"))
            t.send(b"/set stats off\r")
            t.expect(b"off\r\n.*> $")
            t.send(b"\x04")
            text, code = t.finish()
            self.assertRegex(text, b"gone/typed: cannot be created")
            self.assertEqual(code, 4)
        with self.chat("--history", "/dev/null") as t:
            t.expect(b"> $")
            t.send(b"/set stats off\r")
            t.expect(b"off\r\n.*> $")
            t.send(b"\x04")
            self.assertEqual(t.finish()[1], 0)

    def test_interrupts(self):
        with self.chat("-n", "1000", "--caps", "off", "--ignore-eos", "--cpu", "ref", "--threads",
                       "1") as t:
            t.expect(b"> $")
            t.send(b"half\x03")
            t.expect(rb"half\^C\r\n> $")
            t.send(b"\x03")
            t.expect(rb"once more.*> $")
            time.sleep(2.1)
            t.send(b"\x03")  # too late: another hint
            t.expect(rb"once more.*> $")
            t.send(b"Hello\r")
            t.expect(b"Hello\r\n.{10}")
            t.send(b"typed ahead")  # kept, except the key that stops the answer
            t.send(b"\x03")
            t.expect(rb"\r\n> (\r\x1b\[J> )?$")  # redrawn because the input arrived late
            self.assertEqual(self.messages(t), 2)
            self.assertEqual(t.leave_by_interrupts(), -signal.SIGINT)

    def test_typed_while_it_answers(self):
        with self.chat("-n", "200", "--ignore-eos") as t:
            t.expect(b"> $")
            t.send(b"Hello\r")
            t.expect(b"Hello\r\n.{3}")
            t.send(b"/stats\r")
            t.expect(b"> /stats\r\n2 messages.*> $")

    def test_settings_are_always_restored(self):
        numbers = [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGBUS,
                   signal.SIGUSR1, signal.SIGINT] + [signal.SIGSEGV] * (not IS_SANITIZED)
        rng = random.Random(2)
        for i in range(40):
            with self.chat("-n", "30") as t:
                t.expect(b"> $")
                if i % 4:
                    t.send(rng.choice([b"Hello\r", b"text", b"\x12x", PASTE % b"a\rb"]))
                time.sleep(rng.random() * 0.02)
                number = rng.choice(numbers)
                t.process.send_signal(number)
                if number == signal.SIGINT:
                    time.sleep(0.02)
                    t.send(b"\x03\x04\x04")
                    t.process.send_signal(signal.SIGTERM)
                t.finish()
                self.assertEqual(t.modes(), t.before)

    def test_narrow_and_resized(self):
        with self.chat("-n", "8", size=(10, 20)) as t:
            t.expect(b"> $")
            t.send("東京 e\u0301 a line that is wider than that".encode())
            t.expect(rb"hat\S*$")
            t.resize(24, 100)
            t.expect("東京 .*a line that is wider than that\\S*$".encode())
            t.send(b"\r")
            t.expect(b"\r\n.+> $")
            self.assertEqual(self.messages(t), 2)


if __name__ == "__main__":
    command.main()
