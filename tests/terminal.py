# SPDX-License-Identifier: MIT
"""Programs on a pseudo-terminal of this process (Linux and macOS)."""
import os
import re
import select
import subprocess
import time

import command

# Sanitizers are slow, and install their own handlers for faults.
IS_SANITIZED = bool(os.environ.get("TERN_SANITIZE"))
DEADLINE = 120  # seconds; far more than a loaded machine needs


class Terminal:
    """A child with a terminal as its standard streams, except those given: the tern command with
    these arguments, or another program.  TERM is xterm unless `env` changes it: CI may have none.
    By default the terminal controls it; when such a child exits, the system may discard its last
    output."""

    def __init__(self, *args, program=None, env=None, size=(24, 80), controls=True,
                 **streams):
        import pty
        self.fd, child = pty.openpty()
        self.resize(*size)
        self.before = self.modes()
        for name in ("stdin", "stdout", "stderr"):
            streams.setdefault(name, child)

        def lead():
            os.setsid()
            import fcntl
            import termios
            if controls:
                fcntl.ioctl(child, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(program or command.argv(*args), preexec_fn=lead,
                                        env=command.environment(**{"TERM": "xterm", **(env or {})}),
                                        pass_fds=[child], **streams)
        os.close(child)
        self.seen = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        os.close(self.fd)

    def resize(self, rows, columns):
        import fcntl
        import struct
        import termios
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def modes(self):
        """The output of stty."""
        import termios
        return termios.tcgetattr(self.fd)

    def read_some(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def expect(self, pattern, timeout=DEADLINE):
        """Waits for matching bytes; returns and consumes everything up to their end."""
        end = time.monotonic() + timeout
        while True:
            match = re.search(pattern, self.seen, re.S)
            if match:
                before, self.seen = self.seen[:match.end()], self.seen[match.end():]
                return before
            if not self.read_some(max(0.0, end - time.monotonic())):
                raise AssertionError(f"{pattern!r} did not come: {self.seen!r}")

    def send(self, text):
        """Writes all of it, and reads meanwhile to avoid a deadlock."""
        while text:
            if select.select([self.fd], [self.fd], [])[1]:
                text = text[os.write(self.fd, text[:1024]):]
            self.read_some(0)

    def leave_by_interrupts(self):
        """Presses Ctrl-C at the empty prompt, again after each hint. Returns the exit code.  If the
        machine is slow between two of them, the first is forgotten and a third is needed."""
        end = time.monotonic() + DEADLINE
        self.send(b"\x03")
        while True:
            self.expect(b"once more")
            self.send(b"\x03")
            while self.process.poll() is None and b"once more" not in self.seen:
                assert time.monotonic() < end, self.seen
                self.read_some(0.05)
            if self.process.poll() is not None:
                return self.finish()[1]

    def finish(self, timeout=DEADLINE):
        """Reads to the end. Returns the remaining output and the exit code."""
        end = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < end:
            self.read_some(0.05)
        while self.read_some(0.05):
            pass
        return self.seen, self.process.wait(timeout=1)
