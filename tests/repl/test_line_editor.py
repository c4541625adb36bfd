#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The line editor on a pseudo-terminal, in a program that reports what it reads.

usage: test_line_editor.py EDITOR_PROGRAM"""
import os
import random
import re
import shutil
import signal
import stat
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import scratch
from terminal import IS_SANITIZED, Terminal

PROGRAM = sys.argv.pop(1)
PROMPT = rb"> $"
LEFT, RIGHT, UP, DOWN = b"\x1b[D", b"\x1b[C", b"\x1b[A", b"\x1b[B"


def sum_of(data):
    total = 0
    for byte in data:
        total = (total * 31 + byte) & 0xFFFFFFFF
    return total


class Editor(Terminal):
    def __init__(self, *args, env=None, **keywords):
        env = {"TERM": "xterm", "NO_COLOR": "", **(env or {})}
        super().__init__(program=[PROGRAM, *args], env=env, **keywords)

    def message(self):
        """The next message: its size, its sum, its bytes if it is short, and when it was read."""
        text = self.expect(rb"got \d+ \d+ \d+ [0-9a-f]* \.\r\n")
        n, total, ns, data = re.search(rb"got (\d+) (\d+) (\d+) ([0-9a-f]*) \.", text).groups()
        return int(n), int(total), bytes.fromhex(data.decode()), int(ns)

    def ask(self, keys):
        self.send(keys)
        return self.message()[2]


@unittest.skipUnless(command.NATIVE and os.name == "posix", "needs a POSIX terminal")
class LineEditor(command.TestCase):
    def test_editing(self):
        cases = [
            (b"Hello\r", b"Hello"),
            (b"Hllo" + 3 * LEFT + b"e\r", b"Hello"),
            (b"ello\x01H\x05!\r", b"Hello!"),
            (b"one two\x17three\r", b"one three"),
            (b"one two\x1bb\x0b\x01\x19 \r", b"two one "),
            (b"abc\x7f\x7fx\r", b"ax"),
            (b"abc\x1f\r", b""),
            ("e\u0301x".encode() + LEFT + b"\x7fy\r", b"yx"),
            ("\U0001f469\u200d\U0001f467!".encode() + LEFT + b"\x7f\r", b"!"),
            (b"one\\\rtwo\\\rthree\r", b"one\ntwo\nthree"),
            (b'"""\rone\r/two\r"""\r', b"one\n/two"),
            (b"one\x1b\rtwo" + UP + b"X\r", b"oneX\ntwo"),
            (b"a\xc3\xa4\xe2\x82\xac\r", "a\u00e4\u20ac".encode()),
        ]
        with Editor() as t:
            t.expect(PROMPT)
            for keys, expected in cases:
                with self.subTest(keys=keys):
                    self.assertEqual(t.ask(keys), expected)
            # the same keys, byte by byte
            for keys, expected in cases:
                with self.subTest(bytewise=keys):
                    for i in range(len(keys)):
                        t.send(keys[i:i + 1])
                    self.assertEqual(t.message()[2], expected)

    def test_history_and_search(self):
        with Editor() as t:
            for text in (b"first", b"second", b"third"):
                self.assertEqual(t.ask(text + b"\r"), text)
            self.assertEqual(t.ask(UP + UP + b"!\r"), b"second!")
            self.assertEqual(t.ask(b"typed" + UP + DOWN + b"\r"), b"typed")
            self.assertEqual(t.ask(b"\x12ir\x12\r"), b"first")
            t.send(b"typed\x12thi\x07")
            self.assertEqual(t.ask(b"\r"), b"typed")

    def test_history_in_a_file(self):
        path = scratch("history")
        with Editor(path) as t:
            self.assertEqual(t.ask(b"one\\\rtwo\r"), b"one\ntwo")
            t.send(b"\x04")
            t.finish()
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with Editor(path) as t:
            self.assertEqual(t.ask(UP + UP + UP + b"0" + b"\r"), b"one0\ntwo")
        with Editor(os.path.dirname(path)) as t:
            self.assertIn(b"refused", t.finish()[0])

    def test_completion(self):
        with Editor(env={"NO_COLOR": "1"}) as t:
            t.expect(PROMPT)
            t.send(b"/pre\t")
            t.expect(rb"/preset $")
            t.send(b"again\r")
            t.expect(b"> again$")
            self.assertEqual(t.ask(b"\r"), b"again")
            t.send(b"/p\t\t")
            text = t.expect(rb"/preset  /print\r+\n.*> /pr$")
            self.assertNotIn(b"\x1b[2m", text)
            folder = scratch("files")
            os.makedirs(os.path.join(folder, "b\u00fccher"))
            t.send(b"\x15/file " + folder.encode() + b"/b\t")
            t.expect("b\u00fccher/$".encode())
        with Editor(env={"HOME": folder}) as t:
            t.expect(PROMPT)
            t.send(b"/file ~/b\t")
            t.expect("~/b\u00fccher/$".encode())

    def test_a_paste_is_one_message(self):
        with Editor() as t:
            t.expect(PROMPT)
            t.send(b"x\x1b[200~one\rtwo\nthree\r\n\x1b[201~")
            time.sleep(0.1)
            self.assertEqual(t.ask(b"y\r"), b"xone\ntwo\nthree\ny")
            t.expect(PROMPT)  # until then these keys are signals
            t.send(b"\x1b[200~/leave\r\x03\x04\x1a\x1c\x1b[201~")
            self.assertEqual(t.ask(b"\x1b[1;5H \r"), b" /leave")

    def test_long_pastes(self):
        for n in (100_000, 1 << 20):
            data = ("zeile \u20ac %d\n" * (n // 12) % tuple(range(n // 12))).encode()
            with self.subTest(n=n), Editor() as t:
                t.expect(PROMPT)
                start = time.monotonic()
                t.send(b"\x1b[200~" + data + b"\x1b[201~")
                t.send(b"\r")
                shown = len(t.seen)
                size, total, _, _ = t.message()
                elapsed = time.monotonic() - start
                self.assertEqual((size, total), (len(data) - 1, sum_of(data[:-1])))
                self.assertLess(shown, 40_000)
                print(f"paste of {n} bytes: {elapsed:.2f} s (goal for 1 MiB: 1)")
                self.assertLess(elapsed, 120)  # not quadratic

    def test_without_brackets_lines_are_messages(self):
        with Editor() as t:
            t.expect(PROMPT)
            t.send(b"one\rtwo\rthree\r")
            self.assertEqual([t.message()[2] for _ in range(3)], [b"one", b"two", b"three"])
            line = b"0123456789" * 10_000
            t.send(line + b"\r")
            self.assertEqual(t.message()[:2], (len(line), sum_of(line)))

    def test_keys_are_kept_while_it_works(self):
        with Editor() as t:
            t.expect(PROMPT)
            t.send(b"/work 300\r")
            t.expect(b"busy\r\n")
            t.send(b"kept\rand th")
            text = t.expect(b"done\r\n")
            self.assertNotIn(b"kept", text)  # nor echoed
            self.assertEqual(t.message()[2], b"kept")
            self.assertEqual(t.ask(b"is\r"), b"and this")

    def test_interrupts(self):
        with Editor() as t:
            t.expect(PROMPT)
            t.send(b"half a line\x03")
            t.expect(rb"\^C\r+\n> $")
            self.assertEqual(t.ask(b"x\r"), b"x")
            t.send(b"\x03")
            t.expect(rb"interrupt\r+\n> $")
            os.kill(t.process.pid, signal.SIGINT)
            t.expect(rb"interrupt\r+\n> $")
            t.send(b"text")
            t.expect(b"text$")
            os.kill(t.process.pid, signal.SIGINT)
            t.expect(rb"\^C\r+\n> $")
            for _ in range(20):
                t.send(b"/wait\r")
                t.expect(b"busy")
                t.send(b"\x03")
                t.expect(rb"stopped\r+\n> $")
            for _ in range(100):  # directly after the line, and other input is discarded
                t.send(b"/wait\rmore\r\x03")
                t.expect(rb"stopped\r+\n> $")
            t.send(b"\x04")
            text, code = t.finish()
            self.assertIn(b"end", text)
            self.assertEqual(code, 0)

    def test_resizing(self):
        with Editor(size=(24, 80)) as t:
            t.expect(PROMPT)
            line = b"a line that is wider than a narrow terminal, by far"
            t.send(line)
            t.expect(b"far$")
            for rows, columns in ((10, 20), (5, 8), (40, 120), (24, 80)):
                t.resize(rows, columns)
                t.expect(rb"\x1b\[J.*f\S*\s*a\S*\s*r$")
            self.assertEqual(t.ask(b"!\r"), line + b"!")

    def test_no_editor_without_a_terminal(self):
        with Editor(env={"TERM": "dumb"}) as t:
            text, code = t.finish()
            self.assertIn(b"refused", text)
            self.assertNotIn(b"\x1b", text)
        with open(os.devnull, "rb") as nothing, Editor(stdin=nothing) as t:
            self.assertIn(b"refused", t.finish()[0])

    def test_from_enter_to_work(self):
        best = 1.0
        with Editor() as t:
            t.expect(PROMPT)
            for _ in range(20):
                t.send(b"Hello")
                t.expect(b"Hello$")
                start = time.monotonic_ns()
                t.send(b"\r")
                best = min(best, (t.message()[3] - start) * 1e-9)
                t.expect(PROMPT)
        print(f"from Enter to the message: {1000 * best:.2f} ms (goal 2)")
        self.assertLess(best, 0.5)  # it does not wait for a timer

    @unittest.skipUnless(os.path.exists("/proc/self/stat"), "needs /proc")
    def test_idle_costs_nothing(self):
        with Editor() as t:
            t.expect(PROMPT)
            t.send(b"half a li")
            t.expect(b"li$")
            time.sleep(1.5)
            with open(f"/proc/{t.process.pid}/stat") as f:
                fields = f.read().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            self.assertLess(ticks / os.sysconf("SC_CLK_TCK"), 0.5)


ENDS = [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1,
        signal.SIGALRM, signal.SIGINT]
if not IS_SANITIZED:
    ENDS += [signal.SIGSEGV, signal.SIGBUS]


@unittest.skipUnless(command.NATIVE and os.name == "posix", "needs a POSIX terminal")
class Restoring(command.TestCase):
    """The terminal is restored, and bracketed paste is off."""

    def check(self, t, before, text_too=True):
        text, code = t.finish()
        self.assertEqual(t.modes(), before)
        if text_too:
            self.check_text(text)
        return code

    def check_text(self, text):
        on, off = text.rfind(b"\x1b[?2004h"), text.rfind(b"\x1b[?2004l")
        self.assertGreaterEqual(off, on, text[-300:])

    def test_ways_to_leave(self):
        for keys in (b"/leave\r", b"\x04", b"\x1c", b"x\r\x04", b"/end 6\r", b"/end 10\r"):
            with self.subTest(keys=keys), Editor(controls=False) as t:
                before = t.before
                t.expect(PROMPT)
                self.assertNotEqual(t.modes(), before)
                t.send(keys)
                self.check(t, before)

    def test_signals(self):
        for number in ENDS:
            with self.subTest(number=number), Editor(controls=False) as t:
                before = t.before
                t.expect(PROMPT)
                if number == signal.SIGINT:
                    continue  # does not end it
                t.process.send_signal(number)
                code = self.check(t, before)
                self.assertEqual(code, -number)

    def test_signals_at_random_moments(self):
        """The last output is read where the system keeps it: not after the terminal's controlling
        process exits, nor when Ctrl-C or Ctrl-Z are signals, which discard it."""
        numbers = [n for n in ENDS if n != signal.SIGINT]
        keys = [b"text", b"/work 3\r", b"\x1b[200~pasted\rlines\x1b[201~", b"\r", UP, b"\x12x", b"\x03",
                b"\x1b", b"\x1a", b"one\\\r", b"\x0c", b"/work 1\r\x03"]
        kept = [k for k in keys if not re.search(rb"[\x03\x1a]", k)]
        rng = random.Random(1)
        for i in range(300):
            with Editor(controls=i % 2 == 0) as t:
                before = t.before
                if rng.random() < 0.9:
                    t.expect(rb"\x1b\[\?2004h")
                end = time.monotonic() + rng.random() * 0.02
                while time.monotonic() < end:
                    t.send(rng.choice(kept if i % 2 else keys))
                    if rng.random() < 0.2:
                        t.resize(rng.randrange(1, 50), rng.randrange(1, 200))
                t.process.send_signal(rng.choice(numbers))
                if rng.random() < 0.3:
                    t.process.send_signal(rng.choice(numbers))
                self.check(t, before, text_too=i % 2 == 1)

    def test_stopping(self):
        shell = shutil.which("bash")
        if not shell:
            self.skipTest("needs bash for its job control")
        with Terminal(program=[shell, "--norc", "--noediting", "-i"],
                      env={"TERM": "xterm", "PS1": "shell: "}) as t:
            t.expect(b"shell: $")
            before = t.modes()
            t.send(PROGRAM.encode() + b"\n")
            t.expect(PROMPT)
            for keys, busy in ((b"typ\x1a", b""), (b"/wait\r", b"busy"), (b"\x1a", b"")):
                t.send(keys)
                if busy:
                    t.expect(busy)
                    continue
                t.expect(b"Stopped.*shell: $")
                self.assertEqual(t.modes(), before)
                t.send(b"fg\n")
                t.expect(rb"\x1b\[\?2004h")
                self.assertNotEqual(t.modes(), before)
                if keys != b"\x1a":
                    t.expect(b"> typ$")
                    t.send(b"\x15")
            t.send(b"\x03")
            t.expect(b"stopped.*> $")
            t.send(b"\x04")
            t.expect(b"end.*shell: $")
            self.assertEqual(t.modes(), before)
            t.send(b"exit\n")
            t.finish()


if __name__ == "__main__":
    command.main()
