#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern chat on a Windows console, as wine shows it on a pseudo-terminal."""
import os
import re
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from terminal import DEADLINE, Terminal

SLOW = ("-n", "1000", "--caps", "off", "--ignore-eos", "--cpu", "ref", "--threads", "1")
STILL = 0.1  # seconds; an Enter with keys directly before or after it is a line end of a paste


class Console(Terminal):
    """Wine redraws the console with its own sequences, so only the text is compared."""

    @staticmethod
    def text_of(drawn):
        moved = re.sub(rb"\x1b\[(\d*)C", lambda m: b" " * int(m.group(1) or 1), drawn)
        return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", moved)

    def expect(self, pattern, timeout=DEADLINE):
        end = time.monotonic() + timeout
        while not re.search(pattern, self.text_of(self.seen), re.S):
            if not self.read_some(max(0.0, end - time.monotonic())):
                raise AssertionError(f"{pattern!r} did not come: {self.seen!r}")
        text, self.seen = self.text_of(self.seen), b""
        return text

    def type(self, text, shown=None):
        """Types a line like a user."""
        self.send(text)
        self.expect(re.escape(shown or text) + rb"\s*$")
        time.sleep(STILL)
        self.send(b"\r")


@unittest.skipUnless(command.IS_WINE, "needs wine")
class OnAConsole(command.TestCase):
    def chat(self, *flags):
        return Console("chat", command.model(), "-q", *flags, env={"TERM": "xterm"})

    def test_interrupts(self):
        with self.chat(*SLOW) as t:
            t.expect(b"leaves.*> $")
            slowest = 0.0
            for _ in range(20):
                t.type(b"Hello")
                t.expect(rb"\S.{10}")
                start = time.monotonic()
                t.send(b"\x03")
                t.expect(rb"\n> *$")
                slowest = max(slowest, time.monotonic() - start)
            t.type(b"/stats")
            t.expect(rb"40 messages.*> $")
            t.send(b"\x03")
            t.expect(rb"once more.*> $")
            t.send(b"\x03")
            self.assertEqual(t.finish()[1], 130)
            self.assertEqual(t.modes(), t.before)
        print(f"from Ctrl-C to the prompt: {1000 * slowest:.0f} ms at most (goal 200)")

    def test_editing(self):
        with self.chat("--greedy", "-n", "4") as t:
            t.expect(b"leaves.*> $")
            t.type(b"Helo\x1b[Dl\x1b[C!", shown=b"Hello!")
            t.expect(rb"\n> *$")
            t.send(b"one\rtwo\rthree")  # a paste: one message
            t.expect(b"three$")
            time.sleep(STILL)
            t.send(b"\r")
            t.expect(rb"\n> *$")
            t.type(b"/sta\t", shown=b"/stats")
            t.expect(rb"4 messages.*> $")

    def test_leaving(self):
        """By Ctrl-D; wine leaves Ctrl-Z to the terminal, so it does not reach the console."""
        with self.chat() as t:
            t.expect(b"leaves.*> $")
            t.send(b"text\x04")
            t.expect(b"text$")
            time.sleep(STILL)
            self.assertIsNone(t.process.poll())
            t.send(b"\x15\x04")
            self.assertEqual(t.finish()[1], 0)
            self.assertEqual(t.modes(), t.before)


if __name__ == "__main__":
    command.main()
